//! A write timeout for connections whose client does not read (rule S19).
//!
//! A client that sends a request and never reads the reply would hold its connection for ever: the
//! reply waits in buffers, and nothing else bounds the wait. A client that reads anything at all is
//! waited for, however slow it is.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long a write may make no progress. The system buffers much, so a slow client takes it in
/// large pieces, far apart.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The connection `inner`, with a write timeout.
#[derive(Debug)]
pub(crate) struct WriteTimeout<S> {
    inner: S,
    /// When the timeout expires; `None` while nothing waits to be written.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(inner: S) -> WriteTimeout<S> {
        WriteTimeout { inner, deadline: None }
    }

    /// Returns the result of an attempt to write, or a timeout if writing has been blocked for too
    /// long.
    fn or_timed_out<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        deadline.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.or_timed_out(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.or_timed_out(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.or_timed_out(cx, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.or_timed_out(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn s19_a_client_that_does_not_read_times_out() {
        let (ours, _theirs) = duplex(16);
        let (mut writer, started) = (WriteTimeout::new(ours), Instant::now());
        let err = writer.write_all(&[0; 17]).await.unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed(), WRITE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_does_not_time_out() {
        let (ours, mut theirs) = duplex(16);
        let mut writer = WriteTimeout::new(ours);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 16];
            for _ in 0..4 {
                sleep(WRITE_TIMEOUT - Duration::from_secs(1)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
        });
        writer.write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_two_replies_does_not_time_out() {
        let (ours, mut theirs) = duplex(16);
        let mut writer = WriteTimeout::new(ours);
        for _ in 0..2 {
            writer.write_all(&[0; 16]).await.unwrap();
            writer.flush().await.unwrap();
            theirs.read_exact(&mut [0; 16]).await.unwrap();
            sleep(2 * WRITE_TIMEOUT).await;
        }
    }
}
