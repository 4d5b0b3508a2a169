//! The request of an attempt as a command, for people who try their callback by hand. It contains no secret.

use maud::{Markup, html};

use crate::http::kit::html::parts::copyable;
use crate::http::kit::shell;
use crate::jobs::deliver::without_secrets;
use feedgate_core::attempt::DeliveryAttempt;
use feedgate_core::subscription::Subscription;

/// What stands in a recorded header for a secret that was removed, and what a command has in its place.
const REMOVED: &str = "…";
const PLACEHOLDER: &str = "<secret>";

/// Returns the part of the page. `body` is what was sent, if it is known and the reader may see it.
pub(super) fn section(
    subscription: &Subscription,
    attempt: &DeliveryAttempt,
    body: Option<&[u8]>,
) -> Markup {
    let body = body.filter(|body| shell::fits_in_command(body));
    let body = body.map(|body| without_secrets(subscription, body));
    let headers = attempt.request.headers.iter();
    let headers: Vec<(&str, String)> = headers
        .map(|line| (line.name.as_str(), line.value.replace(REMOVED, PLACEHOLDER)))
        .collect();
    let has_placeholder = headers.iter().any(|(_, value)| value.contains(PLACEHOLDER));
    let lines = headers.iter().map(|(name, value)| (*name, value.as_str()));
    let command = shell::curl_post(subscription.callback.as_str(), lines, body.as_deref());
    html! {
        details {
            summary { "As a curl command" }
            (copyable(&command))
            @if body.is_none() {
                p { "Put the body into a file with the name " code { (shell::BODY_FILE) } " first." }
            }
            @if has_placeholder {
                p { "A secret was left out where " code { (PLACEHOLDER) } " stands." }
            }
            p.soft {
                "Its time and signature are those of the attempt: receivers that compare the time refuse it \
                 after a few minutes. To send a signed test, use the page of the subscription."
            }
        }
    }
}
