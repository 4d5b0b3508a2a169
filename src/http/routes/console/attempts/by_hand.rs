//! The request of an attempt as a command, for people who try their callback by hand. It contains no secret.
//!
//! The body of the command is composed again, so it may differ from what was sent. The command is signed for its own
//! body and the time of the page: a receiver that verifies signatures accepts it.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use crate::http::kit::html::parts::copyable;
use crate::http::kit::shell;
use crate::jobs::deliver::without_secrets;
use crate::jobs::runner;
use feedgate_core::attempt::{DeliveryAttempt, HeaderLine};
use feedgate_core::subscription::Subscription;
use feedgate_protocol::signature::{self, SignatureMethod};
use feedgate_protocol::standard_webhooks;

/// What stands in a recorded header for a secret that was removed, and what a command has in its place.
const REMOVED: &str = "…";
const PLACEHOLDER: &str = "<secret>";
/// The headers that sign a request.
const SIGNATURES: [&str; 2] = ["webhook-signature", "x-hub-signature"];

/// Returns the part of the page. `body` is what was sent, composed again, if that was possible and the reader may
/// see it.
pub(super) fn section(
    subscription: &Subscription,
    attempt: &DeliveryAttempt,
    body: Option<&[u8]>,
) -> Markup {
    let body = body.map(|body| without_secrets(subscription, body));
    let body = body.filter(|body| shell::fits_in_command(body));
    let signer = Signer { subscription, attempt, body: body.as_deref(), at: runner::now() };
    let headers: Vec<(&str, String)> =
        attempt.request.headers.iter().filter_map(|line| signer.header(line)).collect();
    let has_placeholder = headers.iter().any(|(_, value)| value.contains(PLACEHOLDER));
    let is_signed = headers.iter().any(|(name, _)| SIGNATURES.contains(name));
    let was_signed =
        attempt.request.headers.iter().any(|line| SIGNATURES.contains(&line.name.as_str()));
    let lines = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let command = shell::curl_post(subscription.callback.as_str(), lines, body.as_deref());
    html! {
        details {
            summary { "As a curl command" }
            (copyable(&command))
            @if body.is_none() {
                p {
                    "Put a body into a file with the name " code { (shell::BODY_FILE) } " first, such as one that \
                     your callback has stored: this one is not known, or too long for a command."
                }
            }
            @if has_placeholder {
                p { "A secret was left out where " code { (PLACEHOLDER) } " stands." }
            }
            p.soft {
                @if body.is_some() { "Its body is composed again, and may differ from what was sent. " }
                @if is_signed {
                    "It is signed for this body and for now: receivers that compare the time refuse it after a few \
                     minutes. Reload the page to sign it again. "
                } @else if was_signed {
                    "It is not signed, because its body is not known here: receivers that verify signatures refuse \
                     it. "
                }
                "To send a signed test, use the page of the subscription."
            }
        }
    }
}

/// What signs the command.
struct Signer<'a> {
    subscription: &'a Subscription,
    attempt: &'a DeliveryAttempt,
    /// The body of the command, if it has one.
    body: Option<&'a [u8]>,
    at: DateTime<Utc>,
}

impl<'a> Signer<'a> {
    /// Returns a header of the command. It has the signatures that the attempt had, if it has a body.
    fn header(&self, recorded: &'a HeaderLine) -> Option<(&'a str, String)> {
        let value = match recorded.name.as_str() {
            "webhook-timestamp" => self.at.timestamp().to_string(),
            "webhook-signature" => self.webhook_signature()?,
            "x-hub-signature" => self.hub_signature(&recorded.value)?,
            _ => recorded.value.replace(REMOVED, PLACEHOLDER),
        };
        Some((&recorded.name, value))
    }

    fn webhook_signature(&self) -> Option<String> {
        let body = self.body?;
        let mut lines = self.attempt.request.headers.iter();
        let id = &lines.find(|line| line.name == "webhook-id")?.value;
        let keys = self.subscription.signing.secrets(self.at).map(|secret| secret.standard_key());
        let sign = |key: Vec<u8>| standard_webhooks::sign(&key, id, self.at.timestamp(), body);
        let signatures: Vec<String> = keys.map(sign).collect();
        (!signatures.is_empty()).then(|| signatures.join(" "))
    }

    /// Returns the signature by the same method as the recorded one.
    fn hub_signature(&self, recorded: &str) -> Option<String> {
        let secret = self.subscription.signing.secret.as_ref()?;
        let method = SignatureMethod::from_word(recorded.split_once('=')?.0)?;
        Some(signature::sign(method, secret.expose(), self.body?))
    }
}
