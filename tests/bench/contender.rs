//! The answering side: reads all documents once per line of standard input and says
//! how long that took and how many entries it found.

use std::error::Error;
use std::hint::black_box;
use std::io::{self, BufRead};
use std::panic::{self, catch_unwind};
use std::time::Duration;

use feedgate_feed::Context;
use quick_xml::Reader;
use quick_xml::events::Event;
use rustix::time::{ClockId, clock_gettime};
use url::Url;

use super::documents;

/// A round reads the documents as often as fits in this, so that a small folder
/// measures as well as a large one.
const ROUND: Duration = Duration::from_millis(150);

/// Reads a document; says how many entries there were.
type Read = fn(&[u8]) -> usize;

/// Answers until standard input ends.
pub(crate) fn run(name: &str) -> Result<(), Box<dyn Error>> {
    let read: Read = match name {
        "feedgate" => feedgate,
        "feedgate, parsing" => feedgate_parsing,
        "feed-rs" => feed_rs,
        "scan" => scan,
        _ => return Err(format!("no contender is called {name}").into()),
    };
    panic::set_hook(Box::new(|_| {})); // feed-rs panics on some documents, as expected
    let documents = documents::load()?;
    for line in io::stdin().lock().lines() {
        line?;
        let begun = now();
        let (mut entries, mut times) = (0, 0);
        while times == 0 || now() - begun < ROUND {
            entries = documents.iter().map(|document| read(black_box(document))).sum();
            times += 1;
        }
        println!("{} {entries}", (now() - begun).as_nanos() / times);
    }
    Ok(())
}

/// The processor time this thread has used.
pub(crate) fn now() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Everything: bytes to the bytes of one valid Atom document.
fn feedgate(document: &[u8]) -> usize {
    let Ok(normalized) = feedgate_feed::normalize(document, &context()) else { return 0 };
    black_box(normalized.to_atom());
    normalized.feed().entries.len()
}

/// Reading alone, into our model.
fn feedgate_parsing(document: &[u8]) -> usize {
    let feed = feedgate_feed::parse::parse(document, &context());
    feed.map_or(0, |feed| black_box(feed).entries.len())
}

fn context() -> Context {
    Context::new(Url::parse("http://feeds.test/feed.xml").expect("it is a URL"))
}

/// Reading alone, into the model of feed-rs.
fn feed_rs(document: &[u8]) -> usize {
    let feed = catch_unwind(|| feed_rs::parser::parse(document));
    feed.ok().and_then(Result::ok).map_or(0, |feed| black_box(feed).entries.len())
}

/// The tokenizer alone: what nobody who reads XML with quick-xml can be faster than.
fn scan(document: &[u8]) -> usize {
    let text = String::from_utf8_lossy(document);
    let mut reader = Reader::from_str(&text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut entries = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                entries += usize::from(matches!(tag.local_name().as_ref(), "item" | "entry"));
            }
            Ok(Event::Eof) | Err(_) => return entries,
            Ok(event) => {
                black_box(event);
            }
        }
    }
}
