//! The report on a reading list that a subscription follows.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use warp::reply::Response;

use super::owned;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::routes::v1::call::RestCall;
use crate::http::routes::v1::paging::PageRequest;
use crate::http::state::Gateway;
use feedgate_core::account::Scope;
use feedgate_core::reading_list::{ReadingListFeed, ReadingListReport, ReadingListState};
use feedgate_core::subscription::Subscription;

/// The last reading of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadingListView<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'r str>,
    stated: usize,
    omitted: usize,
    subscribed: usize,
    existing: usize,
    refused: usize,
    ended: usize,
    removed: usize,
}

/// A feed of a list.
#[derive(Serialize)]
struct ReadingListFeedView<'r> {
    url: &'r str,
    state: &'static str,
    since: DateTime<Utc>,
    #[serde(skip_serializing_if = "str::is_empty")]
    code: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'r str,
}

/// Returns what came of the list that a subscription follows, in numbers; `None` if it follows none.
pub(super) async fn summary(
    gateway: &Gateway,
    subscription: &Subscription,
) -> Result<Option<Value>, Rejection> {
    let report = report(gateway, subscription).await?;
    Ok(report.map(|report| {
        let count = |state| report.count(state);
        json!(ReadingListView {
            read_at: report.read_at,
            problem: report.problem.as_deref(),
            stated: report.stated,
            omitted: report.omitted,
            subscribed: count(ReadingListState::Subscribed),
            existing: count(ReadingListState::Existing),
            refused: count(ReadingListState::Refused),
            ended: count(ReadingListState::Ended),
            removed: count(ReadingListState::Removed),
        })
    }))
}

/// Returns a page of the feeds of the list that a subscription follows.
pub(super) async fn feeds(
    gateway: &Arc<Gateway>,
    request: &Request,
    id: &str,
) -> Result<Response, Rejection> {
    let parameters = ["state", "limit", "cursor"];
    let call = RestCall::begin(gateway, request, Scope::List, &parameters).await?;
    let page = PageRequest::from_call(&call, "reading_list")?;
    let after = usize::try_from(page.after_number()?).unwrap_or(usize::MAX);
    let state = call.query.get("state").map(parse_state).transpose()?;
    let listed = owned::find(&call, id).await?;
    let report = report(gateway, &listed.subscription).await?.ok_or_else(|| {
        let reason = "The subscription does not follow a reading list.";
        Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_reading_list")
    })?;
    let feeds = report.feeds.iter().filter(|feed| state.is_none_or(|state| feed.state == state));
    let data: Vec<_> = feeds.skip(after).take(page.limit).map(feed).collect();
    let next = (data.len() == page.limit).then(|| after.saturating_add(data.len()));
    Ok(page.to_reply(&call, data, next))
}

async fn report(
    gateway: &Gateway,
    subscription: &Subscription,
) -> Result<Option<ReadingListReport>, Rejection> {
    let report = gateway.subscribe.reading_list_report(subscription).await;
    report.map_err(|err| Rejection::unavailable(&err))
}

fn parse_state(word: &str) -> Result<ReadingListState, Rejection> {
    let state = ReadingListState::ALL.into_iter().find(|state| state.as_str() == word);
    state.ok_or_else(|| {
        let words = ReadingListState::ALL.map(ReadingListState::as_str).join(", ");
        RestCall::reject_parameter("state", format!("state must be one of {words}."))
    })
}

fn feed(feed: &ReadingListFeed) -> Value {
    let ReadingListFeed { url, state, code, reason, at } = feed;
    json!(ReadingListFeedView { url, state: state.as_str(), since: *at, code, reason })
}
