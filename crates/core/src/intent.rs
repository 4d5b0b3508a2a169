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

/// `hub.verify_token` of PubSubHubbub 0.3: echoed to the callback when its intent is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyToken(String);

/// Why a text cannot be a [`VerifyToken`]: it contains U+0000, which PostgreSQL does not store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the character U+0000 is not allowed")]
pub struct BadVerifyToken;

impl VerifyToken {
    /// Accepts any text without U+0000.
    pub fn parse(text: impl Into<String>) -> Result<VerifyToken, BadVerifyToken> {
        let text = text.into();
        if text.contains('\0') { Err(BadVerifyToken) } else { Ok(VerifyToken(text)) }
    }

    /// The text that was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A wish that waits for its callback's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// What is wanted.
    pub mode: IntentMode,
    /// The subscription in question.
    pub request: SubscriptionRequest,
    /// What to echo when the intent is verified, if anything.
    pub verify_token: Option<VerifyToken>,
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
