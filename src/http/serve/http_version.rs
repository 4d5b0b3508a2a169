//! The version of HTTP of a connection, which its first bytes tell (RFC 9113 `#section-3.4`).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// What a client of HTTP/2 sends first.
const PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HttpVersion {
    /// HTTP/1.0 or HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A connection whose first bytes have been read, and are read again.
#[derive(Debug)]
pub(super) struct Begun<S> {
    inner: S,
    first: [u8; PREFACE.len()],
    /// The bytes of `first` that are still to be read again.
    unread: (u8, u8),
}

/// Reads as much as it takes to know the version. A connection that ends before is one of HTTP/1.
pub(super) async fn begin<S: AsyncRead + Unpin>(
    mut inner: S,
) -> io::Result<(HttpVersion, Begun<S>)> {
    let (mut first, mut held) = ([0; PREFACE.len()], 0);
    let version = loop {
        let read = inner.read(&mut first[held..]).await?;
        held += read;
        if read == 0 || first[..held] != PREFACE[..held] {
            break HttpVersion::Http1;
        }
        if held == PREFACE.len() {
            break HttpVersion::Http2;
        }
    };
    // The preface is far shorter than 256 bytes.
    let unread = (0, u8::try_from(held).unwrap_or_default());
    Ok((version, Begun { inner, first, unread }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (from, to) = self.unread;
        if from == to {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let length = usize::from(to - from).min(buf.remaining());
        let from = usize::from(from);
        buf.put_slice(&self.first[from..from + length]);
        self.unread.0 += u8::try_from(length).unwrap_or_default();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn the_version_is_known_by_the_first_bytes_however_they_arrive() {
        let http2 = [PREFACE.as_slice(), b"frames"].concat();
        #[rustfmt::skip]
        let cases: [(&str, &[u8], HttpVersion); 5] = [
            ("HTTP/2",                    &http2,                      HttpVersion::Http2),
            ("HTTP/1",                    b"GET / HTTP/1.1\r\n\r\n",   HttpVersion::Http1),
            ("a method like the preface", b"PRINT / HTTP/1.1\r\n\r\n", HttpVersion::Http1),
            ("too short to know",         b"PRI",                      HttpVersion::Http1),
            ("nothing",                   b"",                         HttpVersion::Http1),
        ];
        for (why, sent, want) in cases {
            for piece in [1, 1_000] {
                let (ours, mut theirs) = duplex(1_000);
                for piece in sent.chunks(piece) {
                    theirs.write_all(piece).await.unwrap();
                }
                drop(theirs);
                let (version, mut begun) = begin(ours).await.unwrap();
                assert_eq!(version, want, "{why}");
                let mut read = Vec::new();
                begun.read_to_end(&mut read).await.unwrap();
                assert_eq!(read, sent, "{why}");
            }
        }
    }
}
