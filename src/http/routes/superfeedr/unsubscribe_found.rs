//! Ending all subscriptions that a search finds, as `hub.mode=list` finds them.

use futures_util::{FutureExt, StreamExt, stream};
use http::StatusCode;

use super::api_reply::ApiReply;
use super::batch::MAX_ITEMS;
use super::batch_report::{BatchReport, ItemResult};
use super::refusal::reject_refusal;
use super::search::SubscriptionSearch;
use super::subscription_search;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use crate::jobs::runner;
use crate::subscriptions::{FirstFetchWait, RequestTerms, Verification};
use feedgate_core::account::Access;
use feedgate_core::intent::{Intent, IntentMode};
use feedgate_core::store::SubscriptionFilter;
use feedgate_core::subscription::Subscription;
use feedgate_protocol::form::Form;

/// The number of subscriptions that are ended at the same time.
const CONCURRENCY: usize = 16;

/// Returns whether a request to unsubscribe names its subscriptions by a search.
pub(super) fn is_search(form: &Form) -> bool {
    form.pairs().any(|(name, _)| name == "search" || name.starts_with("search["))
}

/// Ends the subscriptions of the account that the parameters find, up to the size of a batch. They
/// are the account's own, so no callback is verified.
pub(super) async fn carry_out(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    for name in ["hub.topic", "hub.verify"] {
        if form.has(name) {
            let reason = format!("{name} cannot be used with search.");
            return Err(Rejection::unprocessable(reason));
        }
    }
    let is_blank =
        |(name, value): (&str, &str)| name.starts_with("search") && value.trim().is_empty();
    if form.pairs().any(is_blank) {
        // An empty text is part of every address.
        return Err(Rejection::unprocessable("search must not be empty."));
    }
    let search = SubscriptionSearch::from_form(form);
    let filter = SubscriptionFilter {
        account: Some(access.account),
        limit: MAX_ITEMS,
        ..SubscriptionFilter::default()
    };
    let (found, total) = subscription_search::find(gateway, access, &search, &filter).await?;
    let remaining = total.saturating_sub(found.len() as u64);
    let ended = found.iter().map(|listed| end(gateway, &listed.subscription).boxed());
    let ended: Vec<_> = ended.collect();
    let results = stream::iter(ended).buffered(CONCURRENCY).collect().await;
    let report = BatchReport { results, remaining: Some(remaining) };
    Ok(ApiReply::Response(report.to_response()))
}

async fn end(gateway: &Gateway, subscription: &Subscription) -> ItemResult {
    let intent = Intent::new(IntentMode::Unsubscribe, subscription.to_request());
    let (verification, wait) = (Verification::None, FirstFetchWait::Moment);
    let done = gateway
        .subscribe
        .carry_out(&intent, RequestTerms::of_account(verification, wait), runner::now())
        .await;
    let names = [
        ("hub.topic".to_owned(), subscription.topic.subscribed_as().to_owned()),
        ("hub.callback".to_owned(), subscription.callback.as_str().to_owned()),
    ];
    let named = Form::from_pairs(names.into_iter()).ok();
    let result = done.map(|_| ApiReply::Empty(StatusCode::NO_CONTENT)).map_err(reject_refusal);
    ItemResult::new(named.as_ref(), result)
}
