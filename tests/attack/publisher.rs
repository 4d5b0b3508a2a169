//! The publishers and callbacks of strangers, on all addresses of 127.0.0.0/8.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::AnyError;
use super::responder::{self, Respond};

/// Just below the limit of a document.
const LARGE_BYTES: usize = 9_600_000;
/// The entries of `/feed/…`.
const ENTRIES: u64 = 30;
/// The entries of `/flood`, all new with each fetch.
const FLOOD_ENTRIES: u64 = 4_900;

/// A server for everything that a stranger has.
pub(crate) struct Publisher {
    port: u16,
}

impl Publisher {
    /// Starts one. It answers until the process ends.
    pub(crate) fn start() -> Result<Publisher, AnyError> {
        let port = responder::start(Arc::new(Documents { fetches: AtomicU64::new(0) }))?;
        Ok(Publisher { port })
    }

    /// The URL of a path at the address 127.`net`.x.y that the number selects.
    pub(crate) fn url(&self, net: u8, number: usize, path: &str) -> String {
        format!("http://127.{net}.{}.{}:{}{path}", number / 250, number % 250 + 1, self.port)
    }

    /// The port of all addresses.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

struct Documents {
    fetches: AtomicU64,
}

impl Respond for Documents {
    fn respond(&self, request: &str) -> String {
        let target = request.split_whitespace().nth(1).unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if let Some(challenge) = query.split("challenge=").nth(1) {
            return challenge.split('&').next().unwrap_or_default().to_owned();
        }
        let filled =
            |head: &str, unit: &str| head.to_owned() + &unit.repeat(LARGE_BYTES / unit.len());
        match path {
            "/numbers" => filled("[", "1,"),
            "/objects" => filled("{\"items\":[", "{\"\":0},"),
            "/elements" => filled("<rss><channel><item>", "<a/>"),
            "/values" => filled("[", "12345678,").trim_end_matches(',').to_owned() + "]",
            "/parts" => filled("<rss><channel><item>", "<x:y>z</x:y>"),
            "/tags" => {
                filled("<rss><channel><item><description><![CDATA[", "<p>") + "]]></description>"
            }
            "/page" => filled("<html><body>", "<p a b c d>"),
            "/flood" => {
                let fetch = self.fetches.fetch_add(1, Ordering::Relaxed);
                feed(fetch * FLOOD_ENTRIES, FLOOD_ENTRIES)
            }
            _ if path.starts_with("/feed/") => feed(0, ENTRIES),
            _ => String::new(),
        }
    }
}

fn feed(first: u64, count: u64) -> String {
    let text = "High water, and what it left behind. ".repeat(4);
    let mut items = String::new();
    for number in first..first + count {
        // Writing to a string cannot fail.
        let _ = write!(
            items,
            "<item><title>Tide {number}</title><guid isPermaLink='false'>{number}</guid>\
             <link>http://tides.test/{number}</link><description>{text}</description></item>"
        );
    }
    format!(
        "<rss version='2.0'><channel><title>Tides</title><link>http://tides.test/</link>\
         <description>Every tide</description>{items}</channel></rss>"
    )
}
