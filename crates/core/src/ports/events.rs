//! What happened lately: the port of the log page, and what other ports tell for it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::StoreError;
use crate::account::AccountId;
use crate::event::{Event, EventFilter, StoredEvent};

/// What came of an intent that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventArrival {
    /// A subscription began.
    Began,
    /// It was there, and goes on.
    Renewed,
    /// It ended.
    Ended,
    /// There was none to end.
    Nothing,
}

/// A subscription that is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedSubscription {
    /// Whose it was.
    pub account: Option<AccountId>,
    /// What it watched.
    pub topic: String,
    /// Who was told.
    pub callback: String,
    /// How, as the word of [`feedgate_protocol::Protocol::as_str`].
    pub protocol: String,
    /// Changes it could not be told of, one after the other.
    pub errors: u32,
}

/// What happened lately.
#[async_trait]
pub trait Events: Send + Sync {
    /// Keeps events in this order. Returns the number of the last.
    async fn append_events(&self, events: Vec<Event>) -> Result<i64, StoreError>;

    /// Events that are wanted: with `after` the oldest of them first, else the newest.
    async fn events(&self, wanted: &EventFilter) -> Result<Vec<StoredEvent>, StoreError>;

    /// The number of the newest; 0 if there is none.
    async fn newest_event(&self) -> Result<i64, StoreError>;

    /// Forgets events from before `before`, and those of each kind that are more than
    /// `most_of_a_kind`, oldest first. Returns how many.
    async fn trim_events(
        &self,
        before: DateTime<Utc>,
        most_of_a_kind: usize,
    ) -> Result<u64, StoreError>;
}
