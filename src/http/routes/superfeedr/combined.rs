//! Retrieving from several feeds at once: all that a callback is subscribed to (row
//! R-5), or all that a search finds (row R-6).
//!
//! The entries of all of them, newest first by when they arrived; each says in its source
//! which feed it is from. The status is that of the feed that is in trouble, if one is, so
//! that nobody overlooks it; the head is of none of them.

use std::collections::BTreeMap;

use http::StatusCode;

use super::account::{Answer, broken, unprocessable};
use super::list;
use super::retrieve::{self, Shelf};
use super::search::Search;
use super::subscribe;
use crate::http::Gateway;
use crate::http::kit::exchange::Asked;
use crate::http::kit::params::Refused;
use feedgate_core::account::Access;
use feedgate_core::ports::{EntryRange, SubscriptionFilter};
use feedgate_core::record::Record;
use feedgate_core::resource::{Resource, ResourceId};
use feedgate_core::stored_entry::sourced;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::render::atom;
use feedgate_protocol::form::Form;

/// "less than 200 feeds" (Superfeedr's API, row R-5).
const MOST_FEEDS: usize = 200;

/// Whether feeds are chosen by their subscription rather than by their topic.
pub(super) fn is_asked(form: &Form) -> bool {
    form.pairs().any(|(name, value)| name.starts_with("hub.callback") && !value.is_empty())
}

/// Answers with the newest entries of all feeds found.
pub(super) async fn retrieve(
    gateway: &Gateway,
    asked: &Asked,
    form: &Form,
    access: &Access,
) -> Result<Answer, Refused> {
    let resources = found(gateway, form, access).await?;
    let Some(shown) = resources.values().max_by_key(|resource| resource.status.is_failing()) else {
        let why = "You have no subscription with this callback.";
        return Err(Refused::new(StatusCode::NOT_FOUND, why));
    };
    let count = retrieve::count(form)?;
    let mut newest: Vec<(&Resource, Record)> = Vec::new();
    for (id, resource) in &resources {
        let read = gateway
            .store
            .read_current(*id, &EntryRange { limit: count, ..EntryRange::default() })
            .await;
        let records = read.map_err(|err| broken(&err))?;
        newest.extend(records.into_iter().map(|record| (resource, record)));
    }
    newest.sort_by_key(|(_, record)| std::cmp::Reverse(record.at));
    newest.truncate(count);
    let said = |(resource, record): (&Resource, Record)| Record {
        atom: sourced(resource, &record.atom),
        ..record
    };
    let records: Vec<Record> = newest.into_iter().map(said).collect();
    let head = head(gateway, resources.len(), &records);
    let heads: i64 = resources.values().map(|resource| resource.head.0).sum();
    let format = subscribe::format(asked, form)?;
    let word = format.map_or("atom", |format| format.as_str());
    let etag = format!("W/\"{}-{heads}-{}-{word}\"", resources.len(), shown.status.version);
    Ok(retrieve::answer(
        gateway,
        form,
        &Shelf { resource: shown, head: Some(&head), records: &records, etag: &etag, format },
    ))
}

/// The head of a document that joins `feeds` feeds.
fn head(gateway: &Gateway, feeds: usize, records: &[Record]) -> String {
    let newest = records.first().map(|record| record.at.fixed_offset());
    atom::head(&Feed {
        id: gateway.address("?hub.mode=retrieve"),
        title: Some(Text::plain(format!("The newest entries of {feeds} feeds"))),
        updated: newest,
        ..Feed::default()
    })
}

async fn found(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<BTreeMap<ResourceId, Resource>, Refused> {
    let filter = SubscriptionFilter {
        account: Some(access.account),
        limit: MOST_FEEDS,
        ..SubscriptionFilter::default()
    };
    let (listed, total) = list::found(gateway, &Search::of(form), &filter).await?;
    if total >= MOST_FEEDS as u64 {
        return Err(unprocessable(format!(
            "Please narrow it down: {total} subscriptions fit, and it must be less than \
             {MOST_FEEDS}."
        )));
    }
    Ok(listed.into_iter().map(|listed| (listed.resource.id, listed.resource)).collect())
}
