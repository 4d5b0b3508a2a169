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

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::poll::{Trigger, Validators};
use crate::fetch::Document;
use crate::store::DueResource;

/// The most bytes of bodies that are kept.
const BYTES: usize = 32 * 1024 * 1024;

/// The documents. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    documents: HashMap<String, (DateTime<Utc>, Document)>,
    order: VecDeque<String>,
    bytes: usize,
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
        let (at, document) = held.documents.get(&due.resource.fetch_url)?;
        let is_newer = status.last_fetch.is_none_or(|last| *at > last);
        let is_fresh = now < *at + TimeDelta::seconds(status.period_s.into());
        (is_newer && is_fresh).then(|| (*at, document.clone()))
    }

    /// Leaves a document that was fetched for a part of it.
    pub(super) fn keep(&self, due: &DueResource, document: &Document, at: DateTime<Utc>) {
        if due.resource.topic.fragment().is_none() {
            return;
        }
        let mut held = self.lock();
        let url = due.resource.fetch_url.clone();
        held.forget(&url);
        held.bytes += document.body.len();
        held.documents.insert(url.clone(), (at, document.clone()));
        held.order.push_back(url);
        while held.bytes > BYTES {
            let Some(oldest) = held.order.front().cloned() else { break };
            held.forget(&oldest);
        }
    }

    /// The document with these validators is still the newest.
    pub(super) fn confirm(&self, due: &DueResource, validators: &Validators, at: DateTime<Utc>) {
        match self.lock().documents.get_mut(&due.resource.fetch_url) {
            Some((fetched, document)) if document.validators == *validators => *fetched = at,
            Some(_) | None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // What a panic interrupted can only be a document that is missing.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn forget(&mut self, url: &str) {
        if let Some((_, document)) = self.documents.remove(url) {
            self.bytes -= document.body.len();
        }
        self.order.retain(|held| held != url);
    }
}
