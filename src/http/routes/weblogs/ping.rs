//! A weblog's ping (seed 002), however it arrives: as a form, over XML-RPC or over SOAP.

use http::StatusCode;
use url::Url;

use crate::http::kit::anonymous_access::Permission;
use crate::http::kit::permissions;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::event::EventKind;
use feedgate_core::ping::{Ping, PingSource};

/// The longest name, as on weblogs.com.
const MAX_NAME_CHARS: usize = 1_024;
/// The longest address. weblogs.com allowed 255 bytes; addresses are longer today.
const MAX_URL_BYTES: usize = 2_048;

/// The parameters of a ping, as they were sent; missing ones are empty.
#[derive(Debug)]
pub(crate) struct WeblogPing {
    /// The name of the weblog.
    pub(crate) name: String,
    /// The address of the weblog.
    pub(crate) url: String,
    /// The page that changed.
    pub(crate) changed_page: String,
    /// The feed.
    pub(crate) feed: String,
}

/// Checks a ping and takes it. A rejection is recorded in the event log.
pub(crate) async fn take_weblog_ping(
    gateway: &Gateway,
    request: &Request,
    ping: WeblogPing,
) -> Result<(), Rejection> {
    let url = ping.url.clone();
    let taken = check_and_take(gateway, request, ping).await;
    let ping = RejectedRequest {
        kind: EventKind::Ping,
        via: PingSource::Weblogs.as_str(),
        feed: &url,
        callback: "",
    };
    ping.record_if_rejected(gateway, taken)
}

async fn check_and_take(
    gateway: &Gateway,
    request: &Request,
    ping: WeblogPing,
) -> Result<(), Rejection> {
    let (name, url) = checked_name_and_url(ping.name, ping.url)?;
    permissions::check_by_query(gateway, request, Permission::Pings).await?;
    gateway.anonymous_rate_limit.admit(request, 1)?;
    let feed = match is_web_address(&ping.feed) {
        true => ping.feed,
        false => watched_page(gateway, ping.changed_page).await,
    };
    let ping = Ping {
        at: runner::now(),
        source: PingSource::Weblogs,
        name: name.trim().to_owned(),
        url: url.trim().to_owned(),
        feed_url: Some(feed.trim().to_owned()).filter(|feed| !feed.is_empty()),
    };
    let taken = gateway.subscribe.ping(&ping, gateway.settings.ping_spacing).await;
    taken.map(drop).map_err(|err| Rejection::unavailable(&err))
}

/// Returns the name and the address of a weblog. Some clients swap them.
pub(super) fn checked_name_and_url(
    name: String,
    url: String,
) -> Result<(String, String), Rejection> {
    let is_swapped = !is_web_address(&url) && is_web_address(&name);
    let (name, url) = if is_swapped { (url, name) } else { (name, url) };
    let reason = if name.chars().count() > MAX_NAME_CHARS {
        format!("The weblog's name is longer than {MAX_NAME_CHARS} characters.")
    } else if url.len() > MAX_URL_BYTES {
        format!("The weblog's address is longer than {MAX_URL_BYTES} bytes.")
    } else if !is_web_address(&url) {
        format!("The weblog's address must be an http or https URL, not \"{url}\".")
    } else {
        return Ok((name, url));
    };
    Err(Rejection::new(StatusCode::BAD_REQUEST, reason))
}

/// Returns the page that changed, if it is a watched resource; else empty.
async fn watched_page(gateway: &Gateway, page: String) -> String {
    let page = page.trim();
    if !is_web_address(page) {
        return String::new();
    }
    // The ping counts in either case. If the store fails, taking the ping will fail too.
    let known = gateway.store.find(page).await.ok().flatten();
    known.map(|_| page.to_owned()).unwrap_or_default()
}

/// Returns whether a text is an http or https URL.
pub(crate) fn is_web_address(text: &str) -> bool {
    let text = text.trim();
    let url = Url::parse(text).ok().filter(|_| text.len() <= MAX_URL_BYTES);
    url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_web_addresses() {
        for (text, want) in [("http://a.test/", true), ("ftp://a.test/", false), ("a.test", false)]
        {
            assert_eq!(is_web_address(text), want, "{text}");
        }
    }
}
