//! The publisher of one feed.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::AnyError;

/// The bytes of the text of an entry.
const TEXT_BYTES: usize = 1_000;

/// A publisher, whose feed has its newest ten entries.
pub(crate) struct Publisher {
    port: u16,
    newest: Arc<AtomicU64>,
}

impl Publisher {
    /// Starts one with one entry. It answers until the process ends.
    pub(crate) fn start() -> Result<Publisher, AnyError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let newest = Arc::new(AtomicU64::new(1));
        let shared = Arc::clone(&newest);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let body = feed(shared.load(Ordering::SeqCst));
                let _ = stream.read(&mut [0; 4_096]);
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/rss+xml\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Ok(Publisher { port, newest })
    }

    /// The feed.
    pub(crate) fn topic(&self) -> String {
        format!("http://127.0.0.1:{}/feed", self.port)
    }

    /// Publishes an entry, and returns a text that occurs in no earlier one.
    pub(crate) fn publish(&self) -> String {
        marker(self.newest.fetch_add(1, Ordering::SeqCst) + 1)
    }
}

fn marker(number: u64) -> String {
    format!("marker-of-entry-{number:06}")
}

fn feed(newest: u64) -> String {
    let items = (newest.saturating_sub(9).max(1)..=newest).rev().map(|number| {
        let text = "tide ".repeat(TEXT_BYTES / 5);
        format!(
            "<item><guid isPermaLink='false'>{number}</guid><title>{}</title>\
             <description>{text}</description></item>",
            marker(number)
        )
    });
    let items: String = items.collect();
    format!(
        "<rss version='2.0'><channel><title>Tides</title><link>http://tides.test/</link>\
         <description>Every tide</description>{items}</channel></rss>"
    )
}
