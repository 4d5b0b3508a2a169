//! Retrieving from several feeds at once: all that a callback is subscribed to (row
//! R-5), or all that a search finds (row R-6).
//!
//! The entries of all of them, newest first by when they arrived; each says by itself
//! where it is from. Status and head are those of the feed that is in trouble, if one
//! is, so that nobody overlooks it.

use std::collections::BTreeMap;

use http::StatusCode;

use super::account::{Answer, broken, unprocessable};
use super::list;
use super::retrieve::{self, Shelf};
use super::search::Search;
use super::subscribe;
use crate::domain::account::Access;
use crate::domain::record::Record;
use crate::domain::resource::{Resource, ResourceId};
use crate::http::Gateway;
use crate::http::exchange::Asked;
use crate::http::params::Refused;
use crate::store::Filter;
use crate::wire::form::Form;

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
    let mut records: Vec<Record> = Vec::new();
    for id in resources.keys() {
        let newest = gateway.store.read_before(*id, None, count).await;
        records.extend(newest.map_err(|err| broken(&err))?);
    }
    records.sort_by_key(|record| std::cmp::Reverse(record.at));
    records.truncate(count);
    let heads: i64 = resources.values().map(|resource| resource.head.0).sum();
    let format = subscribe::format(asked, form)?;
    let word = format.map_or("atom", |format| format.as_str());
    let etag = format!("W/\"{}-{heads}-{}-{word}\"", resources.len(), shown.status.version);
    Ok(retrieve::answer(
        gateway,
        form,
        &Shelf { resource: shown, records: &records, etag: &etag, format },
    ))
}

async fn found(
    gateway: &Gateway,
    form: &Form,
    access: &Access,
) -> Result<BTreeMap<ResourceId, Resource>, Refused> {
    let filter = Filter { account: Some(access.account), limit: MOST_FEEDS, ..Filter::default() };
    let (listed, total) = list::found(gateway, &Search::of(form), &filter).await?;
    if total >= MOST_FEEDS as u64 {
        return Err(unprocessable(format!(
            "Please narrow it down: {total} subscriptions fit, and it must be less than \
             {MOST_FEEDS}."
        )));
    }
    Ok(listed.into_iter().map(|listed| (listed.resource.id, listed.resource)).collect())
}
