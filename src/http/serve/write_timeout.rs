//! A connection that gives up on a client who does not read (rule S19).
//!
//! A client that asks and never takes the answer would hold its connection for ever: the
//! answer waits in buffers, and nothing else bounds the wait. Whoever takes anything at all
//! is waited for, however slow.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long nothing may be taken of what is to be written. The system buffers much, so that
/// a slow client takes it in large pieces, far apart.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection `inner`; writing to it fails once nothing could be written for
/// [`PATIENCE`].
#[derive(Debug)]
pub(crate) struct Patient<S> {
    inner: S,
    /// Ends the patience; `None` while nothing waits to be written.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S) -> Patient<S> {
        Patient { inner, end: None }
    }

    /// What came of an attempt to write, unless it has waited for too long.
    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.judge(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.judge(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.judge(cx, shut)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.judge(cx, written)
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
    async fn s19_who_does_not_read_is_given_up() {
        let (ours, _theirs) = duplex(16);
        let (mut patient, begun) = (Patient::new(ours), Instant::now());
        let err = patient.write_all(&[0; 17]).await.unwrap_err();
        assert_eq!(err.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_is_waited_for() {
        let (ours, mut theirs) = duplex(16);
        let mut patient = Patient::new(ours);
        let reading = tokio::spawn(async move {
            let mut piece = [0; 16];
            for _ in 0..4 {
                sleep(PATIENCE - Duration::from_secs(1)).await;
                theirs.read_exact(&mut piece).await.unwrap();
            }
        });
        patient.write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn silence_between_two_answers_is_no_fault_of_the_reader() {
        let (ours, mut theirs) = duplex(16);
        let mut patient = Patient::new(ours);
        for _ in 0..2 {
            patient.write_all(&[0; 16]).await.unwrap();
            patient.flush().await.unwrap();
            theirs.read_exact(&mut [0; 16]).await.unwrap();
            sleep(2 * PATIENCE).await;
        }
    }
}
