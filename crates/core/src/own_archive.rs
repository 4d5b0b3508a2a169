//! Addresses of archives of this gateway, as topics.
//!
//! An archive names the hub of the gateway, so readers subscribe to its address. Such a subscription
//! is one to the log behind the archive: nothing is fetched, and the log is not copied.

use url::Url;

use crate::collection::{CollectionKind, CollectionName};
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

/// Returns the log whose archive has the address `topic`; `None` if that is not the address of an
/// archive of the gateway at `public_url`. Archives of accounts are private and have no topic.
pub fn archived_log(public_url: &Url, topic: &Topic) -> Option<ArchivedLog> {
    let url = Url::parse(topic.as_str()).ok()?;
    if url.origin() != public_url.origin() || url.fragment().is_some() {
        return None;
    }
    let folder = public_url.path().trim_end_matches('/');
    let path = url.path().strip_prefix(folder)?.strip_prefix('/')?;
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["feeds", id] | ["feeds", id, "recent"] | ["feeds", id, "documents", _] => {
            let number = id.parse::<i64>().ok().filter(|number| number.to_string() == id)?;
            Some(ArchivedLog::Resource(ResourceId(number)))
        }
        ["all", "recent"] | ["all", "documents", _] => {
            Some(ArchivedLog::Collection(CollectionKind::All))
        }
        ["collections", name, "recent"] | ["collections", name, "documents", _] => {
            CollectionName::parse(name).map(CollectionKind::Named).map(ArchivedLog::Collection)
        }
        _ => None,
    }
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
            ("https://gate.test/g/feeds/7/recent",             &feed),
            ("https://gate.test:443/g/feeds/7/recent?order=asc", &feed),
            ("https://gate.test/g/feeds/7/documents/2",        &feed),
            ("https://gate.test/g/all/recent",                 &all),
            ("https://gate.test/g/collections/tides/recent",    &named),
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
}
