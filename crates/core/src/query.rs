//! The query language of `track` and `search` (Superfeedr's API, row Q-3).
//!
//! A query is parsed once, into an expression over terms and the conditions of its flags.
//! [`Query::matches`] decides for every use of queries whether an entry matches. Its text is the
//! normal form: queries that differ in order, case or spelling only have the same.
//!
//! The parser is our own. The well-known query grammars (`tantivy-query-grammar`, FTS5) have no
//! `|` and no flags with a value such as `popularity:>10`, and give a meaning to words and
//! characters that are plain text here: `AND`, `IN`, `*`, `[`, `^`.

mod entry_text;
mod expression;
mod filter;
mod index;
mod keys;
mod places;
mod syntax;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::fmt;

pub use entry_text::EntryText;
pub use filter::{EntryFilter, EntryMatcher};
pub use index::QueryIndex;
pub use keys::{RequiredKeys, SearchKey};
pub use syntax::QueryError;

use expression::Expression;
use places::{HostPattern, LinkPattern};

/// The most that an entry's feed may rank as pornographic if the query does not have `porn:ok`.
const MAX_PORN_RANK: f64 = 0.2;
/// The most that an entry's feed may rank as broken if the query does not have `bozo:ok`.
const MAX_BOZO_RANK: f64 = 0.3;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    expression: Expression,
    flags: Flags,
}

/// The conditions that apply to a whole query.
#[derive(Clone, Debug, Default, PartialEq)]
struct Flags {
    site: Option<HostPattern>,
    not_sites: Vec<HostPattern>,
    link: Option<LinkPattern>,
    not_links: Vec<LinkPattern>,
    language: Option<String>,
    not_languages: Vec<String>,
    /// The popularity of the feed is greater than this.
    popularity: Option<f64>,
    is_porn_ok: bool,
    is_bozo_ok: bool,
}

impl Query {
    /// The maximum length of a query in bytes: it is part of a topic.
    pub const MAX_BYTES: usize = 1_024;

    /// Parses a query.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        syntax::parse(text)
    }

    /// Returns whether an entry matches.
    pub fn matches(&self, entry: &EntryText) -> bool {
        self.flags.matches(entry) && self.expression.matches(entry)
    }

    /// Returns keys of which every matching entry has at least one: the cheapest such set. `None`
    /// if nothing is required of an entry.
    fn required_keys(&self, cost: &dyn Fn(&str) -> usize) -> Option<Vec<String>> {
        let flags = [
            self.flags.site.as_ref().map(HostPattern::site_key),
            self.flags.link.as_ref().map(LinkPattern::link_key),
        ];
        let flags = flags.into_iter().flatten().map(|key| vec![key]);
        expression::cheapest(flags.chain(self.expression.required_keys(cost)), cost)
    }
}

impl Flags {
    fn matches(&self, entry: &EntryText) -> bool {
        let is_ranked_well = (self.is_porn_ok || entry.porn_rank() <= MAX_PORN_RANK)
            && (self.is_bozo_ok || entry.bozo_rank() <= MAX_BOZO_RANK)
            && self.popularity.is_none_or(|least| entry.popularity() > least);
        let is_published_at = |site: &HostPattern| entry.hosts().any(|host| site.matches(host));
        let has_link = |link: &LinkPattern| entry.links().any(|url| link.matches(url));
        is_ranked_well
            && self.site.as_ref().is_none_or(is_published_at)
            && !self.not_sites.iter().any(is_published_at)
            && self.link.as_ref().is_none_or(has_link)
            && !self.not_links.iter().any(has_link)
            && self.matches_language(entry.language())
    }

    /// An entry whose language is not known matches no condition about languages.
    fn matches_language(&self, language: Option<&str>) -> bool {
        match (&self.language, language) {
            (Some(wanted), language) if language != Some(wanted) => false,
            (_, Some(language)) => !self.not_languages.iter().any(|not| not == language),
            (_, None) => self.not_languages.is_empty(),
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if !self.expression.is_empty() {
            parts.push(self.expression.to_string());
        }
        let flags = &self.flags;
        parts.extend(flags.site.iter().map(|site| format!("site:{site}")));
        parts.extend(flags.not_sites.iter().map(|site| format!("-site:{site}")));
        parts.extend(flags.link.iter().map(|link| format!("link:{link}")));
        parts.extend(flags.not_links.iter().map(|link| format!("-link:{link}")));
        parts.extend(flags.language.iter().map(|language| format!("language:{language}")));
        parts.extend(flags.not_languages.iter().map(|language| format!("-language:{language}")));
        parts.extend(flags.popularity.map(|least| format!("popularity:>{least}")));
        parts.extend(flags.is_porn_ok.then(|| "porn:ok".to_owned()));
        parts.extend(flags.is_bozo_ok.then(|| "bozo:ok".to_owned()));
        f.write_str(&parts.join(" "))
    }
}
