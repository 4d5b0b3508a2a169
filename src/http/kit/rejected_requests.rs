//! Requests that are refused before anything is asked of `subscribe`, for the log page: a
//! parameter that is missing is what whoever debugs a client looks for first.

use crate::http::Gateway;
use crate::http::kit::params::Refused;
use crate::jobs::runner;
use feedgate_core::event::{Event, EventKind, EventOutcome};

/// A refusal that says why.
pub(crate) trait Why {
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
pub(crate) struct Heard<'a> {
    /// What it was to be.
    pub(crate) kind: EventKind,
    /// By which door it came.
    pub(crate) via: &'static str,
    /// About which feed; empty if none was named.
    pub(crate) feed: &'a str,
    /// With which callback; empty if none was named.
    pub(crate) callback: &'a str,
}

impl Heard<'_> {
    /// Passes on what could be `read` of a request; tells of it if that is nothing.
    pub(crate) fn tell<T, E: Why>(self, gateway: &Gateway, read: Result<T, E>) -> Result<T, E> {
        if let Err(refused) = &read {
            let event = Event::new(self.kind, runner::now()).via(self.via).of(self.feed);
            let event = event.to(self.callback);
            let event = event.ended(EventOutcome::Refused, "bad_request", refused.why());
            gateway.event_log.record(event);
        }
        read
    }
}
