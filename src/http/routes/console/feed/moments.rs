//! What happened with a feed lately, as far as it is stored: its fetches, pings, entries, deliveries, and the
//! changes of its state. Deliveries are those of the own subscriptions, or all for administrators.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};

use crate::fetch_traces::FetchTrace;
use crate::http::kit::html::parts::{Tone, counted};
use crate::http::routes::console::fetches::result_word;
use crate::http::routes::console::visit::Visit;
use feedgate_core::account::Scope;
use feedgate_core::event::{EventKind, EventOutcome, EventViewer, StoredEvent};
use feedgate_core::moves::Move;
use feedgate_core::record::{RecordKind, RecordPlace};
use feedgate_core::redaction;
use feedgate_core::resource::Resource;

/// What a moment belongs to: a line of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Fetches,
    Pings,
    Entries,
    Deliveries,
    State,
}

impl Lane {
    pub(super) const ALL: [Lane; 5] =
        [Lane::Fetches, Lane::Pings, Lane::Entries, Lane::Deliveries, Lane::State];

    pub(super) fn name(self) -> &'static str {
        match self {
            Lane::Fetches => "Fetches",
            Lane::Pings => "Pings",
            // An update of an entry is in the log as another record.
            Lane::Entries => "Entries, updates",
            Lane::Deliveries => "Deliveries",
            Lane::State => "State",
        }
    }
}

/// Something that happened.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) at: DateTime<Utc>,
    pub(super) lane: Lane,
    /// Neutral for what changed nothing.
    pub(super) tone: Tone,
    /// How often it happened at that time.
    pub(super) count: u64,
    pub(super) text: String,
    /// The address of its page from the root, if it has one.
    pub(super) page: Option<String>,
}

/// Where moments are found.
pub(super) struct MomentSources<'s> {
    pub(super) resource: &'s Resource,
    /// The events of the feed, of which the viewer sees those that concern it.
    pub(super) events: &'s [StoredEvent],
    pub(super) viewer: EventViewer,
    pub(super) records: &'s [RecordPlace],
    pub(super) moves: &'s [Move],
}

impl MomentSources<'_> {
    /// Returns what happened, newest first.
    pub(super) fn moments(&self, visit: &Visit) -> Vec<Moment> {
        let concerning =
            self.events.iter().filter(|kept| self.viewer.is_concerned_by(&kept.event, true));
        let mut moments: Vec<Moment> = concerning.filter_map(moment_of_event).collect();
        moments.extend(self.fetches(visit));
        moments.extend(self.records.iter().map(|place| self.entry(visit, place)));
        moments.extend(self.changes());
        moments.sort_by_key(|moment| Reverse(moment.at));
        moments
    }

    /// Returns the fetches of this node that are not in the event log, which has those that changed
    /// something.
    fn fetches(&self, visit: &Visit) -> Vec<Moment> {
        let traces = visit.gateway.fetch_traces.of_feed(self.resource.id);
        let is_logged = |begun: DateTime<Utc>, took: TimeDelta| {
            let margin = TimeDelta::seconds(1);
            let mut logged = self.events.iter().map(|kept| &kept.event);
            logged.any(|event| {
                let is_near = event.at >= begun - margin && event.at <= begun + took + margin;
                event.kind == EventKind::Fetch && is_near
            })
        };
        let took = |took| TimeDelta::from_std(took).unwrap_or_default();
        let others = traces.iter().filter(|trace| !is_logged(trace.at, took(trace.took)));
        let moment = |trace: &FetchTrace| Moment {
            at: trace.at,
            lane: Lane::Fetches,
            tone: match (trace.message.is_empty(), trace.new) {
                (false, _) => Tone::Bad,
                (true, 0) => Tone::Neutral,
                (true, _) => Tone::Good,
            },
            count: 1,
            text: match trace.message.as_str() {
                "" => result_word(trace).to_owned(),
                message => message.to_owned(),
            },
            page: None,
        };
        others.map(|trace| moment(trace)).collect()
    }

    fn entry(&self, visit: &Visit, place: &RecordPlace) -> Moment {
        let (tone, word) = match place.kind {
            RecordKind::New => (Tone::Good, "new"),
            RecordKind::Update => (Tone::Good, "updated"),
            RecordKind::Old => (Tone::Neutral, "old, sent to nobody"),
            RecordKind::Deleted => (Tone::Warning, "deleted"),
        };
        let page = format!("console/feeds/{}/entries/{}", self.resource.id, place.seq);
        Moment {
            at: place.at,
            lane: Lane::Entries,
            tone,
            count: 1,
            text: format!("entry {}: {word}", place.seq),
            page: visit.allows(Scope::Retrieve).then_some(page),
        }
    }

    fn changes(&self) -> impl Iterator<Item = Moment> {
        let moment = |at, tone, text| {
            let (lane, count, page) = (Lane::State, 1, None);
            Moment { at, lane, tone, count, text, page }
        };
        let transitions = self.resource.status.transitions.iter().map(move |change| {
            let tone = match change.state.as_str() {
                "ok" => Tone::Good,
                "moved" => Tone::Warning,
                _ => Tone::Bad,
            };
            moment(change.at, tone, format!("{}: {}", change.state, change.reason))
        });
        let moves = self.moves.iter().map(move |moved| {
            let text = format!("moved from {}", redaction::feed(&moved.from));
            moment(moved.at, Tone::Warning, text)
        });
        transitions.chain(moves)
    }
}

fn moment_of_event(kept: &StoredEvent) -> Option<Moment> {
    let StoredEvent { id, event } = kept;
    let lane = match event.kind {
        EventKind::Fetch => Lane::Fetches,
        EventKind::Ping => Lane::Pings,
        EventKind::Notify => Lane::Deliveries,
        _ => return None,
    };
    let tone = match event.outcome {
        EventOutcome::Ok => Tone::Good,
        EventOutcome::Pending => Tone::Neutral,
        EventOutcome::Refused | EventOutcome::Failed => Tone::Bad,
    };
    let text = match (event.detail.as_str(), event.many) {
        ("", 1) => event.outcome.as_str().to_owned(),
        ("", many) => format!("{}, {}", event.outcome.as_str(), counted(many, "time")),
        (detail, _) => detail.to_owned(),
    };
    let page = Some(format!("console/events/{id}"));
    Some(Moment { at: event.at, lane, tone, count: event.many.max(1), text, page })
}
