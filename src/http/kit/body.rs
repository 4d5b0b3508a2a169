//! Reading the bodies of requests: never longer than a door takes, and never for long.
//!
//! `Content-Length` may be missing, and may lie, so bytes are counted as they come. What
//! is too long is thrown away as it comes, up to a bound, because most clients read no
//! answer before they have sent all.

use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use tokio::time::{Instant, timeout_at};
use warp::reply::Response;

use crate::http::Gateway;
use crate::http::kit::exchange::{Asked, plain};

/// How long a caller may take to send a body (rule S19).
const PATIENCE: Duration = Duration::from_secs(30);
/// How much of a body that is too long is thrown away before it is refused.
const THROWN_AWAY_BYTES: usize = 1 << 20;

/// How a door reads messages, as calls are, and refuses those that it does not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    /// The longest body of a message that may be longer than the door's others.
    pub(crate) longer_bytes: usize,
    /// Whether a message may, by how it begins.
    pub(crate) is_longer: fn(&[u8]) -> bool,
    /// What is said to one that was not read to its end, in its own protocol.
    pub(crate) refuse: fn(&Gateway, &Asked, &Unread) -> Response,
}

/// A body that was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    /// What HTTP says to that.
    pub(crate) status: StatusCode,
    /// Why, in a sentence.
    pub(crate) why: String,
    /// How it began.
    pub(crate) begins: Bytes,
}

impl Unread {
    fn new(status: StatusCode, why: &str, begins: BytesMut) -> Unread {
        Unread { status, why: why.to_owned(), begins: begins.freeze() }
    }

    /// What is said in no protocol but HTTP.
    pub(crate) fn reply(&self) -> Response {
        plain(self.status, &self.why)
    }
}

/// Reads a body of `limit_bytes` at most; longer, if it is a message that may be.
pub(crate) async fn read<S, B>(
    body: S,
    mut limit_bytes: usize,
    mut messages: Option<Messages>,
) -> Result<Bytes, Unread>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let mut body = pin!(body);
    let mut read = BytesMut::new();
    let until = Instant::now() + PATIENCE;
    loop {
        let Ok(chunk) = timeout_at(until, body.next()).await else {
            let why = "The body took too long to arrive.";
            return Err(Unread::new(StatusCode::REQUEST_TIMEOUT, why, read));
        };
        let Some(chunk) = chunk else { return Ok(read.freeze()) };
        let Ok(mut chunk) = chunk else {
            let why = "The body ended before it was complete.";
            return Err(Unread::new(StatusCode::BAD_REQUEST, why, read));
        };
        let more = chunk.remaining();
        if read.len() + more > limit_bytes
            && let Some(messages) = messages.take()
        {
            let first = if read.is_empty() { chunk.chunk() } else { &read };
            if (messages.is_longer)(first) {
                limit_bytes = limit_bytes.max(messages.longer_bytes);
            }
        }
        let is_too_long = read.len() + more > limit_bytes;
        let taken = more.min(limit_bytes - read.len());
        read.extend_from_slice(&chunk.copy_to_bytes(taken));
        if is_too_long {
            let thrown = timeout_at(until, throw_away(body, chunk.remaining()));
            thrown.await.unwrap_or_default();
            let why = format!("The body is longer than {limit_bytes} bytes.");
            return Err(Unread::new(StatusCode::PAYLOAD_TOO_LARGE, &why, read));
        }
    }
}

/// Takes what is left of a body and keeps nothing of it.
async fn throw_away<S, B>(mut body: S, mut thrown: usize)
where
    S: Stream<Item = Result<B, warp::Error>> + Unpin,
    B: Buf,
{
    while thrown < THROWN_AWAY_BYTES
        && let Some(Ok(chunk)) = body.next().await
    {
        thrown += chunk.remaining();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let begun = Instant::now();
        let silence = futures_util::stream::pending::<Result<Bytes, warp::Error>>();
        let refusal = read(silence, 10, None).await.unwrap_err();
        assert_eq!(refusal.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test]
    async fn s20_of_a_body_that_is_too_long_only_the_beginning_is_kept() {
        let chunk = Bytes::from(vec![b'<'; 64 * 1024]);
        let mut sent = 0;
        let endless = futures_util::stream::repeat_with(|| {
            sent += 1;
            Ok::<_, warp::Error>(chunk.clone())
        });
        let unread = read(endless, 100_000, None).await.unwrap_err();
        assert_eq!(unread.status, StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(unread.begins.len(), 100_000);
        assert_eq!(sent, 2 + THROWN_AWAY_BYTES / chunk.len());
    }
}
