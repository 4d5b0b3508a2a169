//! What became of intents and of subscriptions, for events.

use crate::account::AccountId;

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

/// What became of an intent whose claim was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentFate {
    /// The intent waits for whoever has claimed it since.
    Waiting,
    /// A newer intent has replaced it.
    Replaced,
    /// The intent was carried out or refused, or replaced by one that was.
    Ended,
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
