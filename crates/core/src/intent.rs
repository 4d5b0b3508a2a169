//! A (un)subscription that still has to be verified.
//!
//! It waits in a row like all work, so that a restart forgets none (rule D13).

use super::subscription::SubscriptionRequest;

/// What the subscriber wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentMode {
    /// Begin, renew or change a subscription.
    Subscribe,
    /// End one.
    Unsubscribe,
}

impl IntentMode {
    /// `hub.mode` on the wire, and the word kept in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            IntentMode::Subscribe => "subscribe",
            IntentMode::Unsubscribe => "unsubscribe",
        }
    }

    /// Reads the word.
    pub fn from_word(word: &str) -> Option<IntentMode> {
        [IntentMode::Subscribe, IntentMode::Unsubscribe]
            .into_iter()
            .find(|mode| mode.as_str() == word)
    }
}

/// A wish that waits for its callback's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is wanted.
    pub mode: IntentMode,
    /// The subscription in question.
    pub request: SubscriptionRequest,
    /// `hub.verify_token` of PubSubHubbub 0.3: echoed when verifying.
    pub verify_token: Option<String>,
    /// Whether what the topic's source published before is to be brought in as well.
    pub backfill: bool,
}

/// An intent handed out to be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueIntent {
    /// Its number in the store.
    pub id: i64,
    /// Attempts already made.
    pub attempts: u32,
    /// The intent itself.
    pub intent: Intent,
}
