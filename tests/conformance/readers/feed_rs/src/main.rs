//! Reads documents with feed-rs, for tests/conformance/scoreboard. The manifest and the output are
//! those of read.py.

use std::error::Error;
use std::fs;
use std::panic::catch_unwind;
use std::time::Instant;

use feed_rs::model::{Entry, Feed};
use serde_json::{Value, json};

/// How often a document is read.
const TIMES: u64 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [manifest, output] = arguments.as_slice() else { return Err("two files, please".into()) };
    std::panic::set_hook(Box::new(|_| {})); // feed-rs panics on some documents
    let mut results = String::new();
    for line in fs::read_to_string(manifest)?.lines() {
        let document: Value = serde_json::from_str(line)?;
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let bytes = fs::read(text("file"))?;
        let times = document["times"].as_u64().unwrap_or(TIMES);
        let result = read(&bytes, &text("url"), times);
        let (entries, nanoseconds, error) = match result {
            Ok((feed, nanoseconds)) => {
                let entries = feed.entries.iter().map(entry).collect();
                (Value::Array(entries), json!(nanoseconds), Value::Null)
            }
            Err(error) => (json!([]), Value::Null, json!(error)),
        };
        let result =
            json!({"file": text("file"), "entries": entries, "error": error, "ns": nanoseconds});
        results.push_str(&result.to_string());
        results.push('\n');
    }
    fs::write(output, results)?;
    Ok(())
}

/// Reads a document a few times. Returns the feed and the shortest time.
fn read(bytes: &[u8], url: &str, times: u64) -> Result<(Feed, u64), String> {
    let mut shortest = u64::MAX;
    let mut read = None;
    for _ in 0..times {
        let begun = Instant::now();
        let parsed = catch_unwind(|| {
            let parser = feed_rs::parser::Builder::new().base_uri(Some(url)).build();
            parser.parse(bytes)
        });
        shortest = shortest.min(begun.elapsed().as_nanos().try_into().unwrap_or(u64::MAX));
        let parsed = parsed.map_err(|_| "a panic".to_owned())?;
        read = Some(parsed.map_err(|error| error.to_string())?);
    }
    Ok((read.ok_or("not read")?, shortest))
}

fn entry(entry: &Entry) -> Value {
    let text = entry.content.as_ref().and_then(|content| content.body.clone());
    let text = text.or_else(|| entry.summary.as_ref().map(|summary| summary.content.clone()));
    let media = entry.media.iter().flat_map(|object| &object.content);
    let enclosures: Vec<String> =
        media.filter_map(|content| content.url.as_ref().map(ToString::to_string)).collect();
    let linked = entry.links.iter().filter(|link| link.rel.as_deref() == Some("enclosure"));
    let enclosures: Vec<String> =
        enclosures.into_iter().chain(linked.map(|link| link.href.clone())).collect();
    let is_page = |link: &&feed_rs::model::Link| {
        link.rel.as_deref().is_none_or(|rel| rel == "alternate") && link.target.is_none()
    };
    json!({
        "id": entry.id,
        "title": entry.title.as_ref().map(|title| title.content.as_str()),
        "link": entry.links.iter().find(is_page).map(|link| link.href.as_str()),
        "published": entry.published.or(entry.updated).map(|date| date.to_rfc3339()),
        "authors": entry.authors.iter().map(|author| &author.name).collect::<Vec<_>>(),
        "categories": entry.categories.iter().map(|category| &category.term).collect::<Vec<_>>(),
        "enclosures": enclosures,
        "text": text,
    })
}
