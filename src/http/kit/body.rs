//! Reading the bodies of requests: never longer than an endpoint allows, and never for long.
//!
//! `Content-Length` may be missing or wrong, so bytes are counted as they arrive. The rest of a
//! body that is too long is discarded as it arrives, up to a bound, because most clients read
//! no reply before they have sent everything.

use std::pin::pin;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use http::StatusCode;
use tokio::time::{Instant, timeout_at};
use warp::reply::Response;

use crate::document_budget::{
    BodyOwner, DocumentBudget, GatewayBusy, RequestBodyMemory, UNRESERVED_BODY_BYTES,
};
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;

/// How long a client may take to send a body (rule S19).
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to send a body that it sends more slowly than [`MIN_SPEED`].
const SLOW_BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// The least speed of a body, in bytes per second (rule S19).
const MIN_SPEED: u32 = 1_024;
/// How much of a body that is too long is read and discarded before the request is rejected.
const DISCARDED_BYTES: usize = 1 << 20;
/// How long a client waits until there is memory for the rest of its body.
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// How an endpoint reads procedure calls, and rejects those that it cannot read to their end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRules {
    /// The longest body of a call that may be longer than the other bodies at this endpoint.
    pub(crate) long_call_limit_bytes: usize,
    /// Whether a call may be that long, by how it begins.
    pub(crate) is_long_call: fn(&[u8]) -> bool,
    /// The reply, in the protocol of the call, to a body that was not read to its end.
    pub(crate) reject: fn(&Gateway, &Request, &UnreadBody) -> Response,
}

/// The memory that the body of a request takes, reserved as the body arrives.
#[derive(Debug)]
pub(crate) struct BodyReservation<'d> {
    reserved: Option<(&'d DocumentBudget, RequestBodyMemory)>,
    bytes: usize,
}

impl<'d> BodyReservation<'d> {
    /// Reserves memory in `documents` for `owner`, when it is needed.
    pub(crate) fn new(documents: &'d DocumentBudget, owner: BodyOwner) -> BodyReservation<'d> {
        let reserved = Some((documents, RequestBodyMemory::none(owner)));
        BodyReservation { reserved, bytes: UNRESERVED_BODY_BYTES }
    }

    /// Reserves nothing: the caller bounds the number of bodies.
    pub(crate) fn unlimited() -> BodyReservation<'d> {
        BodyReservation { reserved: None, bytes: usize::MAX }
    }

    /// Ensures that a body of this length may be read, and reserves four times as much if it may
    /// become as long.
    async fn grow(&mut self, bytes: usize, limit_bytes: usize) -> Result<(), GatewayBusy> {
        let Some((documents, memory)) = self.reserved.as_mut().filter(|_| bytes > self.bytes)
        else {
            return Ok(());
        };
        let wanted = bytes.saturating_mul(4).min(limit_bytes.max(bytes));
        documents.grow_body(memory, wanted as u64, MEMORY_WAIT).await?;
        self.bytes = wanted;
        Ok(())
    }
}

/// A body that was not read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnreadBody {
    /// The reason why the body was not read to its end.
    pub(crate) rejection: Rejection,
    /// The bytes that had been read before.
    pub(crate) beginning: Bytes,
}

impl UnreadBody {
    fn new(status: StatusCode, reason: &str, beginning: BytesMut) -> UnreadBody {
        let rejection = Rejection::new(status, reason);
        UnreadBody { rejection, beginning: beginning.freeze() }
    }
}

/// Returns how long a client may take until it sends more than `bytes`.
fn longest_time(bytes: usize) -> Duration {
    let seconds = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / f64::from(MIN_SPEED);
    (SLOW_BODY_TIMEOUT + Duration::from_secs_f64(seconds)).min(BODY_TIMEOUT)
}

/// Reads a body of `limit_bytes` at most, or a longer one if `call_rules` allow it.
pub(crate) async fn read<S, B>(
    body: S,
    mut limit_bytes: usize,
    mut call_rules: Option<CallRules>,
    memory: &mut BodyReservation<'_>,
) -> Result<Bytes, UnreadBody>
where
    S: Stream<Item = Result<B, warp::Error>> + Send,
    B: Buf,
{
    let mut body = pin!(body);
    let mut read = BytesMut::new();
    let mut began = Instant::now();
    loop {
        let deadline = began + longest_time(read.len());
        let Ok(chunk) = timeout_at(deadline, body.next()).await else {
            let reason = "The body took too long to arrive.";
            return Err(UnreadBody::new(StatusCode::REQUEST_TIMEOUT, reason, read));
        };
        let Some(chunk) = chunk else { return Ok(read.freeze()) };
        let Ok(mut chunk) = chunk else {
            let reason = "The body ended before it was complete.";
            return Err(UnreadBody::new(StatusCode::BAD_REQUEST, reason, read));
        };
        let more = chunk.remaining();
        if read.len() + more > limit_bytes
            && let Some(rules) = call_rules.take()
        {
            let first = if read.is_empty() { chunk.chunk() } else { &read };
            if (rules.is_long_call)(first) {
                limit_bytes = limit_bytes.max(rules.long_call_limit_bytes);
            }
        }
        let is_too_long = read.len() + more > limit_bytes;
        let taken = more.min(limit_bytes - read.len());
        let before_wait = Instant::now();
        let grown = memory.grow(read.len() + taken, limit_bytes).await;
        began += before_wait.elapsed(); // for which the client is not to blame
        if let Err(busy) = grown {
            return Err(UnreadBody { rejection: Rejection::busy(busy), beginning: read.freeze() });
        }
        read.extend_from_slice(&chunk.copy_to_bytes(taken));
        if is_too_long {
            let discarded = timeout_at(deadline, discard_rest(body, chunk.remaining()));
            discarded.await.unwrap_or_default();
            let reason = format!("The body is longer than {limit_bytes} bytes.");
            return Err(UnreadBody::new(StatusCode::PAYLOAD_TOO_LARGE, &reason, read));
        }
    }
}

/// Reads the rest of a body, up to a bound, and discards it.
async fn discard_rest<S, B>(mut body: S, mut discarded: usize)
where
    S: Stream<Item = Result<B, warp::Error>> + Unpin,
    B: Buf,
{
    while discarded < DISCARDED_BYTES
        && let Some(Ok(chunk)) = body.next().await
    {
        discarded += chunk.remaining();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document_budget::{SMALLEST_BUDGET_BYTES, Share};

    fn budget() -> DocumentBudget {
        DocumentBudget::new(SMALLEST_BUDGET_BYTES, 1)
    }

    #[tokio::test(start_paused = true)]
    async fn reading_a_body_times_out() {
        let started = Instant::now();
        let silence = futures_util::stream::pending::<Result<Bytes, warp::Error>>();
        let unread =
            read(silence, 10, None, &mut BodyReservation::new(&budget(), BodyOwner::Known))
                .await
                .unwrap_err();
        assert_eq!(unread.rejection.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(started.elapsed(), SLOW_BODY_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn t04_a_body_has_a_least_speed_and_a_greatest_duration() {
        let at_speed = |bytes_per_second: usize| {
            let chunk = Bytes::from(vec![b'a'; bytes_per_second]);
            futures_util::stream::unfold(chunk, |chunk| async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Some((Ok::<_, warp::Error>(chunk.clone()), chunk))
            })
        };
        #[rustfmt::skip]
        let cases = [
            ("a byte a second",       1,                      Duration::from_secs(6)),
            ("half of the least",     MIN_SPEED as usize / 2, Duration::from_secs(10)),
            ("twice the least",       MIN_SPEED as usize * 2, BODY_TIMEOUT),
        ];
        for (why, speed, longest) in cases {
            let started = Instant::now();
            let memory = &mut BodyReservation::unlimited();
            let unread = read(at_speed(speed), 1 << 20, None, memory).await.unwrap_err();
            assert_eq!(unread.rejection.status(), StatusCode::REQUEST_TIMEOUT, "{why}");
            assert!(started.elapsed() <= longest, "{why}: {:?}", started.elapsed());
        }
    }

    #[tokio::test]
    async fn s20_only_the_beginning_of_a_body_that_is_too_long_is_kept() {
        let chunk = Bytes::from(vec![b'<'; 64 * 1024]);
        let mut sent = 0;
        let endless = futures_util::stream::repeat_with(|| {
            sent += 1;
            Ok::<_, warp::Error>(chunk.clone())
        });
        let unread =
            read(endless, 100_000, None, &mut BodyReservation::new(&budget(), BodyOwner::Known))
                .await
                .unwrap_err();
        assert_eq!(unread.rejection.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(unread.beginning.len(), 100_000);
        assert_eq!(sent, 2 + DISCARDED_BYTES / chunk.len());
    }

    #[tokio::test(start_paused = true)]
    async fn h20_an_idle_gateway_takes_the_longest_body_whatever_memory_it_has() {
        for budget_bytes in [SMALLEST_BUDGET_BYTES, 128 << 20, 1 << 30] {
            let budget = DocumentBudget::new(budget_bytes, 1);
            for owner in [BodyOwner::Known, BodyOwner::Anonymous(7)] {
                let chunk = Bytes::from(vec![b'<'; 64 << 10]);
                let chunks = std::iter::repeat_n(chunk, 160).map(Ok::<_, warp::Error>);
                let mut memory = BodyReservation::new(&budget, owner);
                let body = futures_util::stream::iter(chunks);
                let read = read(body, 10 << 20, None, &mut memory).await;
                assert_eq!(read.map(|body| body.len()), Ok(10 << 20), "{budget_bytes} {owner:?}");
            }
            assert_eq!(budget.usage().bytes, 0);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_memory_is_lacking_for_are_rejected_for_now() {
        let budget = budget();
        let all = budget.capacity_bytes(Share::Requests);
        let reserved = budget.reserve(Share::Requests, all, Duration::ZERO).await.unwrap();
        let body = |bytes: usize| {
            let chunk = Bytes::from(vec![b'<'; bytes]);
            futures_util::stream::iter([Ok::<_, warp::Error>(chunk)])
        };
        for (bytes, status) in [(UNRESERVED_BODY_BYTES, 200), (UNRESERVED_BODY_BYTES + 1, 503)] {
            let mut memory = BodyReservation::new(&budget, BodyOwner::Known);
            let unread = read(body(bytes), 1 << 20, None, &mut memory).await;
            assert_eq!(
                unread.map_or_else(|unread| unread.rejection.status().as_u16(), |_| 200),
                status
            );
        }
        drop(reserved);
        let mut memory = BodyReservation::new(&budget, BodyOwner::Known);
        assert!(read(body(UNRESERVED_BODY_BYTES + 1), 1 << 20, None, &mut memory).await.is_ok());
        assert!(budget.usage().bytes > 0, "reserved until the request has been answered");
        drop(memory);
        assert_eq!(budget.usage().bytes, 0);
    }
}
