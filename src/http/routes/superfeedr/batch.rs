//! Many subscriptions in one request: a JSON array, or an OPML list of feeds.
//!
//! The members of the array are the parameters of one request each. An OPML list is the body of the
//! request, or a field `opml` of a form; its feeds are the topics. Parameters in the query, and
//! beside the field, apply to all items that do not have them. Each item is carried out as a request
//! of its own, and the response says what became of each.

use futures_util::{FutureExt, StreamExt, stream};
use http::{Method, StatusCode};
use serde_json::Value;
use warp::reply::Response;

use super::api_reply::ApiReply;
use super::batch_report::{BatchReport, ItemResult};
use super::{known_parameters, subscribe};
use crate::http::kit::auth;
use crate::http::kit::params::read_query;
use crate::http::kit::rejected_request::RejectedRequest;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::{Access, Scope};
use feedgate_core::intent::IntentMode;
use feedgate_protocol::form::Form;
use feedgate_protocol::opml;

/// The most items of a batch. Each may wait 0.3 s for its first fetch, so a full batch takes about
/// ten seconds.
pub(super) const MAX_ITEMS: usize = 500;
/// The most bytes of the parameters of all items together. Each item has the common ones.
const MAX_BYTES: usize = 8 << 20;
/// The number of items that are carried out at the same time.
const CONCURRENCY: usize = 16;
/// The media types of OPML documents.
const OPML_TYPES: &[&str] =
    &["text/x-opml", "text/x-opml+xml", "application/x-opml+xml", "application/xml", "text/xml"];
/// The field of a form with an OPML document.
const OPML_FIELD: &str = "opml";
/// Parameters that have no meaning for one of many items, each with the reason.
const NOT_IN_A_BATCH: [(&str, &str); 3] = [
    ("retrieve", "the entries of a feed are not part of the report"),
    ("callback", "the report is not wrapped in a call"),
    ("search", "an item is about one topic"),
];

/// A batch, read and not carried out.
pub(super) struct Batch {
    /// The parameters of all items.
    common: Form,
    /// The parameters of each item, with the common ones behind its own; `None` for what is no set of
    /// parameters.
    items: Vec<Option<Form>>,
}

impl Batch {
    /// Reads a batch from the body of a request. Returns `None` for any other request.
    pub(super) fn from_body(request: &Request) -> Result<Option<Batch>, Rejection> {
        if request.method != Method::POST {
            return Ok(None);
        }
        let media_type = request.media_type();
        let is_array =
            media_type == "application/json" && request.body.trim_ascii_start().starts_with(b"[");
        if is_array {
            return Batch::from_json(request).map(Some);
        }
        if OPML_TYPES.contains(&media_type.as_str()) {
            return Batch::from_opml(&request.body, read_query(request)).map(Some);
        }
        Ok(None)
    }

    /// Reads a batch from a form with an OPML document in a field. Returns `None` for other forms.
    pub(super) fn from_form(form: &Form) -> Result<Option<Batch>, Rejection> {
        let Some(document) = form.get_verbatim(OPML_FIELD) else { return Ok(None) };
        let common = form.without(OPML_FIELD);
        Batch::from_opml(document.as_bytes(), common).map(Some)
    }

    fn from_json(request: &Request) -> Result<Batch, Rejection> {
        let common = read_query(request);
        let items: Vec<Value> = serde_json::from_slice(&request.body).map_err(|err| {
            let reason = format!("Cannot read the batch: the body is not JSON: {err}.");
            Rejection::unreadable_body(StatusCode::BAD_REQUEST, reason)
        })?;
        check_length(items.len())?;
        let own = items.into_iter().map(|item| match item {
            Value::Object(_) => Form::from_value(item).ok(),
            _ => None,
        });
        Batch::new(own, common)
    }

    fn from_opml(document: &[u8], common: Form) -> Result<Batch, Rejection> {
        let topics = opml::feed_urls(document).map_err(|err| {
            let reason = format!("Cannot read the OPML document: {err}.");
            Rejection::unreadable_body(StatusCode::BAD_REQUEST, reason)
        })?;
        check_length(topics.len())?;
        let own = topics
            .into_iter()
            .map(|topic| Form::from_pairs([("hub.topic".to_owned(), topic)].into_iter()).ok());
        Batch::new(own, common)
    }

    /// Appends the common parameters to those of each item.
    fn new(own: impl Iterator<Item = Option<Form>>, common: Form) -> Result<Batch, Rejection> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        for own in own {
            bytes += common.bytes() + own.as_ref().map_or(0, Form::bytes);
            if bytes > MAX_BYTES {
                let reason = "The parameters of the batch are too long.";
                let rejection = Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, reason);
                return Err(rejection.with_code("batch_too_large"));
            }
            items.push(own.map(|own| own.and(common.clone())));
        }
        Ok(Batch { common, items })
    }

    /// Carries out the batch, and returns the report on its items.
    pub(super) async fn carry_out(self, gateway: &Gateway, request: &Request) -> Response {
        let access = match self.authenticate(gateway, request).await {
            Ok(access) => access,
            Err(rejection) => return rejection.to_response_for(request),
        };
        let (access, mut repeats) = (&access, Repeats::default());
        let mut items = Vec::with_capacity(self.items.len());
        for item in &self.items {
            let is_repeated = repeats.check(item);
            let result = async move {
                match item {
                    None => Err(bad_item()),
                    Some(_) if is_repeated => Err(repeated_item()),
                    Some(form) => carry_out_item(gateway, request, form, access).await,
                }
            };
            items.push(result.map(|result| ItemResult::new(item.as_ref(), result)).boxed());
        }
        let results: Vec<_> = stream::iter(items).buffered(CONCURRENCY).collect().await;
        BatchReport { results, remaining: None }.to_response()
    }

    /// Authenticates the account, and takes all items from its budget of requests.
    async fn authenticate(
        &self,
        gateway: &Gateway,
        request: &Request,
    ) -> Result<Access, Rejection> {
        let access = auth::authenticate(gateway, request, &self.common).await?;
        auth::require_no_link(request)?;
        let others = self.items.len().saturating_sub(1); // the first was taken with the request
        gateway.account_rate_limit.admit(access.account, others)?;
        Ok(access)
    }
}

fn check_length(items: usize) -> Result<(), Rejection> {
    match items {
        0 => Err(Rejection::unprocessable("The batch has no items.").with_code("empty_batch")),
        1..=MAX_ITEMS => Ok(()),
        _ => {
            let reason = format!("A batch has at most {MAX_ITEMS} items, this one has {items}.");
            Err(Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, reason).with_code("batch_too_large"))
        }
    }
}

/// The subscriptions that items of a batch are about: items are carried out side by side, so two
/// about the same subscription would end in either order.
#[derive(Default)]
struct Repeats(std::collections::HashSet<(String, String)>);

impl Repeats {
    /// Returns whether another item before this one is about the same subscription.
    fn check(&mut self, item: &Option<Form>) -> bool {
        let Some(form) = item else { return false };
        let text = |name| form.get(name).unwrap_or_default().to_owned();
        !self.0.insert((text("hub.topic"), text("hub.callback")))
    }
}

/// Carries out one item: `subscribe`, unless it says `unsubscribe`.
async fn carry_out_item(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    let mode = form.get("hub.mode").unwrap_or("subscribe").to_ascii_lowercase();
    let Some(intent) = IntentMode::from_word(&mode) else {
        let reason = format!("hub.mode must be subscribe or unsubscribe in a batch, not {mode}.");
        return Err(Rejection::unprocessable(reason).with_code("unknown_mode"));
    };
    auth::require(
        access,
        match intent {
            IntentMode::Subscribe => Scope::Subscribe,
            IntentMode::Unsubscribe => Scope::Unsubscribe,
        },
    )?;
    let checked = check_item(&mode, form);
    RejectedRequest::hub(form, intent, "superfeedr").record_if_rejected(gateway, checked)?;
    subscribe::carry_out(gateway, request, form, access, intent).await
}

fn check_item(mode: &str, form: &Form) -> Result<(), Rejection> {
    known_parameters::check(mode, form)?;
    for (name, why) in NOT_IN_A_BATCH {
        if form.pairs().any(|(held, _)| held.split('[').next() == Some(name)) {
            return Err(Rejection::unprocessable(format!(
                "{name} cannot be used in a batch: {why}."
            )));
        }
    }
    let mut kinds = form.all("hub.verify").flat_map(|kinds| kinds.split(',')).map(str::trim);
    if kinds.find(|kind| matches!(*kind, "sync" | "async")) == Some("sync") {
        let reason = "hub.verify=sync cannot be used in a batch: use async.";
        return Err(Rejection::unprocessable(reason));
    }
    Ok(())
}

fn bad_item() -> Rejection {
    let reason = "The item is not an object with parameters.";
    Rejection::unprocessable(reason).with_code("bad_item")
}

fn repeated_item() -> Rejection {
    let reason = "Another item of the batch has the same hub.topic and hub.callback.";
    Rejection::unprocessable(reason).with_code("repeated_item")
}
