//! Tracks: logs that receive the entries that match a query, whichever resource publishes them
//! (Superfeedr's API, row Q-2).
//!
//! A track is prospective: it receives what is stored after it was opened. Its topic is below the
//! address of the gateway, and Superfeedr's clients may use Superfeedr's address for the same.

use std::collections::BTreeMap;

use url::Url;

use crate::account::AccountId;
use crate::collection::PendingCollection;
use crate::query::{Query, QueryError};
use crate::record::Seq;
use crate::resource::ResourceId;
use crate::subscription::Format;
use crate::topic::Topic;

/// The collection that stands for all tracks in the cursors of collections: one cursor in the log of
/// a resource is enough for all of them. No resource has this number.
pub const TRACKER: ResourceId = ResourceId(0);

/// The host of tracks in the topics of Superfeedr's clients.
const SUPERFEEDR_HOST: &str = "track.superfeedr.com";
/// The beginning of the key of a track that has an owner. The text of a query begins with a word, a
/// bracket, a quotation mark or a hyphen.
const OWNER_MARK: char = '@';
/// The folder of tracks below the address of the gateway.
const FOLDER: &str = "track";

/// A track, as a topic describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The query.
    pub query: Query,
    /// The topic of the track at this gateway, which is the same for equal queries.
    pub topic: Topic,
    /// The account that has this track for itself, with the entries of feeds that only it and other
    /// accounts subscribe to; `None`: the track is for everybody.
    pub owner: Option<AccountId>,
    /// The format that the topic requests for notifications.
    pub format: Option<Format>,
}

/// Why a topic describes no track.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrackError {
    /// The query cannot be used.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The format is neither of the two.
    #[error("the format of a track is atom or json, not {0}")]
    Format(String),
}

impl Track {
    /// Parses a topic; `None` if it is not that of a track.
    pub fn from_topic(public_url: &Url, topic: &Topic) -> Option<Result<Track, TrackError>> {
        let url = Url::parse(topic.as_str()).ok()?;
        let home = home(public_url);
        let is_here = url.origin() == home.origin() && url.path() == home.path();
        let is_alias = url.host_str() == Some(SUPERFEEDR_HOST) && url.path() == "/";
        (is_here || is_alias).then(|| Track::from_parameters(&home, &url))
    }

    fn from_parameters(home: &Url, url: &Url) -> Result<Track, TrackError> {
        let parameter = |wanted: &str| {
            url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned())
        };
        let query = Query::parse(&parameter("query").unwrap_or_default())?;
        let format = match parameter("format").filter(|word| !word.is_empty()) {
            None => None,
            Some(word) => match Format::from_word(&word) {
                Some(format @ (Format::Atom | Format::Json)) => Some(format),
                _ => return Err(TrackError::Format(word)),
            },
        };
        let topic = topic(home.clone(), &query)?;
        Ok(Track { query, topic, owner: None, format })
    }

    /// Returns the track of a query.
    pub fn new(public_url: &Url, query: Query) -> Result<Track, QueryError> {
        let topic = topic(home(public_url), &query)?;
        Ok(Track { query, topic, owner: None, format: None })
    }

    /// Returns the track with the same query that an account has for itself.
    pub fn of_account(self, account: AccountId) -> Track {
        Track { owner: Some(account), ..self }
    }

    /// Returns the text by which the track is found: its query, and its owner.
    pub fn key(&self) -> String {
        match self.owner {
            Some(AccountId(account)) => format!("{OWNER_MARK}{account} {}", self.query),
            None => self.query.to_string(),
        }
    }

    /// Returns the text of the query in a [`key`](Self::key), and the owner.
    pub fn parse_key(key: &str) -> (&str, Option<AccountId>) {
        let own = key.strip_prefix(OWNER_MARK).and_then(|key| key.split_once(' '));
        own.and_then(|(account, query)| Some((query, Some(AccountId(account.parse().ok()?)))))
            .unwrap_or((key, None))
    }

    /// Returns the title of the track's feed.
    pub fn title(&self) -> String {
        format!("Entries that match {}", self.query)
    }
}

/// Returns the topic of the track of a query.
fn topic(mut home: Url, query: &Query) -> Result<Topic, QueryError> {
    home.query_pairs_mut().append_pair("query", &query.to_string());
    Topic::parse(home.as_str()).map_err(|_| QueryError::TooLong)
}

/// Returns the address of all tracks of a gateway, without a query.
fn home(public_url: &Url) -> Url {
    let mut home = public_url.clone();
    if let Ok(mut path) = home.path_segments_mut() {
        path.pop_if_empty().push(FOLDER);
    }
    home
}

/// A place in the order in which tracks were opened and closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrackPosition {
    /// The version of all tracks after the change.
    pub version: i64,
    /// The log of the track.
    pub log: ResourceId,
}

impl TrackPosition {
    /// The place before the first change.
    pub const START: TrackPosition = TrackPosition { version: 0, log: TRACKER };
}

/// The last change of a track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackChange {
    /// The place of the change, and the log of the track.
    pub position: TrackPosition,
    /// The [`key`](Track::key) of the track, if it is open.
    pub key: Option<String>,
}

/// The records of a resource that were compared with all queries.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRange {
    /// The range of records.
    pub pending: PendingCollection,
    /// The numbers of the records that each track receives.
    pub matches: BTreeMap<ResourceId, Vec<Seq>>,
}

impl ComparedRange {
    /// Returns what each track receives, as the records of a collection. Each is a copy of the records,
    /// and there may be thousands of tracks, so only a few should be held at the same time.
    pub fn tracked(&self) -> impl Iterator<Item = PendingCollection> {
        let ComparedRange { pending, matches } = self;
        matches.iter().map(|(log, seqs)| {
            let records = pending.records.iter().filter(|(record, _)| seqs.contains(&record.seq));
            PendingCollection {
                collection: *log,
                member: pending.member.clone(),
                after: pending.after,
                upto: pending.upto,
                records: records.cloned().collect(),
                accounts: pending.accounts.clone(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h04_a_track_of_an_account_is_another_than_that_of_everybody() {
        let public_url = Url::parse("https://gate.test/").unwrap();
        let track = Track::new(&public_url, Query::parse("laurel hardy").unwrap()).unwrap();
        let own = track.clone().of_account(AccountId(7));
        assert_ne!(track.key(), own.key());
        assert_eq!(Track::parse_key(&track.key()), ("hardy laurel", None));
        assert_eq!(Track::parse_key(&own.key()), ("hardy laurel", Some(AccountId(7))));
    }

    #[test]
    fn q02_topics_of_tracks_are_recognized() {
        let own = "https://gate.test/g/track?query=hardy+laurel";
        #[rustfmt::skip]
        let cases = [
            ("https://gate.test/g/track?query=laurel+hardy",              Ok((own, None))),
            ("https://gate.test/g/track?query=Hardy%20laurel&format=JSON", Ok((own, Some(Format::Json)))),
            ("http://track.superfeedr.com/?query=laurel+hardy",           Ok((own, None))),
            ("https://track.superfeedr.com?query=laurel+hardy&format=atom", Ok((own, Some(Format::Atom)))),
            ("https://gate.test/g/track?query=a&format=raw",              Err("the format of a track is atom or json, not raw")),
            ("https://gate.test/g/track",                                 Err("the query is empty")),
            ("http://track.superfeedr.com/?query=-a",                     Err("the query requires nothing of an entry: add a word, a phrase, site: or link:")),
        ];
        let public_url = Url::parse("https://gate.test/g/").unwrap();
        for (topic, want) in cases {
            let track = Track::from_topic(&public_url, &Topic::parse(topic).unwrap()).unwrap();
            let got = track.as_ref().map(|track| (track.topic.as_str(), track.format));
            assert_eq!(got.map_err(ToString::to_string), want.map_err(str::to_owned), "{topic}");
        }
        for other in [
            "https://gate.test/track?query=a",
            "https://gate.test/g/track/x?query=a",
            "http://superfeedr.com/?query=a",
            "http://track.superfeedr.com/feed?query=a",
        ] {
            assert_eq!(Track::from_topic(&public_url, &Topic::parse(other).unwrap()), None);
        }
    }
}
