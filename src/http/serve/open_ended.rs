//! Sending of responses that do not end by themselves, over HTTP/1.1, without hyper.
//!
//! hyper holds 16 KiB of buffers for each connection of HTTP/1, for the next request and its
//! response. Thousands of clients that listen to a stream for hours send no further request, so the
//! listener takes their connections back from hyper once the response has begun.
//!
//! Invariant: while a client reads nothing, its body is at rest between two pieces. The making of a piece
//! may hold a connection of the database or what others wait for, so it is never left in the middle.

use std::collections::VecDeque;
use std::error::Error;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Method, Request, Response, Version};
use hyper::body::Body;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::http::kit::open_ended::OpenEnded;

/// How many pieces of a body are written together, at most: a client that reads nothing holds no
/// more.
const PIECES: usize = 16;
/// How many bytes make it less.
const ENOUGH_BYTES: usize = 64 * 1024;

/// Returns whether a response to this request may be sent without hyper: there is no body that would
/// have to be read first, and the response is framed in chunks.
pub(super) fn may_be_open_ended<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && !request.headers().contains_key(CONTENT_LENGTH)
        && !request.headers().contains_key(TRANSFER_ENCODING)
}

/// Returns whether the body of a response goes on for as long as the client listens.
pub(super) fn is_open_ended<B>(response: &Response<B>) -> bool {
    response.extensions().get::<OpenEnded>().is_some()
}

/// Sends a response in chunks (RFC 9112 `#section-7.1`). The connection ends with it.
pub(super) async fn send<S, B>(mut stream: S, response: Response<B>) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let head = head(&response);
    stream.write_all(&head).await?;
    drop(head);
    let mut pieces = Pieces { body: response.into_body(), ahead: None, is_ended: false };
    while let Some(mut chunk) = poll_fn(|cx| pieces.poll_chunk(cx)).await? {
        let mut written = pin!(stream.write_all_buf(&mut chunk));
        poll_fn(|cx| {
            pieces.make_ahead(cx);
            written.as_mut().poll(cx)
        })
        .await?;
    }
    stream.write_all(b"0\r\n\r\n").await?;
    stream.shutdown().await
}

/// Returns the status line and the headers.
fn head<B>(response: &Response<B>) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let line = format!("HTTP/1.1 {} {reason}\r\n", status.as_str());
    head.extend_from_slice(line.as_bytes());
    let own = [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING];
    for (name, value) in response.headers().iter().filter(|(name, _)| !own.contains(name)) {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
    head
}

/// The body of a response, piece by piece.
struct Pieces<B> {
    body: B,
    /// The piece after the last one that was taken, if it is made already.
    ahead: Option<io::Result<Bytes>>,
    is_ended: bool,
}

impl<B> Pieces<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Returns what the body has ready, as one chunk; `None` if the body has ended.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Chunk>>> {
        let (mut pieces, mut length) = (VecDeque::new(), 0);
        while !self.is_ended && pieces.len() < PIECES && length < ENOUGH_BYTES {
            self.make_ahead(cx);
            match self.ahead.take() {
                Some(piece) => {
                    let piece = piece?;
                    length += piece.len();
                    pieces.push_back(piece);
                }
                None if self.is_ended => {}
                None if pieces.is_empty() => return Poll::Pending,
                None => break,
            }
        }
        if pieces.is_empty() {
            return Poll::Ready(Ok(None));
        }
        pieces.push_front(format!("{length:x}\r\n").into());
        pieces.push_back(Bytes::from_static(b"\r\n"));
        Poll::Ready(Ok(Some(Chunk { pieces })))
    }

    /// Lets the body go on until its next piece is made.
    fn make_ahead(&mut self, cx: &mut Context<'_>) {
        while self.ahead.is_none() && !self.is_ended {
            match Pin::new(&mut self.body).poll_frame(cx) {
                // A chunk of length 0 would end the body.
                Poll::Ready(Some(Ok(frame))) => {
                    self.ahead = frame.into_data().ok().filter(|piece| !piece.is_empty()).map(Ok);
                }
                Poll::Ready(Some(Err(err))) => self.ahead = Some(Err(io::Error::other(err))),
                Poll::Ready(None) => self.is_ended = true,
                Poll::Pending => return,
            }
        }
    }
}

/// Pieces that are written together.
#[derive(Debug)]
struct Chunk {
    pieces: VecDeque<Bytes>,
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map(Bytes::as_ref).unwrap_or_default()
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let together = slices.iter_mut().zip(&self.pieces);
        together.map(|(slice, piece)| *slice = IoSlice::new(piece)).count()
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(piece) = self.pieces.front_mut() {
            if count < piece.len() {
                return piece.advance(count);
            }
            count -= piece.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::sync::{Notify, Semaphore};
    use tokio::time::timeout;

    use super::*;

    /// Sends a body of these pieces. Returns whether that succeeded, and what the client received.
    async fn sent(pieces: Vec<Result<&'static str, &'static str>>) -> (bool, String) {
        let frames = pieces.into_iter().map(|piece| piece.map(|piece| Frame::data(piece.into())));
        let response = Response::builder()
            .header("content-length", "7")
            .header("x-accel-buffering", "no")
            .body(StreamBody::new(stream::iter(frames)))
            .unwrap();
        let (ours, mut theirs) = duplex(16);
        let sending = tokio::spawn(send(ours, response));
        let mut received = String::new();
        theirs.read_to_string(&mut received).await.unwrap();
        (sending.await.unwrap().is_ok(), received)
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\nx-accel-buffering: no\r\nconnection: close\r\n\
                        transfer-encoding: chunked\r\n\r\n";

    #[tokio::test]
    async fn pieces_that_are_ready_are_one_chunk() {
        let (is_sent, received) = sent(vec![Ok("high "), Ok(""), Ok("water at noon")]).await;
        assert!(is_sent);
        assert_eq!(received, format!("{HEAD}12\r\nhigh water at noon\r\n0\r\n\r\n"));
        let pieces = vec![Ok("x"); PIECES + 1];
        assert_eq!(
            sent(pieces).await.1,
            format!("{HEAD}10\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", "x".repeat(PIECES))
        );
    }

    #[tokio::test]
    async fn a_piece_is_finished_although_the_client_reads_nothing() {
        let connection = Arc::new(Semaphore::new(1));
        let (begun, answer) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let parts = (Arc::clone(&connection), Arc::clone(&begun), Arc::clone(&answer));
        let pieces = stream::unfold((0, parts), |(n, parts)| async move {
            if n > 0 {
                let _held = parts.0.acquire().await.unwrap();
                parts.1.notify_one();
                parts.2.notified().await;
            }
            let piece = Frame::data(Bytes::from_static(&[b'x'; 64]));
            Some((Ok::<_, io::Error>(piece), (n + 1, parts)))
        });
        let (ours, mut theirs) = duplex(16);
        let sending = tokio::spawn(send(ours, Response::new(StreamBody::new(Box::pin(pieces)))));
        let mut head = vec![0; head(&Response::new(())).len()];
        theirs.read_exact(&mut head).await.unwrap();
        begun.notified().await;
        answer.notify_one();
        let free = timeout(Duration::from_secs(10), connection.acquire()).await;
        assert!(free.is_ok(), "the second piece was left in the middle");
        sending.abort();
    }

    #[tokio::test]
    async fn a_body_without_pieces_is_empty() {
        assert_eq!(sent(vec![]).await, (true, format!("{HEAD}0\r\n\r\n")));
    }

    #[tokio::test]
    async fn a_body_that_fails_has_no_last_chunk() {
        assert_eq!(sent(vec![Ok("x"), Err("no more")]).await, (false, HEAD.to_owned()));
    }

    #[test]
    fn only_requests_without_a_body_over_http_1_1_are_taken_over() {
        let request = |method: Method, version: Version, length: Option<&str>| {
            let mut request = Request::builder().method(method).version(version);
            if let Some(length) = length {
                request = request.header(CONTENT_LENGTH, length);
            }
            may_be_open_ended(&request.body(()).unwrap())
        };
        assert!(request(Method::GET, Version::HTTP_11, None));
        assert!(!request(Method::GET, Version::HTTP_10, None));
        assert!(!request(Method::GET, Version::HTTP_11, Some("1")));
        assert!(!request(Method::HEAD, Version::HTTP_11, None));
        assert!(!request(Method::POST, Version::HTTP_11, None));
    }
}
