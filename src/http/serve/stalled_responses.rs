//! Responses over HTTP/2 whose client does not read them (rule S19).
//!
//! Each stream of HTTP/2 has a window of its own. A client that opens none holds its responses for
//! ever, although the connection can be written to all the time. So bodies are handed over in small
//! pieces, and the connection ends when a piece has not been asked for during a minute. A body that
//! waits for the gateway, such as a stream of events, is not counted.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, sleep};

/// How long a response may wait for its client.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How often the responses of a connection are looked at.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// The most bytes of a body that are handed over together, and then held for a client whose window is
/// closed. A client that reads less than this in a minute is not waited for.
const PIECE_BYTES: usize = 16 * 1024;

/// The responses of one connection that wait for its client. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingResponses(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    since: HashMap<u64, Instant>,
    next: u64,
}

/// The body of a response, in pieces.
#[derive(Debug)]
pub(super) struct WatchedBody<B> {
    inner: B,
    /// What was read of `inner` and not yet handed over.
    rest: Bytes,
    number: u64,
    waiting: WaitingResponses,
}

impl WaitingResponses {
    /// Returns `body` as one whose progress is watched.
    pub(super) fn watch<B>(&self, body: B) -> WatchedBody<B> {
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next += 1;
        waiting.since.insert(number, Instant::now());
        WatchedBody { inner: body, rest: Bytes::new(), number, waiting: self.clone() }
    }

    /// Waits until a response has waited too long for the client.
    pub(super) async fn stalled(&self) {
        let has_stalled = |since: &Instant| since.elapsed() >= STALL_TIMEOUT;
        while !self.lock().since.values().any(has_stalled) {
            sleep(CHECK_INTERVAL).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> WatchedBody<B> {
    fn waits_for_client(&self, is_waiting: bool) {
        let mut waiting = self.waiting.lock();
        match is_waiting {
            true => waiting.since.insert(self.number, Instant::now()),
            false => waiting.since.remove(&self.number),
        };
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for WatchedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.rest.is_empty() {
            let frame = match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => {
                    self.waits_for_client(false);
                    return other;
                }
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(length);
        self.waits_for_client(true);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, inner) = (self.rest.len() as u64, self.inner.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + inner.lower());
        if let Some(upper) = inner.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

impl<B> Drop for WatchedBody<B> {
    fn drop(&mut self) {
        self.waits_for_client(false);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::poll_fn;

    use http::{Request, Response};
    use http_body_util::{BodyExt, Empty, Full};
    use hyper::body::Incoming;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::duplex;
    use tokio::task::JoinHandle;

    use super::*;

    const LENGTH: usize = 1 << 20;

    /// Serves a long body to one client, whose window is smaller. Returns the response, and the end of
    /// the connection.
    async fn serve() -> (Response<Incoming>, WaitingResponses, JoinHandle<()>) {
        let (ours, theirs) = duplex(1 << 16);
        let waiting = WaitingResponses::default();
        let watched = waiting.clone();
        let served = tokio::spawn(async move {
            let body = || Full::new(Bytes::from(vec![b'x'; LENGTH]));
            let service = hyper::service::service_fn(|_: Request<Incoming>| {
                let response = Response::new(watched.watch(body()));
                async move { Ok::<_, Infallible>(response) }
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::select! {
                _ = server.serve_connection(TokioIo::new(ours), service) => {}
                () = watched.stalled() => {}
            }
        });
        let client = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(64_000)
            .handshake(TokioIo::new(theirs));
        let (mut client, connection) = client.await.unwrap();
        tokio::spawn(connection);
        let request = Request::get("http://a.test/").body(Empty::<Bytes>::new()).unwrap();
        let response = client.send_request(request).await.unwrap();
        tokio::spawn(async move { client.ready().await }); // keeps the connection open
        (response, waiting, served)
    }

    #[tokio::test(start_paused = true)]
    async fn s19_a_client_that_opens_no_window_is_disconnected() {
        let started = Instant::now();
        let (response, waiting, served) = serve().await;
        served.await.unwrap();
        let took = started.elapsed();
        assert!(took >= STALL_TIMEOUT && took <= STALL_TIMEOUT + CHECK_INTERVAL, "{took:?}");
        assert!(response.into_body().collect().await.is_err(), "the rest was not sent");
        assert!(waiting.lock().since.is_empty(), "nothing is held for it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_gets_all() {
        let (response, _, served) = serve().await;
        let (mut body, mut length) = (response.into_body(), 0);
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            length += frame.unwrap().into_data().map_or(0, |data| data.len());
            sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(length, LENGTH);
        served.abort();
    }
}
