//! The server that is polled: a small feed at every path, and "not modified" for whoever
//! asks conditionally. It does as little as it can, because it is not what is measured.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Paths under which connections are kept begin like this; elsewhere each answer ends its
/// connection, as it is for a resource that is asked once an hour.
pub(crate) const KEPT: &str = "/kept";

const FEED: &str = "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Tides</title>\
    <link>http://tides.test/</link><description>Every one</description><ttl>60</ttl>\
    <item><title>High</title><guid isPermaLink=\"false\">tag:tides.test,2026:1</guid></item>\
    <item><title>Low</title><guid isPermaLink=\"false\">tag:tides.test,2026:2</guid></item>\
    </channel></rss>";

/// Serves until its runtime ends.
pub(crate) async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let (mut unread, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        unread.extend_from_slice(&chunk[..read]);
        if !unread.ends_with(b"\r\n\r\n") {
            continue;
        }
        let head = String::from_utf8_lossy(&unread).to_ascii_lowercase();
        let path = head.split(' ').nth(1).unwrap_or_default();
        let is_kept = path.starts_with(KEPT);
        let connection = if is_kept { "keep-alive" } else { "close" };
        let answer = if path == "/robots.txt" {
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n".to_owned()
        } else if head.contains("\r\nif-none-match:") {
            "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n".to_owned()
        } else {
            let length = FEED.len();
            format!("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {length}\r\n")
        };
        let body = if answer.contains("200 OK") { FEED } else { "" };
        let answer = format!("{answer}Connection: {connection}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await?;
        unread.clear();
        if !is_kept {
            return stream.shutdown().await;
        }
    }
}
