//! What it costs to compare an entry with the queries of all tracks: `cargo bench --bench track`.
//!
//! No query matches, and each has a word that occurs in the entries, so that only the index keeps
//! them apart. The cost includes reading the stored entry.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::error::Error;
use std::fmt::Write;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use feedgate_core::polling::Polling;
use feedgate_core::query::{EntryText, Query, QueryIndex};
use feedgate_core::record::Seq;
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::status::Status;
use feedgate_core::topic::Topic;

/// The numbers of queries.
const QUERIES: [usize; 3] = [1, 1_000, 100_000];
/// The entries of one round.
const ENTRIES: usize = 500;
/// The words of an entry.
const WORDS: usize = 200;
/// The different words that entries are made of.
const VOCABULARY: usize = 5_000;
/// How often all entries are compared. The best round counts.
const ROUNDS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let resource = resource()?;
    let entries: Vec<String> = (0..ENTRIES).map(entry).collect();
    println!("| queries | index built in, ms | µs for each entry | times that of one query |");
    println!("| ---: | ---: | ---: | ---: |");
    let mut base = None;
    for many in QUERIES {
        let begun = Instant::now();
        let mut index = QueryIndex::new();
        for id in 0..many {
            index.insert(id, Query::parse(&query(id))?);
        }
        let built = begun.elapsed();
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            best = best.min(compare(&resource, &entries, &index)?);
        }
        let cost = best.as_secs_f64() * 1e6 / ENTRIES as f64;
        let base = *base.get_or_insert(cost);
        println!("| {many} | {} | {cost:.1} | {:.2} |", built.as_millis(), cost / base);
    }
    Ok(())
}

fn compare(
    resource: &Resource,
    entries: &[String],
    index: &QueryIndex<usize>,
) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    for atom in entries {
        let entry = EntryText::read(resource, atom).ok_or("the entry cannot be read")?;
        let matching = index.matching(&entry);
        if !matching.is_empty() {
            return Err(format!("{matching:?} match").into());
        }
    }
    Ok(begun.elapsed())
}

/// Returns a query with a word of the vocabulary and one that occurs nowhere, in one of four forms.
fn query(id: usize) -> String {
    let common = word(id);
    match id % 4 {
        0 => format!("{common} rare{id}"),
        1 => format!("\"{common} rare{id}\" -other{id}"),
        2 => format!("{common} (rare{id} | seldom{id})"),
        _ => format!("{common} rare{id} site:example.com language:en"),
    }
}

fn word(number: usize) -> String {
    format!("word{}", number % VOCABULARY)
}

fn entry(number: usize) -> String {
    let mut text = String::new();
    for place in 0..WORDS {
        let _ = write!(text, "{} ", word(number * 7_919 + place * 104_729));
    }
    format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><id>tag:bench,2026:{number}</id>\
         <title>{}</title><link rel=\"alternate\" href=\"https://blog.example.org/{number}\"/>\
         <updated>2026-11-22T00:00:00Z</updated><content type=\"html\">&lt;p&gt;{text}&lt;/p&gt;</content></entry>",
        word(number),
    )
}

fn resource() -> Result<Resource, Box<dyn Error>> {
    let at = DateTime::<Utc>::UNIX_EPOCH;
    Ok(Resource {
        id: ResourceId(1),
        topic: Topic::parse("https://blog.example.org/feed")?,
        fetch_url: "https://blog.example.org/feed".to_owned(),
        kind: ResourceKind::Feed,
        head: Seq::NONE,
        body_version: 0,
        feed_head: "<id>tag:bench,2026:feed</id><title>Bench</title>".to_owned(),
        next_fetch: at,
        status: Status::new(at),
        polling: Polling::default(),
        subscribers: 1,
        pushed_until: None,
        exposure: Default::default(),
    })
}
