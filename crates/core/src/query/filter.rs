//! The filter of a subscription: which entries of its topic are sent.

use std::sync::Arc;

use super::{EntryText, Query, QueryError};
use crate::record::{Record, RecordKind};
use crate::resource::Resource;

/// A query that decides which entries of a topic somebody is sent, as its text. It is parsed when
/// entries are compared: a hundred thousand subscriptions are read for each time that one is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EntryFilter(Arc<str>);

/// A filter that was parsed to compare entries.
#[derive(Clone, Debug)]
pub struct EntryMatcher(Query);

impl EntryFilter {
    /// Checks a query.
    pub fn parse(text: &str) -> Result<EntryFilter, QueryError> {
        // A separator of words for the query, which PostgreSQL does not store.
        let text = text.replace('\0', " ");
        Query::parse(&text)?;
        Ok(EntryFilter(text.trim().into()))
    }

    /// Returns the filter with a text that was checked before it was stored.
    pub fn from_stored(text: String) -> EntryFilter {
        EntryFilter(text.into())
    }

    /// The text of the query.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns what compares entries. The feed was chosen by who filters it, so its ranks are no reason to
    /// leave out its entries, as they are for a query over all feeds.
    pub fn matcher(&self) -> Result<EntryMatcher, QueryError> {
        let mut query = Query::parse(&self.0)?;
        (query.flags.is_porn_ok, query.flags.is_bozo_ok) = (true, true);
        Ok(EntryMatcher(query))
    }
}

impl EntryMatcher {
    /// Returns whether a record of `resource` is an entry that matches. The record of a deletion holds only
    /// the id of the entry, and matches nothing.
    pub fn matches(&self, resource: &Resource, record: &Record) -> bool {
        record.kind != RecordKind::Deleted
            && EntryText::read(resource, &record.atom).is_some_and(|entry| self.0.matches(&entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q05_a_filter_keeps_its_text_and_is_refused_for_the_reasons_of_a_query() {
        let filter = EntryFilter::parse(" Laurel  \0hardy ").unwrap();
        assert_eq!(filter.as_str(), "Laurel   hardy");
        assert_eq!(filter, EntryFilter::from_stored("Laurel   hardy".to_owned()));
        for (text, want) in [
            ("", QueryError::Empty),
            ("-a", QueryError::NothingRequired),
            ("\"a", QueryError::UnclosedQuote),
        ] {
            assert_eq!(EntryFilter::parse(text), Err(want), "{text}");
        }
    }
}
