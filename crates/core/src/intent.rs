//! Subscription requests that have not been verified yet.
//!
//! Intents are stored, so that a restart loses none (D13).

use super::claim::ClaimToken;
use super::subscription::SubscriptionRequest;

/// The requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentMode {
    /// Begin, renew or change a subscription.
    Subscribe,
    /// End one.
    Unsubscribe,
}

impl IntentMode {
    /// The value of `hub.mode` on the wire, and the word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            IntentMode::Subscribe => "subscribe",
            IntentMode::Unsubscribe => "unsubscribe",
        }
    }

    /// Parses the word.
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

/// A subscription request that waits for the verification of its callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The requested operation.
    pub mode: IntentMode,
    /// The subscription in question.
    pub request: SubscriptionRequest,
    /// What to echo when the intent is verified, if anything.
    pub verify_token: Option<VerifyToken>,
    /// Whether a backfill is requested as well.
    pub backfill: bool,
    /// The parameters of the request for the publisher of the topic, which may validate
    /// subscriptions (row P-5): a URL-encoded form, without secrets.
    pub parameters: String,
    /// Whether the callback has agreed, or an account vouches for it: the subscription is stored, and
    /// only the decision of the publisher is outstanding.
    pub is_verified: bool,
}

impl Intent {
    /// The maximum length of `parameters`.
    pub const MAX_PARAMETERS_BYTES: usize = 16 << 10;

    /// Creates an intent without any of the optional parts.
    pub fn new(mode: IntentMode, request: SubscriptionRequest) -> Intent {
        Intent {
            mode,
            request,
            verify_token: None,
            backfill: false,
            parameters: String::new(),
            is_verified: false,
        }
    }
}

/// An intent that was claimed for verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueIntent {
    /// The number of the intent.
    pub id: i64,
    /// The claim, which the result of the verification names.
    pub claim: ClaimToken,
    /// The number of attempts already made.
    pub attempts: u32,
    /// The intent itself.
    pub intent: Intent,
}
