//! The feeds of the demo: one in each format, as irregular as real ones, each with a template for
//! new entries.
//!
//! An entry is identified by its [`mark`], which is part of its text and survives every conversion,
//! so that the entry can be recognized in any notification.

use std::fmt::Write;

/// A feed of the demo.
pub(super) struct Sample {
    /// The name in the output, and the path.
    pub(super) name: &'static str,
    /// The `Content-Type`, which does not always match the format.
    pub(super) content_type: &'static str,
    /// The feed before the first publication.
    document: &'static [u8],
    /// A new entry is inserted before the first occurrence of this text.
    before: &'static str,
    /// Writes the entry with this number.
    entry: fn(u32) -> String,
}

/// All samples.
pub(super) const SAMPLES: [Sample; 7] = [
    Sample {
        name: "rss091.xml",
        content_type: "text/xml",
        document: include_bytes!("../../../fixtures/demo/rss091.xml"),
        before: "<item>",
        entry: |n| format!("<item><title>Soup & bread</title><link>{}</link></item>\n", address(n)),
    },
    Sample {
        name: "rss092.xml",
        content_type: "text/plain",
        document: include_bytes!("../../../fixtures/demo/rss092.xml"),
        before: "<item>",
        entry: |n| {
            format!("<item><description>Crossing {n}: see {}</description></item>\n", address(n))
        },
    },
    Sample {
        name: "rss10.rdf",
        content_type: "application/rdf+xml",
        document: include_bytes!("../../../fixtures/demo/rss10.rdf"),
        before: "<item ",
        entry: |n| {
            let address = address(n);
            format!(
                "<item rdf:about=\"{address}\"><title>Shelf {n}</title><link>{address}</link>\
                 <dc:date>2026-11-03</dc:date></item>\n"
            )
        },
    },
    Sample {
        name: "rss20.xml",
        content_type: "application/rss+xml; charset=utf-8",
        document: include_bytes!("../../../fixtures/demo/rss20.xml"),
        before: "<item>",
        entry: |n| {
            format!(
                "<item><title>Tide {n}</title><guid isPermaLink=\"false\">{}</guid>\
                 <description>In, or out.<br>Or both</description></item>\n",
                mark(n)
            )
        },
    },
    Sample {
        name: "atom03.xml",
        content_type: "application/xml",
        document: include_bytes!("../../../fixtures/demo/atom03.xml"),
        before: "<entry>",
        entry: |n| {
            format!(
                "<entry><title>Boat {n} in</title><id>tag:harbour.test,2026:{}</id>\
                 <issued>2026-11-03T10:00</issued></entry>\n",
                mark(n)
            )
        },
    },
    Sample {
        name: "atom10.xml",
        content_type: "application/atom+xml",
        document: include_bytes!("../../../fixtures/demo/atom10.xml"),
        before: "<entry",
        entry: |n| {
            let mark = mark(n);
            format!(
                "<entry><title>Notice {n}</title><id>tag:school.test,2026:{mark}</id>\
                 <link href=\"{mark}\"/><summary>On the board</summary></entry>\n"
            )
        },
    },
    Sample {
        name: "feed.json",
        content_type: "application/json",
        document: include_bytes!("../../../fixtures/demo/feed.json"),
        before: "{\n      \"id\"",
        entry: |n| {
            format!(
                "{{\"id\": {n}00, \"url\": \"{}\", \"content_text\": \"Loaf\"}},\n    ",
                address(n)
            )
        },
    },
];

impl Sample {
    /// The feed with the entries `numbers`, the last of them on top.
    pub(super) fn with(&self, numbers: &[u32]) -> Vec<u8> {
        let before = self.before.as_bytes();
        let mut windows = self.document.windows(before.len());
        let at = windows.position(|window| window == before).unwrap_or(self.document.len());
        let mut entries = String::new();
        for n in numbers.iter().rev() {
            entries.write_str(&(self.entry)(*n)).unwrap_or_default(); // writing to a String cannot fail
        }
        [&self.document[..at], entries.as_bytes(), &self.document[at..]].concat()
    }
}

const MARK: &str = "feedgate-demo-";

/// The text that occurs in entry `n` only.
fn mark(n: u32) -> String {
    format!("{MARK}{n}.")
}

fn address(n: u32) -> String {
    format!("https://demo.test/{}html", mark(n))
}

/// The numbers of the demo's entries that `document` holds.
pub(super) fn numbers_in(document: &str) -> Vec<u32> {
    let parts = document.split(MARK).skip(1);
    let mut numbers: Vec<u32> = parts
        .filter_map(|part| part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_feed::Context;
    use feedgate_feed::{parse, passes};
    use url::Url;

    #[test]
    fn every_sample_is_a_feed_that_grows() {
        for sample in SAMPLES {
            let count = |numbers: &[u32]| {
                let url = Url::parse("http://demo.test/").unwrap().join(sample.name).unwrap();
                let context = Context::new(url);
                let feed = parse::parse(&sample.with(numbers), &context).unwrap();
                let feed = passes::run(feed, &context);
                let ids: std::collections::BTreeSet<_> =
                    feed.entries.iter().map(|entry| entry.id.clone()).collect();
                ids.len()
            };
            let few = count(&[]);
            assert!(few > 0, "{}", sample.name);
            assert_eq!(count(&[1, 2, 12]), few + 3, "{}", sample.name);
        }
    }

    #[test]
    fn entries_are_known_by_their_marks() {
        for sample in SAMPLES {
            let text = String::from_utf8_lossy(&sample.with(&[1, 12])).into_owned();
            assert_eq!(numbers_in(&text), [1, 12], "{}", sample.name);
        }
    }
}
