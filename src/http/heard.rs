//! Requests that are refused before anything is asked of `subscribe`, for the log page: a
//! parameter that is missing is what whoever debugs a client looks for first.

use super::Gateway;
use super::params::Refused;
use crate::domain::event::{Event, Kind, Outcome};
use crate::worker;

/// A refusal that says why.
pub(super) trait Why {
    /// In a sentence.
    fn why(&self) -> &str;
}

impl Why for String {
    fn why(&self) -> &str {
        self
    }
}

impl Why for Refused {
    fn why(&self) -> &str {
        &self.why
    }
}

/// What was asked for, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard<'a> {
    /// What it was to be.
    pub(super) kind: Kind,
    /// By which door it came.
    pub(super) via: &'static str,
    /// About which feed; empty if none was named.
    pub(super) feed: &'a str,
    /// With which callback; empty if none was named.
    pub(super) callback: &'a str,
}

impl Heard<'_> {
    /// Passes on what could be `read` of a request; tells of it if that is nothing.
    pub(super) fn tell<T, E: Why>(self, gateway: &Gateway, read: Result<T, E>) -> Result<T, E> {
        if let Err(refused) = &read {
            let event = Event::new(self.kind, worker::now()).via(self.via).of(self.feed);
            let event = event.to(self.callback);
            let event = event.ended(Outcome::Refused, "bad_request", refused.why());
            gateway.journal.tell(event);
        }
        read
    }
}
