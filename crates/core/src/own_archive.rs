//! Addresses of archives of this gateway, as topics.
//!
//! An archive names the hub of the gateway, so readers subscribe to its address. Such a subscription
//! is one to the log behind the archive: nothing is fetched, and the log is not copied.

use url::Url;

use crate::collection::{CollectionKind, CollectionName};
use crate::document_format::DocumentFormat;
use crate::resource_id::ResourceId;
use crate::topic::Topic;

/// The log that an archive shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivedLog {
    /// That of one resource.
    Resource(ResourceId),
    /// That of a collection.
    Collection(CollectionKind),
}

/// A feed that a gateway publishes, as its address describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveAddress {
    /// The log that it shows.
    pub log: ArchivedLog,
    /// The format that the address names.
    pub format: DocumentFormat,
    /// Whether it shows the records of the log, in which each version of an entry has an id of its own,
    /// rather than the newest version of each entry.
    pub shows_versions: bool,
    /// Which entries it shows, as the text of a query; `None`: all.
    pub filter: Option<String>,
}

impl ArchiveAddress {
    /// Parses an address; `None` if it is not that of an archive of the gateway at `public_url`. Archives
    /// of accounts are private and have no topic.
    pub fn parse(public_url: &Url, address: &str) -> Option<ArchiveAddress> {
        let url = Url::parse(address).ok()?;
        if url.origin() != public_url.origin() || url.fragment().is_some() {
            return None;
        }
        let folder = public_url.path().trim_end_matches('/');
        let path = url.path().strip_prefix(folder)?.strip_prefix('/')?;
        let (path, format) = DocumentFormat::split_extension(path);
        let parts: Vec<&str> = path.split('/').collect();
        let (log, document) = match parts[..] {
            ["feeds", id, ref document @ ..] => {
                let number = id.parse::<i64>().ok().filter(|number| number.to_string() == id)?;
                (ArchivedLog::Resource(ResourceId(number)), document)
            }
            ["all", ref document @ ..] => (ArchivedLog::Collection(CollectionKind::All), document),
            ["collections", name, ref document @ ..] => {
                let kind = CollectionKind::Named(CollectionName::parse(name)?);
                (ArchivedLog::Collection(kind), document)
            }
            _ => return None,
        };
        let shows_versions = match document {
            [] => false,
            ["recent"] | ["documents", _] => true,
            _ => return None,
        };
        let mut parameters = url.query_pairs();
        let filter = parameters.find(|(name, _)| name == "filter" && !shows_versions);
        let filter = filter.map(|(_, filter)| filter.into_owned());
        Some(ArchiveAddress { log, format: format.unwrap_or_default(), shows_versions, filter })
    }
}

/// Returns the log whose archive has the address `topic`; `None` if that is not the address of an
/// archive of the gateway at `public_url`.
pub fn archived_log(public_url: &Url, topic: &Topic) -> Option<ArchivedLog> {
    ArchiveAddress::parse(public_url, topic.as_str()).map(|address| address.log)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f2_addresses_of_archives_are_those_of_their_logs() {
        let feed = Some(ArchivedLog::Resource(ResourceId(7)));
        let all = Some(ArchivedLog::Collection(CollectionKind::All));
        let name = CollectionName::parse("tides").unwrap();
        let named = Some(ArchivedLog::Collection(CollectionKind::Named(name)));
        #[rustfmt::skip]
        let cases = [
            ("https://gate.test/g/feeds/7",                    &feed),
            ("https://gate.test/g/feeds/7?count=5",            &feed),
            ("https://gate.test/g/feeds/7.rss",                &feed),
            ("https://gate.test/g/feeds/7/recent.json",        &feed),
            ("https://gate.test/g/feeds/7/recent",             &feed),
            ("https://gate.test:443/g/feeds/7/recent?order=asc", &feed),
            ("https://gate.test/g/feeds/7/documents/2",        &feed),
            ("https://gate.test/g/all/recent",                 &all),
            ("https://gate.test/g/collections/tides/recent",    &named),
            ("https://gate.test/g/collections/tides.json",     &named),
            ("https://gate.test/g/feeds/07/recent",            &None),
            ("https://gate.test/g/feeds/7/other",              &None),
            ("https://gate.test/g/feeds/7/recent#.h-entry",    &None),
            ("https://gate.test/g/accounts/me/recent",         &None),
            ("https://gate.test/feeds/7/recent",               &None),
            ("http://gate.test/g/feeds/7/recent",              &None),
            ("https://other.test/g/feeds/7/recent",            &None),
        ];
        let public_url = Url::parse("https://gate.test/g/").unwrap();
        for (topic, want) in cases {
            let found = archived_log(&public_url, &Topic::parse(topic).unwrap());
            assert_eq!(&found, want, "{topic}");
        }
    }

    #[test]
    fn a05_an_address_says_what_the_feed_there_looks_like() {
        use DocumentFormat::{Atom, JsonFeed, Rss};
        #[rustfmt::skip]
        let cases = [
            ("feeds/7",                      Atom,     false, None),
            ("feeds/7.rss?filter=low+tide",  Rss,      false, Some("low tide")),
            ("feeds/7/recent",               Atom,     true,  None),
            ("feeds/7/recent.json?filter=x", JsonFeed, true,  None),
            ("all/recent.rss",               Rss,      true,  None),
            ("all.rss?filter=x",             Rss,      false, Some("x")),
            ("collections/recent",           Atom,     false, None),
            ("collections/tides/documents/1", Atom,    true,  None),
        ];
        let public_url = Url::parse("https://gate.test/").unwrap();
        for (path, format, shows_versions, filter) in cases {
            let address = public_url.join(path).unwrap();
            let found = ArchiveAddress::parse(&public_url, address.as_str()).unwrap();
            assert_eq!((found.format, found.shows_versions), (format, shows_versions), "{path}");
            assert_eq!(found.filter.as_deref(), filter, "{path}");
        }
    }
}
