//! Forwards notifications to another URL, such as a program on the developer's machine.

use http::{HeaderMap, HeaderName, Method, header};
use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

use crate::config::Config;
use crate::net::{CallbackRequest, HttpClient};

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

/// The URL that notifications are forwarded to, and a client for it.
pub(super) struct ForwardTarget {
    client: HttpClient,
    url: Url,
}

impl ForwardTarget {
    /// Forwards to `url`. The user named it, so that any address is allowed.
    pub(super) fn new(config: &Config, url: &Url) -> ForwardTarget {
        let mut settings = config.net(config.public_url.as_ref().unwrap_or(url));
        settings.allow_callbacks = vec![Ipv4Net::default().into(), Ipv6Net::default().into()];
        ForwardTarget { client: HttpClient::new(settings), url: url.clone() }
    }

    /// Sends a notification with its headers. Returns the response in words.
    pub(super) async fn forward(&self, received: &ReceivedNotification) -> String {
        let is_kept = |name: &HeaderName| !OF_THE_CONNECTION.contains(name);
        let kept = received.headers.iter().filter(|(name, _)| is_kept(name));
        let headers: HeaderMap = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        let call = CallbackRequest {
            method: Method::POST,
            url: self.url.clone(),
            headers,
            body: received.body.clone(),
        };
        match self.client.call(call).await {
            Ok(reply) => {
                let text = String::from_utf8_lossy(&reply.body);
                format!("{}: {} {}", self.url, reply.status, text.trim())
            }
            Err(err) => format!("{}: {err}", self.url),
        }
    }
}
