//! Documents that several resources are parts of.
//!
//! Topics that differ in nothing but their fragment are resources of their own, but they
//! are one document of the publisher's, and that is not to be fetched once for each of
//! them. Who fetches it leaves it here; who is due next takes it, if it was fetched after
//! they last looked and is not older than the time between two of their own looks. So
//! however many there are, the document is fetched as often as if there were one.
//!
//! A ping is not answered from here: what it tells of may have come afterwards. Nodes do
//! not share.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::net::Document;
use feedgate_core::poll::{Trigger, Validators};
use feedgate_core::ports::DueResource;
use feedgate_core::schedule;

/// The most bytes that are kept: bodies, headers and addresses.
const BYTES: usize = 32 * 1024 * 1024;
/// The most documents.
const MOST: usize = 4_096;
/// Nobody looks less often unless he is told to, so an older document is of use to nobody.
const LONGEST: TimeDelta = TimeDelta::seconds(schedule::LONGEST_S as i64);

/// The documents. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    documents: HashMap<String, Share>,
    /// Their addresses by their numbers: the longest unconfirmed is first.
    order: BTreeMap<u64, String>,
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Share {
    at: DateTime<Utc>,
    document: Document,
    number: u64,
}

impl Shares {
    /// The document that a due resource would fetch now, and when it was fetched.
    pub(super) fn take(
        &self,
        due: &DueResource,
        now: DateTime<Utc>,
    ) -> Option<(DateTime<Utc>, Document)> {
        let status = &due.resource.status;
        if due.trigger != Trigger::Schedule || due.resource.topic.fragment().is_none() {
            return None;
        }
        let held = self.lock();
        let Share { at, document, .. } = held.documents.get(&due.resource.fetch_url)?;
        let is_newer = status.last_fetch.is_none_or(|last| *at > last);
        let is_fresh = now < *at + TimeDelta::seconds(status.period_s.into());
        (is_newer && is_fresh).then(|| (*at, document.clone()))
    }

    /// Leaves a document that was fetched for a part of it.
    pub(super) fn keep(&self, due: &DueResource, document: &Document, at: DateTime<Utc>) {
        if due.resource.topic.fragment().is_some() {
            self.lock().keep(&due.resource.fetch_url, document.clone(), at);
        }
    }

    /// The document with these validators is still the newest.
    pub(super) fn confirm(&self, due: &DueResource, validators: &Validators, at: DateTime<Utc>) {
        let mut held = self.lock();
        let url = &due.resource.fetch_url;
        if held.documents.get(url).is_some_and(|held| held.document.validators == *validators)
            && let Some(share) = held.forget(url)
        {
            held.keep(url, share.document, at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // What a panic interrupted can only be a document that is missing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Keeps a document, and no more than there is room for, and nothing that is old.
    fn keep(&mut self, url: &str, document: Document, at: DateTime<Utc>) {
        self.forget(url);
        self.last += 1;
        self.bytes += bytes(url, &document);
        self.order.insert(self.last, url.to_owned());
        self.documents.insert(url.to_owned(), Share { at, document, number: self.last });
        while let Some(oldest) = self.order.values().next().cloned() {
            let is_old = self.documents.get(&oldest).is_none_or(|held| held.at + LONGEST <= at);
            if !is_old && self.bytes <= BYTES && self.documents.len() <= MOST {
                break;
            }
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, url: &str) -> Option<Share> {
        let share = self.documents.remove(url)?;
        self.order.remove(&share.number);
        self.bytes -= bytes(url, &share.document);
        Some(share)
    }
}

/// What a document takes. Its address is kept twice here, and twice in the document.
fn bytes(url: &str, document: &Document) -> usize {
    let headers = document.headers.iter();
    let headers = headers.map(|(name, value)| name.as_str().len() + value.len());
    let validators = &document.validators;
    let etag = validators.etag.as_ref().map_or(0, Vec::len);
    let last_modified = validators.last_modified.as_ref().map_or(0, Vec::len);
    let addresses = 2 * url.len() + document.url.as_str().len() + validators.url.len();
    document.body.len() + headers.sum::<usize>() + etag + last_modified + addresses
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};
    use url::Url;

    use super::*;

    fn document(body: usize, header: usize) -> Document {
        let value = HeaderValue::from_str(&"x".repeat(header)).unwrap();
        Document {
            url: Url::parse("https://a.test/").unwrap(),
            headers: HeaderMap::from_iter([(http::header::LINK, value)]),
            body: Bytes::from(vec![b'x'; body]),
            validators: Validators::default(),
            hint_s: 0,
        }
    }

    /// Keeps documents one after the other; which are there in the end, and their bytes.
    fn kept(documents: &[(&str, i64, usize, usize)]) -> (String, usize) {
        let mut held = Held::default();
        for (url, at, body, header) in documents {
            let at = DateTime::UNIX_EPOCH + TimeDelta::seconds(*at);
            held.keep(url, document(*body, *header), at);
        }
        assert_eq!(held.order.len(), held.documents.len());
        (held.order.into_values().collect(), held.bytes)
    }

    #[test]
    fn what_is_kept_is_bounded_in_bytes_and_age() {
        const MB: usize = 1024 * 1024;
        const OLD: i64 = schedule::LONGEST_S as i64;
        #[rustfmt::skip]
        let cases = [
            ("all of it",               &[("a", 0, 1, 1), ("b", 1, 1, 1)][..],                      "ab"),
            ("the same address once",   &[("a", 0, 1, 1), ("b", 1, 1, 1), ("a", 2, 1, 1)],          "ba"),
            ("long bodies",             &[("a", 0, 20 * MB, 1), ("b", 1, 11 * MB, 1), ("c", 2, 2 * MB, 1)], "bc"),
            ("long headers",            &[("a", 0, 1, 17 * MB), ("b", 1, 1, 17 * MB)],              "b"),
            ("one that is too long",    &[("a", 0, 33 * MB, 1)],                                    ""),
            ("old ones",                &[("a", 0, 1, 1), ("b", 1, 1, 1), ("c", OLD, 1, 1)],        "bc"),
        ];
        for (why, documents, want) in cases {
            assert_eq!(kept(documents).0, want, "{why}");
        }
        let once = kept(&[("a", 0, 10, 10)]).1;
        assert_eq!(kept(&[("a", 0, 99, 99), ("a", 1, 10, 10)]).1, once, "bytes are given back");
    }

    #[test]
    fn what_is_kept_is_bounded_in_number() {
        let mut held = Held::default();
        for n in 0..MOST + 10 {
            held.keep(&n.to_string(), document(0, 0), DateTime::UNIX_EPOCH);
        }
        assert_eq!((held.documents.len(), held.order.len()), (MOST, MOST));
        assert!(!held.documents.contains_key("9") && held.documents.contains_key("10"));
    }
}
