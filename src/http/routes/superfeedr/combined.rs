//! Retrieving from several feeds at once: all that a callback is subscribed to, or all that
//! a search finds.
//!
//! The entries of all feeds come newest first by the time they arrived, and each names its feed
//! as its source. The status is that of a feed that is failing, if there is one, so that it is
//! not overlooked; the head belongs to no single feed.

mod feeds;

use std::collections::BTreeMap;

use futures_util::future::select_all;
use http::StatusCode;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};

use super::address;
use super::api_reply::ApiReply;
use super::entries_document::{EntriesDocument, sanitized_mark, with_caching_headers};
use super::entries_format::EntriesFormat;
use super::entry_selection::{EntrySelection, filter_mark};
use super::params;
use super::search::SubscriptionSearch;
use super::subscription_search;
use super::wait::{LONGEST_WAIT, Wait};
use crate::http::kit::conditional::etag_matches;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use feedgate_core::account::Access;
use feedgate_core::record::Record;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::store::{ListedSubscription, SubscriptionFilter};
use feedgate_core::stored_entry::sourced;
use feedgate_core::subscription::Format;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::render::atom;
use feedgate_protocol::form::Form;
use feeds::{Feeds, RangeError};

/// "less than 200 feeds" (Superfeedr's API, R-5).
const MAX_FEEDS: usize = 200;

/// Returns whether feeds are selected by their subscription rather than by their topic.
pub(super) fn is_requested(form: &Form) -> bool {
    form.pairs().any(|(name, value)| name.starts_with("hub.callback") && !value.is_empty())
}

/// Answers with the newest entries of all feeds found.
pub(super) async fn retrieve(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
    wait: Wait,
) -> Result<ApiReply, Rejection> {
    let format = EntriesFormat::requested(request, form)?;
    let is_sanitized = form.is_set("sanitize");
    let mut resources = found_resources(gateway, form, access).await?;
    if wait == Wait::No {
        let current = etag(&resources, format, form);
        if etag_matches(&request.headers, &current) {
            let response = with_caching_headers(empty(StatusCode::NOT_MODIFIED), &current);
            return Ok(ApiReply::Response(response));
        }
    }
    let deadline = Instant::now() + LONGEST_WAIT;
    let records = loop {
        let feeds = Feeds { store: &gateway.store, resources: &resources };
        let records = requested_records(&feeds, form).await?;
        let waits = records.is_empty() && wait != Wait::No;
        if !waits || !growth(gateway, &resources, deadline).await {
            break records;
        }
        resources = found_resources(gateway, form, access).await?;
    };
    let Some(resource) = reported(&resources) else {
        let reason = "You have no subscription with this callback.";
        return Err(Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_subscription"));
    };
    let head = head(gateway, resources.len(), &records);
    let etag = etag(&resources, format, form);
    let (combined_head, records) = (Some(head.as_str()), records.as_slice());
    let address = address::of_document(gateway, request, form);
    let (etag, address) = (&*etag, &*address);
    let document = EntriesDocument {
        resource,
        combined_head,
        is_own_feed: false,
        records,
        etag,
        format,
        is_sanitized,
        address,
        next: None,
    };
    Ok(document.to_reply(gateway, form))
}

/// Waits until one of the logs has grown. Returns `false` if none has by `deadline`, or the gateway
/// stops.
async fn growth(
    gateway: &Gateway,
    resources: &BTreeMap<ResourceId, Resource>,
    deadline: Instant,
) -> bool {
    if resources.is_empty() {
        return false;
    }
    let follow =
        |resource: &Resource| (resource.head, gateway.heads.follow(resource.id, resource.head));
    let mut logs: Vec<_> = resources.values().map(follow).collect();
    let grown = logs.iter_mut().map(|(before, head)| {
        Box::pin(async move { head.wait_for(|head| *head > *before).await.is_ok() })
    });
    tokio::select! {
        () = gateway.stop.cancelled() => false,
        first = timeout_at(deadline, select_all(grown)) => first.is_ok_and(|(is_grown, ..)| is_grown),
    }
}

/// Returns the resource whose status is told: one that fails, if there is one.
fn reported(resources: &BTreeMap<ResourceId, Resource>) -> Option<&Resource> {
    resources.values().max_by_key(|resource| resource.status.is_failing())
}

/// Returns the weak entity tag of all that the resources have.
fn etag(
    resources: &BTreeMap<ResourceId, Resource>,
    format: Option<EntriesFormat>,
    form: &Form,
) -> String {
    let mut versions = Sha256::new();
    for resource in resources.values() {
        let version = (resource.id, resource.head.0, resource.status.version, &resource.feed_head);
        versions.update(format!("{version:?}"));
    }
    let word = format.map_or("atom", EntriesFormat::word);
    let (sanitized, filtered) = (sanitized_mark(form.is_set("sanitize")), filter_mark(form));
    format!("W/\"{}-{word}{sanitized}{filtered}\"", hex::encode(&versions.finalize()[..12]))
}

/// Returns a document of the requested entries of all resources, for a stream; `None` if there are
/// none.
pub(super) async fn document(
    gateway: &Gateway,
    form: &Form,
    resources: &BTreeMap<ResourceId, Resource>,
    (format, address): (Format, &str),
) -> Result<Option<String>, Rejection> {
    let Some(resource) = reported(resources) else { return Ok(None) };
    let feeds = Feeds { store: &gateway.store, resources };
    let records = requested_records(&feeds, form).await?;
    let head = head(gateway, resources.len(), &records);
    let format = Some(EntriesFormat::Notification(format));
    let (combined_head, records) = (Some(head.as_str()), &*records);
    let document = EntriesDocument {
        resource,
        combined_head,
        is_own_feed: false,
        records,
        etag: "",
        format,
        is_sanitized: form.is_set("sanitize"),
        address,
        next: None,
    };
    Ok((!records.is_empty()).then(|| document.body(gateway)))
}

/// Returns the requested records of all feeds, newest first, each with its feed as its source.
async fn requested_records(feeds: &Feeds<'_>, form: &Form) -> Result<Vec<Record>, Rejection> {
    let selection = EntrySelection::from_form(form)?;
    let (before, after) = (form.get("before"), form.get("after"));
    let range = feeds.range(before, after).await.map_err(|err| match err {
        RangeError::UnknownEntry(id) => params::no_such_entry(&id),
        RangeError::Store(err) => Rejection::unavailable(&err),
    })?;
    let read = feeds.records(&range, selection.read_limit()).await;
    let read = read.map_err(|err| Rejection::unavailable(&err))?;
    let records = selection.select(read, after.is_some()).await;
    let with_source = |(resource, record): (&Resource, Record)| Record {
        atom: sourced(resource, &record.atom),
        ..record
    };
    Ok(records.into_iter().map(with_source).collect())
}

/// Returns the head of a document that combines `feeds` feeds.
fn head(gateway: &Gateway, feeds: usize, records: &[Record]) -> String {
    let newest = records.first().map(|record| record.at.fixed_offset());
    atom::head(&Feed {
        id: gateway.public_url("?hub.mode=retrieve"),
        title: Some(Text::plain(format!("The newest entries of {feeds} feeds"))),
        updated: newest,
        ..Feed::default()
    })
}

/// Returns the resources of the subscriptions that a form selects.
async fn found_resources(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<BTreeMap<ResourceId, Resource>, Rejection> {
    let listed = found_subscriptions(gateway, form, access).await?;
    Ok(listed.into_iter().map(|listed| (listed.resource.id, listed.resource)).collect())
}

/// Returns the subscriptions that a form selects.
pub(super) async fn found_subscriptions(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<Vec<ListedSubscription>, Rejection> {
    let filter = SubscriptionFilter {
        account: Some(access.account),
        limit: MAX_FEEDS,
        ..SubscriptionFilter::default()
    };
    let (listed, total) =
        subscription_search::find(gateway, access, &SubscriptionSearch::from_form(form), &filter)
            .await?;
    if total >= MAX_FEEDS as u64 {
        return Err(Rejection::unprocessable(format!(
            "{total} subscriptions match, which is too many. Please narrow the search to fewer \
             than {MAX_FEEDS}."
        )));
    }
    Ok(listed)
}
