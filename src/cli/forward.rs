//! Sends notifications to a URL that the user named, such as a program on the developer's machine.

use ipnet::{Ipv4Net, Ipv6Net};
use url::Url;

use crate::config::Config;
use crate::net::{CallbackRequest, CallbackResponse, FetchError, HttpClient};

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

    /// The URL.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request, which is one to this URL.
    pub(super) async fn send(&self, call: CallbackRequest) -> Result<CallbackResponse, FetchError> {
        self.client.call(call).await
    }
}
