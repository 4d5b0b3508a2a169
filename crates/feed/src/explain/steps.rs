//! The effect of a pass on a field, as one stable word.

use std::collections::HashMap;

use super::DETECTION;
use super::fields::Field;
use crate::context::Context;
use crate::model::{Entry, Feed};
use crate::own_elements;
use crate::repair::RepairCode;

/// A change that a pass made to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The name of the pass.
    pub(super) pass: &'static str,
    /// The kind of change.
    pub(super) how: &'static str,
}

/// A feed after a pass.
pub(super) struct AfterPass<'f> {
    pass: &'static str,
    feed: &'f Feed,
    context: &'f Context,
    /// The codes of repairs, by the trace ids of their entries.
    codes: HashMap<usize, Vec<RepairCode>>,
}

impl<'f> AfterPass<'f> {
    pub(super) fn new(pass: &'static str, feed: &'f Feed, context: &'f Context) -> AfterPass<'f> {
        let mut codes: HashMap<usize, Vec<RepairCode>> = HashMap::new();
        for repair in &feed.repairs {
            if let Some(id) = repair.trace_id.number() {
                codes.entry(id).or_default().push(repair.code);
            }
        }
        AfterPass { pass, feed, context, codes }
    }

    /// Returns how the pass changed a field of the feed or of one of its entries. `is_new` means
    /// that the field had no value before the pass.
    pub(super) fn describe(
        &self,
        entry: Option<usize>,
        field: &Field,
        is_new: bool,
    ) -> Vec<&'static str> {
        let entry = entry.and_then(|at| self.feed.entries.get(at));
        let entry = entry.filter(|_| !field.is_of_source());
        if let Some(how) = entry.and_then(|entry| describe_own(entry, field)) {
            return vec![how];
        }
        let how = match (self.pass, field.name(), entry) {
            ("links", "links", Some(_)) if is_new => "added",
            ("links", ..) => "made_absolute",
            ("language", "lang", Some(_)) if is_new => "from_feed",
            ("language", "lang", None) if is_new => "from_header",
            (DETECTION, ..) => "guessed",
            ("dates", "updated", entry) => self.describe_date(entry),
            ("dates", "published", _) if is_new => "from_created",
            ("dates", ..) => "kept",
            ("identity", "id", Some(entry)) => return self.describe_id(entry),
            ("identity", "id", None) => self.describe_feed_id(is_new),
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

    /// Returns the origin of `updated` where it did not come from the document.
    fn describe_date(&self, entry: Option<&Entry>) -> &'static str {
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

    /// Returns the methods by which the id of an entry was derived (rule N1).
    fn describe_id(&self, entry: &Entry) -> Vec<&'static str> {
        let codes = entry.trace_id.number().and_then(|id| self.codes.get(&id));
        let words = codes.into_iter().flatten().filter_map(|code| match code {
            RepairCode::IdNotAnIri => Some("wrapped"),
            RepairCode::IdFromLink => Some("from_link"),
            RepairCode::IdGenerated => Some("generated"),
            RepairCode::IdRepeated => Some("told_apart"),
            _ => None,
        });
        let words: Vec<&str> = words.collect();
        if words.is_empty() { vec!["tidied"] } else { words }
    }

    fn describe_feed_id(&self, is_new: bool) -> &'static str {
        let links = &self.feed.links;
        let by_link = links.iter().any(|link| link.rel == "self" && link.href == self.feed.id);
        match (is_new, by_link) {
            (true, true) => "from_link",
            (true, false) => "from_url",
            (false, _) => "wrapped",
        }
    }
}

/// Returns the word for an element that the normalizer adds to an entry.
fn describe_own(entry: &Entry, field: &Field) -> Option<&'static str> {
    let at = field.label.strip_prefix("extensions[")?.strip_suffix(']')?.parse::<usize>().ok()?;
    let element = entry.extensions.get(at).filter(|element| own_elements::is_own(element))?;
    Some(if element.name == "derived" { "marked" } else { "kept" })
}
