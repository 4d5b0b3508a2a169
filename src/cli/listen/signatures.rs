//! Checks the signatures of a notification, as a callback should.

use http::HeaderMap;
use serde_json::{Value, json};

use feedgate_core::signing::Secret;
use feedgate_protocol::{signature, standard_webhooks};

use super::callback::ReceivedNotification;

/// Whether each signature of a notification is correct; `None` for one that it does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignatureVerdicts {
    /// `X-Hub-Signature`.
    hub: Option<bool>,
    /// `webhook-signature` (Standard Webhooks).
    webhook: Option<bool>,
}

impl SignatureVerdicts {
    /// Checks the signatures of a notification with the secret of the subscription.
    pub(super) fn check(received: &ReceivedNotification, secret: &Secret) -> SignatureVerdicts {
        let headers = &received.headers;
        let hub = text(headers, "x-hub-signature")
            .map(|signed| signature::holds(signed, secret.expose(), &received.body));
        let webhook = text(headers, "webhook-signature").map(|signed| {
            let id = text(headers, "webhook-id").unwrap_or_default();
            let timestamp = text(headers, "webhook-timestamp").and_then(|text| text.parse().ok());
            let Some(timestamp_s) = timestamp else { return false };
            let key = secret.standard_key();
            let expected = standard_webhooks::sign(&key, id, timestamp_s, &received.body);
            signed.split(' ').any(|signature| signature == expected)
        });
        SignatureVerdicts { hub, webhook }
    }

    /// Returns the verdicts in words.
    pub(super) fn in_words(self) -> String {
        let hub = self.hub.map(|is_valid| match is_valid {
            true => "signed",
            false => "invalid signature",
        });
        let webhook = self.webhook.map(|is_valid| match is_valid {
            true => "webhook-signature valid",
            false => "webhook-signature invalid",
        });
        let words: Vec<&str> = hub.into_iter().chain(webhook).collect();
        if words.is_empty() { "not signed".to_owned() } else { words.join(", ") }
    }

    /// Returns the verdicts by the names of the headers.
    pub(super) fn to_json(self) -> Value {
        let word = |verdict: Option<bool>| {
            verdict.map(|is_valid| if is_valid { "valid" } else { "invalid" })
        };
        json!({ "x-hub-signature": word(self.hub), "webhook-signature": word(self.webhook) })
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
