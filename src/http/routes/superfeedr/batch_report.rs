//! The report on the items of a batch.

use http::StatusCode;
use serde_json::{Value, json};
use warp::reply::Response;

use super::api_reply::ApiReply;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::with_content_type;
use crate::http::routes::discovered_feeds;
use feedgate_protocol::form::Form;

/// What became of one item.
#[derive(Clone, Debug)]
pub(super) struct ItemResult {
    topic: Option<String>,
    callback: Option<String>,
    status: StatusCode,
    /// The code of the error; `None` after a success.
    code: Option<&'static str>,
    /// The reason of the error, or a note on the topic.
    reason: Option<String>,
    /// The feed that is subscribed to instead of the page at the topic.
    followed: Option<String>,
}

impl ItemResult {
    /// Returns what became of the item with these parameters.
    pub(super) fn new(form: Option<&Form>, result: Result<ApiReply, Rejection>) -> ItemResult {
        let text = |name| form.and_then(|form| form.get(name)).map(str::to_owned);
        let (topic, callback) = (text("hub.topic"), text("hub.callback"));
        let mut followed = None;
        let (status, code, reason) = match result {
            Ok(ApiReply::Empty(status)) => (status, None, None),
            Ok(ApiReply::Json(_)) => (StatusCode::OK, None, None),
            Ok(ApiReply::Response(response)) => {
                followed = discovered_feeds::followed(&response);
                (response.status(), None, discovered_feeds::note(&response))
            }
            Err(rejection) => {
                let reason = rejection.reason().to_owned();
                (rejection.status(), Some(rejection.exact_code()), Some(reason))
            }
        };
        ItemResult { topic, callback, status, code, reason, followed }
    }

    fn to_json(&self) -> Value {
        let mut item = json!({
            "topic": self.topic,
            "callback": self.callback,
            "status": self.status.as_u16(),
            "code": self.code,
            "reason": self.reason,
        });
        if let Some(followed) = &self.followed {
            item["followed"] = json!(followed);
        }
        item
    }
}

/// What became of the items of a batch, in their order.
#[derive(Clone, Debug)]
pub(super) struct BatchReport {
    pub(super) results: Vec<ItemResult>,
    /// For a search: how many subscriptions it finds still.
    pub(super) remaining: Option<u64>,
}

impl BatchReport {
    /// Returns the response: 207, because each item has a status of its own.
    pub(super) fn to_response(&self) -> Response {
        let succeeded = self.results.iter().filter(|item| item.status.is_success()).count();
        let mut meta = json!({
            "total": self.results.len(),
            "succeeded": succeeded,
            "failed": self.results.len() - succeeded,
        });
        if let Some(remaining) = self.remaining {
            meta["remaining"] = remaining.into();
        }
        let items: Vec<Value> = self.results.iter().map(ItemResult::to_json).collect();
        let report = json!({ "items": items, "meta": meta });
        let content_type = "application/json; charset=utf-8";
        with_content_type(StatusCode::MULTI_STATUS, content_type, report.to_string())
    }
}
