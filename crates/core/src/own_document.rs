//! Documents of this gateway that are no logs: nobody can be notified of their changes.
//!
//! Readers that find such a document try to subscribe to its address. What can be subscribed to instead is
//! the log that the document shows a part of.

use url::Url;

use crate::query::Query;
use crate::topic::Topic;
use crate::track::Track;

/// The paths of lists.
const LISTS: [&str; 9] = [
    "changes.xml",
    "shortChanges.xml",
    "feeds.opml",
    "subscriptions.json",
    "stats",
    "stats.json",
    "viewLog",
    "log.json",
    "openapi.json",
];

/// A document of this gateway to which nobody can subscribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnDocument {
    /// Entries that an account retrieves, and their topic if it is one.
    Retrieved(Option<String>),
    /// What an account searches for, and the topic of the track that finds the same.
    Found(Option<String>),
    /// The archive of an account.
    ArchiveOfAccount,
    /// The archive of a topic, which is named by the topic.
    ArchiveOfTopic(Option<String>),
    /// An archive that does not exist, or that the subscriber may not read.
    MissingArchive,
    /// A list of pings, feeds, subscriptions or events, or statistics.
    List,
}

impl OwnDocument {
    /// Returns the document with the address `topic`, if that is one of the gateway at `public_url`. The
    /// addresses of archives that exist are logs, which the caller knows.
    pub fn find(public_url: &Url, topic: &Topic) -> Option<OwnDocument> {
        let url = Url::parse(topic.as_str()).ok()?;
        if url.origin() != public_url.origin() {
            return None;
        }
        let folder = public_url.path().trim_end_matches('/');
        let path = url.path().strip_prefix(folder)?.strip_prefix('/')?;
        let parameter = |wanted: &str| {
            let mut pairs = url.query_pairs().filter(|(name, _)| name == wanted);
            pairs.next().map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty())
        };
        let parts: Vec<&str> = path.split('/').collect();
        match parts[..] {
            [""] => match parameter("hub.mode")?.as_str() {
                "retrieve" => Some(OwnDocument::Retrieved(parameter("hub.topic"))),
                "search" => {
                    let track = parameter("query").and_then(|query| track(public_url, &query));
                    Some(OwnDocument::Found(track))
                }
                "list" => Some(OwnDocument::List),
                _ => None,
            },
            ["feeds"] => Some(OwnDocument::ArchiveOfTopic(parameter("topic"))),
            ["feeds", name] if is_number(name.split('.').next().unwrap_or_default()) => {
                Some(OwnDocument::MissingArchive)
            }
            ["feeds" | "collections", _, "recent"] | ["all", "recent"] => {
                Some(OwnDocument::MissingArchive)
            }
            ["accounts", _, "recent"] => Some(OwnDocument::ArchiveOfAccount),
            ["feeds" | "collections", _, "documents", _] | ["all", "documents", _] => {
                Some(OwnDocument::MissingArchive)
            }
            ["accounts", _, "documents", _] => Some(OwnDocument::ArchiveOfAccount),
            [year, month, day, hour] if is_hour([year, month, day], hour) => {
                Some(OwnDocument::List)
            }
            [name] if LISTS.contains(&name) => Some(OwnDocument::List),
            _ => None,
        }
    }

    /// Returns a sentence that says what it is, and what can be subscribed to instead.
    pub fn advice(&self) -> String {
        match self {
            OwnDocument::Retrieved(Some(topic)) => {
                format!("It shows entries of {topic}: subscribe to that.")
            }
            OwnDocument::Retrieved(None) => {
                "It shows entries of several feeds: subscribe to each of them.".to_owned()
            }
            OwnDocument::Found(Some(track)) => {
                format!("It shows the result of a search: subscribe to the track {track}.")
            }
            OwnDocument::Found(None) => {
                "It shows the result of a search: subscribe to a track.".to_owned()
            }
            OwnDocument::ArchiveOfAccount => {
                "It is the archive of an account, which is private: subscribe to the feeds in it."
                    .to_owned()
            }
            OwnDocument::ArchiveOfTopic(Some(topic)) => {
                format!("It leads to the archive of {topic}: subscribe to that.")
            }
            OwnDocument::ArchiveOfTopic(None) | OwnDocument::MissingArchive => {
                "There is no such archive: subscribe to the feed itself.".to_owned()
            }
            OwnDocument::List => {
                "It is a list that nobody is notified of: subscribe to the feeds in it.".to_owned()
            }
        }
    }
}

fn track(public_url: &Url, query: &str) -> Option<String> {
    let track = Track::new(public_url, Query::parse(query).ok()?).ok()?;
    Some(track.topic.as_str().to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a path is that of an hour of changes: `2026/11/28/03.xml`.
fn is_hour(date: [&str; 3], hour: &str) -> bool {
    date.into_iter().all(is_number) && hour.strip_suffix(".xml").is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a04_addresses_that_are_no_logs_name_what_can_be_subscribed_to() {
        #[rustfmt::skip]
        let cases = [
            ("?hub.mode=retrieve&hub.topic=https://a.test/feed", "entries of https://a.test/feed: subscribe to that"),
            ("?hub.mode=retrieve&hub.callback=x",   "subscribe to each of them"),
            ("?hub.mode=search&query=laurel",       "subscribe to the track https://gate.test/g/track"),
            ("?hub.mode=search&query=%22",          "subscribe to a track"),
            ("?hub.mode=list",                      "feeds in it"),
            ("?x=y",                                ""),
            ("",                                    ""),
            ("feeds?topic=https://a.test/feed",     "archive of https://a.test/feed: subscribe to that"),
            ("feeds?topic=",                        "no such archive"),
            ("feeds/9",                             "no such archive"),
            ("feeds/9/recent",                      "no such archive"),
            ("all/recent",                          "no such archive"),
            ("collections/x/documents/1",           "no such archive"),
            ("accounts/me/recent",                  "which is private"),
            ("accounts/me/documents/1",             "which is private"),
            ("changes.xml",                         "a list"),
            ("2026/11/28/03.xml",                   "a list"),
            ("2026/11/28/notes.xml",                ""),
            ("feeds.opml",                          "a list"),
            ("storage/ada/feed.xml",                ""),
            ("stats/a",                             ""),
        ];
        let public_url = Url::parse("https://gate.test/g/").unwrap();
        for (path, want) in cases {
            let topic = Topic::parse(format!("https://gate.test/g/{path}")).unwrap();
            let found = OwnDocument::find(&public_url, &topic);
            let advice = found.as_ref().map(OwnDocument::advice).unwrap_or_default();
            assert!(
                advice.contains(want) && advice.is_empty() == want.is_empty(),
                "{path}: {advice}"
            );
        }
        for other in ["https://gate.test/changes.xml", "http://gate.test/g/changes.xml"] {
            assert_eq!(OwnDocument::find(&public_url, &Topic::parse(other).unwrap()), None);
        }
    }
}
