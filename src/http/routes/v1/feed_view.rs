//! A feed as the REST API shows it: whatever has a URL and is watched, with its status. What has no value
//! is left out.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::call::RestCall;
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::status::Status;

/// A feed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FeedView<'f> {
    id: String,
    url: &'f str,
    title: &'f str,
    kind: &'static str,
    entries: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
    status: StatusView<'f>,
}

/// What the last polls of a feed found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusView<'f> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    message: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_since: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fetch_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_parse_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_fetch_at: Option<DateTime<Utc>>,
    period_seconds: u32,
    period_reason: &'f str,
    velocity: u64,
    bozo_rank: f64,
}

/// Returns a feed in JSON.
pub(super) fn feed(call: &RestCall<'_>, resource: &Resource) -> Value {
    let is_log = resource.kind == ResourceKind::Collection;
    // The fragment of a log of an account keeps it secret, and names nothing.
    let url = resource.topic.displayed();
    let url = if is_log { url.split('#').next().unwrap_or_default() } else { &*url };
    let displayed = FeedView {
        id: resource.id.to_string(),
        url,
        title: &resource.status.title,
        kind: kind(resource),
        entries: resource.head.0,
        archive: (!is_log)
            .then(|| call.gateway.public_url(&format!("feeds/{}/recent", resource.id))),
        status: status(resource),
    };
    serde_json::to_value(displayed).expect("a feed is a struct of plain values")
}

/// Returns the word for the kind of a resource.
pub(super) fn kind(resource: &Resource) -> &'static str {
    match resource.kind {
        ResourceKind::Unknown => "unknown",
        ResourceKind::Feed => "feed",
        ResourceKind::Other => "document",
        ResourceKind::Collection => "log",
    }
}

fn status(resource: &Resource) -> StatusView<'_> {
    let status = &resource.status;
    StatusView {
        state: state(status),
        code: Some(status.http_code).filter(|code| *code != 0),
        message: &status.http_message,
        error: Some(status.error.as_str()).filter(|error| !error.is_empty()),
        failing_since: resource.polling.failing_since,
        last_fetch_at: status.last_fetch,
        last_parse_at: status.last_parse,
        next_fetch_at: status.next_fetch,
        period_seconds: status.period_s,
        period_reason: &status.period_reason,
        velocity: status.velocity,
        bozo_rank: status.bozo_rank,
    }
}

fn state(status: &Status) -> &'static str {
    match status.error.as_str() {
        "" if status.last_fetch.is_none() && status.http_code == 0 => "pending",
        "" => "ok",
        "gone" => "gone",
        _ => "failing",
    }
}
