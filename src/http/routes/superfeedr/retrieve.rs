//! `hub.mode=retrieve`: the last entries of a resource, newest first. Only
//! subscribers may retrieve them.

use http::StatusCode;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};

use super::address;
use super::api_reply::ApiReply;
use super::combined;
use super::entries_document::{EntriesDocument, sanitized_mark, with_caching_headers};
use super::entries_format::EntriesFormat;
use super::entry_selection::{EntrySelection, MAX_BYTES, filter_mark};
use super::params;
use super::wait::{LONGEST_WAIT, Wait};
use crate::http::kit::conditional::etag_matches;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::{empty, with_content_type};
use crate::http::kit::request::Request;
use crate::http::routes::discovered_feeds;
use crate::http::state::Gateway;
use feedgate_core::account::Access;
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceKind};
use feedgate_core::store::{EntryRange, ListedSubscription, StoreError, SubscriptionFilter};
use feedgate_core::topic::Topic;
use feedgate_protocol::form::Form;

/// Answers with the stored entries of a topic, or of several. A client that waits for the first entry
/// is answered when there is one.
pub(super) async fn retrieve(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
    wait: Wait,
) -> Result<ApiReply, Rejection> {
    if !form.has("hub.topic") && combined::is_requested(form) {
        return combined::retrieve(gateway, request, form, access, wait).await;
    }
    let resource = first_subscription(gateway, form, access).await?.resource;
    let format = EntriesFormat::requested(request, form)?;
    let is_sanitized = form.is_set("sanitize");
    if resource.kind == ResourceKind::Other
        && format.is_none()
        && !is_sanitized
        && !form.has("filter")
    {
        let reply = raw(gateway, request, &resource).await;
        return reply.map_err(|err| Rejection::unavailable(&err));
    }
    let current = etag(&resource, format, form);
    if wait == Wait::No && etag_matches(&request.headers, &current) {
        let response = with_caching_headers(empty(StatusCode::NOT_MODIFIED), &current);
        return Ok(ApiReply::Response(response));
    }
    let (resource, records) = requested_records(gateway, form, resource, wait).await?;
    let etag = etag(&resource, format, form);
    let (resource, records) = (&resource, records.as_slice());
    let address = address::of_document(gateway, request, form);
    let (etag, address) = (&*etag, &*address);
    let document = EntriesDocument {
        resource,
        combined_head: None,
        is_own_feed: address::is_of_own_feed(gateway, form, resource),
        records,
        etag,
        format,
        is_sanitized,
        address,
        next: None,
    };
    Ok(document.to_reply(gateway, form))
}

/// Returns the oldest subscription of the account to the topic.
pub(super) async fn first_subscription(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<ListedSubscription, Rejection> {
    let topic = params::topic(form)?;
    let topic = gateway.subscribe.resolve(&topic, Some(access.account), None).await;
    let topic = topic.map_err(|err| Rejection::unavailable(&err))?;
    let filter = SubscriptionFilter {
        account: Some(access.account),
        topic: Some(topic.as_str().to_owned()),
        limit: 1,
        ..SubscriptionFilter::default()
    };
    let (listed, _) =
        gateway.store.list(&filter).await.map_err(|err| Rejection::unavailable(&err))?;
    listed.into_iter().next().ok_or_else(|| {
        let reason = "You are not subscribed to this topic.";
        Rejection::new(StatusCode::NOT_FOUND, reason).with_code("no_subscription")
    })
}

/// Returns the requested records. A client that waits is answered once there is at least one, or
/// with none after the longest wait.
async fn requested_records(
    gateway: &Gateway,
    form: &Form,
    mut resource: Resource,
    wait: Wait,
) -> Result<(Resource, Vec<Record>), Rejection> {
    let mut head = gateway.heads.follow(resource.id, resource.head);
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        let found = records(gateway, form, &resource).await?;
        if !found.is_empty() || wait == Wait::No {
            return Ok((resource, found));
        }
        let is_grown = tokio::select! {
            () = gateway.stop.cancelled() => false,
            grown = timeout_at(deadline, head.wait_for(|head| *head > resource.head)) => {
                grown.is_ok_and(|grown| grown.is_ok())
            }
        };
        let now = match is_grown {
            true => gateway.store.get(resource.id).await,
            false => Ok(None),
        };
        match now.map_err(|err| Rejection::unavailable(&err))? {
            Some(now) => resource = now,
            None => return Ok((resource, found)),
        }
    }
}

/// Returns the requested records, newest first, each entry in its current version.
pub(super) async fn records(
    gateway: &Gateway,
    form: &Form,
    resource: &Resource,
) -> Result<Vec<Record>, Rejection> {
    let selection = EntrySelection::from_form(form)?;
    let before = seq(gateway, form, resource, "before").await?;
    let after = seq(gateway, form, resource, "after").await?;
    let limit = selection.read_limit();
    let span = EntryRange { after, before, limit, max_bytes: Some(MAX_BYTES) };
    let read = gateway.store.read_current(resource.id, &span).await;
    let read = read.map_err(|err| Rejection::unavailable(&err))?;
    let read = read.into_iter().map(|record| (resource, record)).collect();
    let selected = selection.select(read, after.is_some()).await;
    Ok(selected.into_iter().map(|(_, record)| record).collect())
}

/// Rejects parameters with which entries of a topic cannot be retrieved, before somebody subscribes
/// to it.
pub(super) async fn check_range(
    gateway: &Gateway,
    form: &Form,
    topic: &Topic,
) -> Result<(), Rejection> {
    EntrySelection::from_form(form)?;
    let names = ["before", "after"].into_iter().filter(|name| form.get(name).is_some());
    let found = gateway.store.find(topic.as_str()).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    for name in names {
        match &found {
            Some(resource) => seq(gateway, form, resource, name).await.map(drop)?,
            None => {
                let reason = format!("{name} names no entry, because the topic is not known yet.");
                return Err(Rejection::unprocessable(reason));
            }
        }
    }
    Ok(())
}

/// Returns the number of the entry whose id a parameter gives.
pub(super) async fn seq(
    gateway: &Gateway,
    form: &Form,
    resource: &Resource,
    name: &str,
) -> Result<Option<Seq>, Rejection> {
    let Some(entry_id) = form.get(name) else { return Ok(None) };
    let seq = gateway
        .store
        .find_seq(resource.id, entry_id)
        .await
        .map_err(|err| Rejection::unavailable(&err))?;
    seq.map(Some).ok_or_else(|| params::no_such_entry(entry_id))
}

/// Returns the body of a resource that is not a feed, unless a format is requested (S-7).
async fn raw(
    gateway: &Gateway,
    request: &Request,
    resource: &Resource,
) -> Result<ApiReply, StoreError> {
    let Some((version, body)) = gateway.store.body(resource.id).await? else {
        return Ok(ApiReply::Empty(StatusCode::NO_CONTENT));
    };
    let etag = format!("\"{}-{version}-raw\"", resource.id);
    if etag_matches(&request.headers, &etag) {
        let response = with_caching_headers(empty(StatusCode::NOT_MODIFIED), &etag);
        return Ok(ApiReply::Response(response));
    }
    let content_type = body.content_type.as_deref().unwrap_or("application/octet-stream");
    let response = with_content_type(StatusCode::OK, content_type, body.bytes);
    let mut response = with_caching_headers(response, &etag);
    discovered_feeds::announce(&mut response, &resource.polling.offers);
    Ok(ApiReply::Response(response))
}

/// Returns the entity tag, which is weak: the times in the status change with each fetch, and are
/// no change of the document.
fn etag(resource: &Resource, format: Option<EntriesFormat>, form: &Form) -> String {
    let format = format.map_or("atom", EntriesFormat::word);
    let (sanitized, filtered) = (sanitized_mark(form.is_set("sanitize")), filter_mark(form));
    let head = Sha256::digest(&resource.feed_head);
    format!(
        "W/\"{}-{}-{}-{}-{format}{sanitized}{filtered}\"",
        resource.id,
        resource.head,
        resource.status.version,
        hex::encode(&head[..6])
    )
}
