//! Subscriptions by the account API, whose requests have credentials.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use url::{Url, form_urlencoded};

use crate::jobs::upstream::{UpstreamError, UpstreamRequest};
use crate::net::{CallbackRequest, FetchError, HttpClient};

/// Requests a subscription of an account, or its end. The callback is verified before the response,
/// as a hub does.
pub(super) async fn request(
    client: &HttpClient,
    wanted: &UpstreamRequest<'_>,
    mode: &str,
    authorization: &HeaderValue,
) -> Result<(), UpstreamError> {
    let url = Url::parse(&wanted.offer.endpoint)
        .map_err(|err| UpstreamError::Unreachable(FetchError::BadUrl(err.to_string())))?;
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, authorization.clone());
    let of_form = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(CONTENT_TYPE, of_form);
    let body = form(wanted, mode).into();
    let call = CallbackRequest { method: Method::POST, url, headers, body };
    let reply = client.call(call).await.map_err(UpstreamError::Unreachable)?;
    if reply.status.is_success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&reply.body);
    let why = format!("{}: {}", reply.status, text.trim());
    Err(UpstreamError::Refused(why))
}

fn form(wanted: &UpstreamRequest<'_>, mode: &str) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("hub.mode", mode)
        .append_pair("hub.topic", &wanted.offer.topic)
        .append_pair("hub.callback", wanted.own.as_str());
    if mode == "subscribe" {
        form.append_pair("hub.secret", wanted.secret.expose()).append_pair("hub.verify", "sync");
    }
    form.finish()
}
