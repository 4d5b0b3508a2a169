//! The user agent of requests to publishers, which says how many subscribers a resource has.

use http::HeaderValue;

use super::{FetchRequest, Inner};

/// Returns the user agent of a fetch.
pub(super) fn user_agent(inner: &Inner, ask: &FetchRequest<'_>) -> HeaderValue {
    let mut text = inner.settings.user_agent.clone();
    if ask.subscribers > 0 {
        text.push_str(&format!("; {} subscribers", ask.subscribers));
    }
    if let Some(id) = ask.feed_id {
        text.push_str(&format!("; feed-id={id}"));
    }
    text.push(')');
    HeaderValue::from_str(&text).unwrap_or_else(|_| inner.user_agent.clone())
}
