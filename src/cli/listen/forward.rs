//! Forwards notifications as they were received.

use http::{HeaderMap, HeaderName, Method, header};

use crate::cli::forward::ForwardTarget;
use crate::net::CallbackRequest;

use super::callback::ReceivedNotification;

/// Headers that belong to the connection on which a notification arrived.
const OF_THE_CONNECTION: [HeaderName; 6] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
    header::ACCEPT_ENCODING,
];

/// Sends a notification with its headers to `target`. Returns the response in words.
pub(super) async fn forward(target: &ForwardTarget, received: &ReceivedNotification) -> String {
    let is_kept = |name: &HeaderName| !OF_THE_CONNECTION.contains(name);
    let kept = received.headers.iter().filter(|(name, _)| is_kept(name));
    let headers: HeaderMap = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    let call = CallbackRequest {
        method: Method::POST,
        url: target.url().clone(),
        headers,
        body: received.body.clone(),
    };
    match target.send(call).await {
        Ok(reply) => {
            let text = String::from_utf8_lossy(&reply.body);
            format!("{}: {} {}", target.url(), reply.status, text.trim())
        }
        Err(err) => format!("{}: {err}", target.url()),
    }
}
