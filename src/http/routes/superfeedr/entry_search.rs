//! `hub.mode=search`: the stored entries that match a query, newest first. The query language
//! is that of tracks, and so are the results.
//!
//! The index finds entries that may match, and the query decides. The number of entries that are
//! compared for one request is bounded; the document then names the address at which the search
//! continues. An account finds the entries of listed feeds and of those that it subscribes to.

use std::collections::HashMap;

use http::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio::task::yield_now;
use url::form_urlencoded::Serializer;

use super::api_reply::ApiReply;
use super::entries_document::{EntriesDocument, with_caching_headers};
use super::params;
use crate::http::kit::conditional::etag_matches;
use crate::http::kit::rate_limit::RowsRead;
use crate::http::kit::rejection::Rejection;
use crate::http::kit::reply::empty;
use crate::http::kit::request::Request;
use crate::http::state::Gateway;
use crate::jobs::runner;
use feedgate_core::account::{Access, AccountId};
use feedgate_core::query::{EntryText, Query, QueryError};
use feedgate_core::record::{Record, Seq};
use feedgate_core::resource::{Resource, ResourceId, ResourceKind};
use feedgate_core::search::{IndexSearch, PossibleMatch, SearchPosition};
use feedgate_core::status::Status;
use feedgate_core::store::StoreError;
use feedgate_core::stored_entry::sourced;
use feedgate_core::subscription::Format;
use feedgate_core::track::Track;
use feedgate_feed::model::{Feed, Text};
use feedgate_feed::render::atom;
use feedgate_protocol::form::Form;

/// The number of entries that are read at a time.
const PORTION: usize = 100;
/// How often entries are read for one request: comparing 500 entries takes some 100 ms.
const MAX_PORTIONS: usize = 5;
/// The number of subscriptions that are read in the time in which an entry is read and compared.
const ROWS_PER_ENTRY: usize = 8;

/// What a search has found.
struct FoundEntries {
    /// The entries that match, newest first.
    entries: Vec<PossibleMatch>,
    /// Where the search continues; `None`: no older entry matches.
    continues_before: Option<SearchPosition>,
    /// The number of entries that were compared.
    compared: usize,
}

/// Answers with the newest entries that match a query.
pub(super) async fn search(
    gateway: &Gateway,
    request: &Request,
    form: &Form,
    access: &Access,
) -> Result<ApiReply, Rejection> {
    if !gateway.settings.has_search_index {
        let reason = "This gateway has no search index: it was switched off (FEEDGATE_SEARCH). \
            Subscribe to a track, which is sent the entries that match a query from then on.";
        return Err(Rejection::unprocessable(reason).with_code("search_disabled"));
    }
    let query = Query::parse(form.get("query").unwrap_or_default()).map_err(reject_query)?;
    let format = params::format(request, form)?;
    if format == Some(Format::Raw) {
        return Err(Rejection::unprocessable("format must be atom or json, not raw."));
    }
    let count = params::count(form)?;
    let track = Track::new(&gateway.settings.public_url, query.clone()).map_err(reject_query)?;
    let (before, after) = (position(form, "before")?, position(form, "after")?);
    let search = IndexSearch { keys: query.search_keys(), before, after, limit: PORTION };
    let most = RowsRead { read: MAX_PORTIONS * PORTION * ROWS_PER_ENTRY, skipped: 0 };
    let charge = gateway.account_rate_limit.admit_rows(access.account, most)?;
    let mut searched = SearchedResources::new(gateway, access.account);
    let found = find_entries(&mut searched, &query, search, count).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unused(RowsRead { read: found.compared * ROWS_PER_ENTRY, skipped: 0 });
    let etag = found.etag(format);
    if etag_matches(&request.headers, &etag) {
        let response = with_caching_headers(empty(StatusCode::NOT_MODIFIED), &etag);
        return Ok(ApiReply::Response(response));
    }
    let address = address(gateway, form, form.get("before"));
    let next = found.continues_before.map(|before| before.to_string());
    let next = next.map(|before| self::address(gateway, form, Some(&before)));
    let head = head(&track, &address, &found.entries);
    let resource = described(track);
    let records: Vec<Record> = found.entries.into_iter().map(with_source).collect();
    let document = EntriesDocument {
        resource: &resource,
        combined_head: Some(&head),
        records: &records,
        etag: &etag,
        format,
        is_sanitized: false,
        address: &address,
        next: next.as_deref(),
    };
    Ok(document.to_reply(gateway, form))
}

/// The resources in which an account finds entries: those that lists contain, and those that it
/// subscribes to (rule S56).
struct SearchedResources<'g> {
    gateway: &'g Gateway,
    account: AccountId,
    /// What is known of the resources that entries were found of.
    known: HashMap<ResourceId, bool>,
}

impl<'g> SearchedResources<'g> {
    fn new(gateway: &'g Gateway, account: AccountId) -> SearchedResources<'g> {
        SearchedResources { gateway, account, known: HashMap::new() }
    }

    /// Removes the entries that the account may not find.
    async fn retain(&mut self, entries: &mut Vec<PossibleMatch>) -> Result<(), StoreError> {
        let listed = self.gateway.settings.listed;
        let mut others = Vec::new();
        for PossibleMatch { resource, .. } in entries.iter() {
            if self.known.contains_key(&resource.id) {
                continue;
            }
            let is_listed = resource.is_listed(listed);
            self.known.insert(resource.id, is_listed);
            if !is_listed {
                others.push(resource.id);
            }
        }
        if !others.is_empty() {
            let own = self.gateway.store.subscribed_by(self.account, &others).await?;
            self.known.extend(own.into_iter().map(|id| (id, true)));
        }
        entries.retain(|entry| self.known.get(&entry.resource.id).is_some_and(|found| *found));
        Ok(())
    }
}

/// Reads entries that may match, and returns the first `count` that do.
async fn find_entries(
    searched: &mut SearchedResources<'_>,
    query: &Query,
    mut search: IndexSearch,
    count: usize,
) -> Result<FoundEntries, StoreError> {
    let (mut entries, mut compared) = (Vec::new(), 0);
    for _ in 0..MAX_PORTIONS {
        let mut found = searched.gateway.store.find_possible_matches(&search).await?;
        let read = found.entries.len();
        searched.retain(&mut found.entries).await?;
        compared += read - found.entries.len();
        for entry in found.entries {
            compared += 1;
            let text = EntryText::read(&entry.resource, &entry.record.atom);
            if text.is_some_and(|text| query.matches(&text)) {
                entries.push(entry);
            }
            // One more shows that there is a next page.
            if entries.len() > count {
                entries.truncate(count);
                let continues_before = entries.last().map(|entry| entry.position);
                return Ok(FoundEntries { entries, continues_before, compared });
            }
            yield_now().await;
        }
        search.before = found.continues_before;
        if search.before.is_none() {
            break;
        }
    }
    Ok(FoundEntries { entries, continues_before: search.before, compared })
}

impl FoundEntries {
    /// Returns the entity tag, which is weak, because the status contains the time.
    fn etag(&self, format: Option<Format>) -> String {
        let positions = self.entries.iter().map(|entry| entry.position);
        let positions = positions.chain(self.continues_before).map(|position| position.to_string());
        let digest = Sha256::digest(positions.collect::<Vec<_>>().join(" "));
        let format = format.unwrap_or(Format::Atom).as_str();
        format!("W/\"search-{}-{format}\"", hex::encode(&digest[..8]))
    }
}

fn reject_query(reason: QueryError) -> Rejection {
    let reason = format!("Please provide a valid query. ({reason}.)");
    Rejection::unprocessable(reason).with_code("bad_query")
}

/// Returns the position that a parameter gives.
fn position(form: &Form, name: &str) -> Result<Option<SearchPosition>, Rejection> {
    let Some(text) = form.get(name) else { return Ok(None) };
    SearchPosition::parse(text).map(Some).ok_or_else(|| {
        let reason = format!(
            "{name} must be a position in the search, as in the link to its next page, not {text}."
        );
        Rejection::unprocessable(reason)
    })
}

/// Returns the address of this search, continued at `before`. It contains no credentials.
fn address(gateway: &Gateway, form: &Form, before: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("hub.mode", "search");
    let kept = ["query", "format", "count", "after"];
    query.extend_pairs(kept.into_iter().filter_map(|name| Some((name, form.get(name)?))));
    query.extend_pairs(before.map(|before| ("before", before)));
    gateway.public_url(&format!("?{}", query.finish()))
}

/// Returns the head of the document.
fn head(track: &Track, address: &str, entries: &[PossibleMatch]) -> String {
    atom::head(&Feed {
        id: address.to_owned(),
        title: Some(Text::plain(track.title())),
        updated: entries.first().map(|entry| entry.record.at.fixed_offset()),
        ..Feed::default()
    })
}

/// Returns what the document is about: the track with the same query, to which a client can
/// subscribe, with the status of this search.
fn described(track: Track) -> Resource {
    let now = runner::now();
    let (title, last_fetch) = (track.title(), Some(now));
    let status =
        Status { http_code: 200, title, last_fetch, last_parse: last_fetch, ..Status::new(now) };
    Resource {
        id: ResourceId(0),
        fetch_url: track.topic.as_str().to_owned(),
        topic: track.topic,
        kind: ResourceKind::Collection,
        head: Seq::NONE,
        body_version: 0,
        feed_head: String::new(),
        next_fetch: now,
        status,
        polling: Default::default(),
        subscribers: 0,
        pushed_until: None,
        exposure: Default::default(),
    }
}

fn with_source(entry: PossibleMatch) -> Record {
    let atom = sourced(&entry.resource, &entry.record.atom);
    Record { atom, ..entry.record }
}
