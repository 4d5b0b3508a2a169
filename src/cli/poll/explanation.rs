//! Why a document was or was not taken as entries, format by format.

use std::fmt::Write;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::printable;
use crate::jobs::poll::{KnownAs, ParsedDocument, read_document};
use crate::net::FetchedDocument;
use feedgate_feed::documents::DiscoveredFeed;
use feedgate_feed::parse::{self, ConsideredFormat};

/// Said of each format if the URL names a part of the document.
const PART: &str = "the fragment of the URL selects a part of the document, which is never entries";

/// What became of a document in each format, and the feeds that it advertises.
#[derive(Debug)]
pub(super) struct FormatExplanation {
    formats: Vec<ConsideredFormat>,
    advertised: Vec<DiscoveredFeed>,
}

/// Returns whether only a part of the document was requested.
pub(super) fn is_part(read: &ParsedDocument) -> bool {
    match read {
        ParsedDocument::Other(content, _) => content.part.is_some(),
        ParsedDocument::FragmentNotFound(_) => true,
        ParsedDocument::Feed(_) | ParsedDocument::NotAFeed(_) | ParsedDocument::NotMapped(_) => {
            false
        }
    }
}

impl FormatExplanation {
    pub(super) fn new(
        document: &FetchedDocument,
        is_part: bool,
        now: DateTime<Utc>,
    ) -> FormatExplanation {
        let context = document.context(now);
        let mut formats = parse::consider(&document.body, &context);
        if is_part {
            formats.iter_mut().for_each(|format| format.entries = Err(PART.to_owned()));
        }
        // A page is read as a document, with the feeds that its server and its markup name.
        let advertised = match read_document(&document.body, &context, None, KnownAs::Document) {
            ParsedDocument::Other(content, _) => content.feeds,
            _ => Vec::new(),
        };
        FormatExplanation { formats, advertised }
    }

    /// Returns the explanation for programs.
    pub(super) fn to_json(&self) -> Value {
        let formats = self.formats.iter().map(|format| match &format.entries {
            Ok(entries) => json!({ "format": format.name, "taken": true, "entries": entries }),
            Err(why) => json!({ "format": format.name, "taken": false, "reason": why }),
        });
        json!({ "formats": formats.collect::<Vec<_>>(), "advertised": self.advertised })
    }

    /// Writes the explanation for people.
    pub(super) fn write(&self, out: &mut String) {
        for format in &self.formats {
            let verdict = match &format.entries {
                Ok(1) => "taken, 1 entry".to_owned(),
                Ok(entries) => format!("taken, {entries} entries"),
                Err(why) => format!("not taken: {}", printable(why)),
            };
            let _ = writeln!(out, "{:<11} {}: {verdict}", "format", format.name);
        }
        for feed in &self.advertised {
            let about = [feed.mime.as_str(), feed.title.as_str()];
            let about: Vec<&str> = about.into_iter().filter(|text| !text.is_empty()).collect();
            let feed = printable(&format!("{}  {}", feed.href, about.join(", ")));
            let _ = writeln!(out, "{:<11} {feed}", "advertises");
        }
        if self.advertised.is_empty() {
            let _ = writeln!(out, "{:<11} no feed", "advertises");
        }
    }
}
