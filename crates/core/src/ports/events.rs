//! The port of the event log, and the types of other ports that events are made from.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::account::AccountId;
use crate::event::{Event, EventFilter, EventPage};

/// The result of an intent that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventArrival {
    /// The subscription was created.
    Began,
    /// The subscription existed and was renewed.
    Renewed,
    /// The subscription was deleted.
    Ended,
    /// There was no subscription to delete.
    Nothing,
}

/// A subscription that was deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedSubscription {
    /// The account.
    pub account: Option<AccountId>,
    /// The topic.
    pub topic: String,
    /// The callback.
    pub callback: String,
    /// The protocol, as the word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// The number of consecutive changes that could not be delivered.
    pub errors: u32,
}

/// The numbers of the events that are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventNumbers {
    /// The number of the oldest event that is stored; the next number if none is.
    pub oldest: i64,
    /// The number of the newest event; 0 if there has been none.
    pub newest: i64,
}

/// The events of the event log.
#[async_trait]
pub trait Events: Send + Sync {
    /// Stores events in this order. Returns the number of the last.
    async fn append_events(&self, events: Vec<Event>) -> Result<i64, StoreError>;

    /// Returns the events selected by `query`: with `after` the oldest of them first, else the
    /// newest.
    async fn events(&self, wanted: &EventFilter) -> Result<EventPage, StoreError>;

    /// Returns the numbers of the oldest and the newest event.
    async fn event_numbers(&self) -> Result<EventNumbers, StoreError>;

    /// Deletes events from before `before`, and the oldest events of each kind that has more than
    /// `most_of_a_kind`. Returns the number of deleted events.
    async fn trim_events(
        &self,
        before: DateTime<Utc>,
        most_of_a_kind: usize,
    ) -> Result<u64, StoreError>;
}
