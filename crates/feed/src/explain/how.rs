//! What a pass did to a field, in one stable word of `docs/normalizer.md`.

use std::collections::HashMap;

use super::GUESS;
use super::fields::Field;
use crate::context::Context;
use crate::model::{Entry, Feed};
use crate::repair::Code;

/// Something that a pass did to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Which pass.
    pub(super) pass: &'static str,
    /// What it did.
    pub(super) how: &'static str,
}

/// A feed after a pass.
pub(super) struct Seen<'f> {
    pass: &'static str,
    feed: &'f Feed,
    context: &'f Context,
    /// What was told of ids, by the marks of their entries.
    told: HashMap<usize, Vec<Code>>,
}

impl<'f> Seen<'f> {
    pub(super) fn of(pass: &'static str, feed: &'f Feed, context: &'f Context) -> Seen<'f> {
        let mut told: HashMap<usize, Vec<Code>> = HashMap::new();
        for repair in &feed.repairs {
            if let Some(mark) = repair.mark.number() {
                told.entry(mark).or_default().push(repair.code);
            }
        }
        Seen { pass, feed, context, told }
    }

    /// What the pass did to a field of the feed or of one of its entries; `is_new` says
    /// that there was no such field before.
    pub(super) fn how(
        &self,
        entry: Option<usize>,
        field: &Field,
        is_new: bool,
    ) -> Vec<&'static str> {
        let entry = entry.and_then(|at| self.feed.entries.get(at));
        let entry = entry.filter(|_| !field.is_of_source());
        let how = match (self.pass, field.name(), entry) {
            ("links", ..) => "made_absolute",
            ("language", "lang", Some(_)) if is_new => "from_feed",
            ("language", "lang", None) if is_new => "from_header",
            (GUESS, ..) => "guessed",
            ("dates", "updated", entry) => self.dated(entry),
            ("dates", ..) => "kept",
            ("identity", "id", Some(entry)) => return self.identified(entry),
            ("identity", "id", None) => self.feed_identified(is_new),
            ("people", _, Some(_)) if is_new => "from_feed",
            ("people", _, None) if is_new => "stand_in",
            ("activity", ..) => "assumed",
            ("geo", ..) => "from_place",
            ("settle", "content", Some(entry)) if entry.summary.is_some() => "from_summary",
            ("settle", "summary", Some(entry)) if entry.title.is_some() => "from_title",
            ("settle", "content" | "summary", Some(_)) => "left_empty",
            _ => "tidied",
        };
        vec![how]
    }

    /// Where `updated` is from that the document does not say.
    fn dated(&self, entry: Option<&Entry>) -> &'static str {
        let received = self.context.received_at.map(|at| at.fixed_offset());
        let epoch = |of: &Feed| of.updated.is_some_and(|date| date.timestamp() == 0);
        let is_unknown = epoch(self.feed) && received.is_none();
        match entry {
            Some(entry) if entry.published.is_some() => "from_published",
            Some(_) if received.is_some() => "received",
            Some(_) if is_unknown => "epoch",
            Some(_) => "from_feed",
            None if is_unknown => "epoch",
            None if self.feed.updated == received => "received",
            None => "from_entries",
        }
    }

    /// On which steps of the ladder (rule N1) the id of an entry was found.
    fn identified(&self, entry: &Entry) -> Vec<&'static str> {
        let told = entry.mark.number().and_then(|mark| self.told.get(&mark));
        let words = told.into_iter().flatten().filter_map(|code| match code {
            Code::IdNotAnIri => Some("wrapped"),
            Code::IdFromLink => Some("from_link"),
            Code::IdGenerated => Some("generated"),
            Code::IdRepeated => Some("told_apart"),
            _ => None,
        });
        let words: Vec<&str> = words.collect();
        if words.is_empty() { vec!["tidied"] } else { words }
    }

    fn feed_identified(&self, is_new: bool) -> &'static str {
        let links = &self.feed.links;
        let by_link = links.iter().any(|link| link.rel == "self" && link.href == self.feed.id);
        match (is_new, by_link) {
            (true, true) => "from_link",
            (true, false) => "from_url",
            (false, _) => "wrapped",
        }
    }
}
