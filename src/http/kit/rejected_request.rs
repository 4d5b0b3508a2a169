//! Rejected requests in the event log, where a developer who debugs a client looks first for a
//! missing parameter.

use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::{Event, EventKind, EventOutcome};
use feedgate_core::intent::IntentMode;
use feedgate_core::ping::PingSource;
use feedgate_protocol::form::Form;

/// The subject of a request that may be rejected, and the interface that it came through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RejectedRequest<'a> {
    /// The effect that the request would have had.
    pub(crate) kind: EventKind,
    /// The interface that the request came through.
    pub(crate) via: &'static str,
    /// The feed that the request names; empty if it names none.
    pub(crate) feed: &'a str,
    /// The callback that the request names; empty if it names none.
    pub(crate) callback: &'a str,
}

impl<'a> RejectedRequest<'a> {
    /// Describes an rssCloud request about this feed.
    pub(crate) fn rsscloud(kind: EventKind, feed: &'a str) -> RejectedRequest<'a> {
        RejectedRequest { kind, via: PingSource::RssCloud.as_str(), feed, callback: "" }
    }

    /// Describes a request to a hub by its parameters.
    pub(crate) fn hub(form: &'a Form, mode: IntentMode, via: &'static str) -> RejectedRequest<'a> {
        let kind = match mode {
            IntentMode::Subscribe => EventKind::Subscribe,
            IntentMode::Unsubscribe => EventKind::Unsubscribe,
        };
        let text = |name| form.get(name).unwrap_or_default();
        RejectedRequest { kind, via, feed: text("hub.topic"), callback: text("hub.callback") }
    }

    /// Passes `result` on, and records it in the event log if it is a rejection.
    pub(crate) fn record_if_rejected<T>(
        self,
        gateway: &Gateway,
        result: Result<T, Rejection>,
    ) -> Result<T, Rejection> {
        if let Err(rejection) = &result {
            self.record(gateway, rejection);
        }
        result
    }

    /// Records a rejection in the event log.
    pub(crate) fn record(self, gateway: &Gateway, rejection: &Rejection) {
        let event = Event::new(self.kind, runner::now()).via(self.via).about_feed(self.feed);
        let event = event.to(self.callback);
        let code = rejection.code().as_str();
        gateway.event_log.record(event.ended(EventOutcome::Refused, code, rejection.reason()));
    }
}
