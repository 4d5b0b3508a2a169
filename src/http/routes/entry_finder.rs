//! Finding the stored entries that match a query, for the endpoints that search.
//!
//! The index finds entries that may match, and the query decides. The number of entries that are
//! compared for one request is bounded: the result says where the search continues. An account finds
//! the entries of listed feeds and of those that it subscribes to.

use std::collections::HashMap;

use tokio::task::yield_now;

use crate::http::kit::rate_limit::RowsRead;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use feedgate_core::account::AccountId;
use feedgate_core::query::{EntryText, Query};
use feedgate_core::resource::ResourceId;
use feedgate_core::search::{IndexSearch, PossibleMatch, SearchPosition};
use feedgate_core::store::StoreError;

/// The number of entries that are read at a time.
const PORTION: usize = 100;
/// How often entries are read for one request: comparing 500 entries takes some 100 ms.
const MAX_PORTIONS: usize = 5;
/// The number of subscriptions that are read in the time in which an entry is read and compared.
const ROWS_PER_ENTRY: usize = 8;

/// What a search has found.
pub(crate) struct FoundEntries {
    /// The entries that match, newest first.
    pub(crate) entries: Vec<PossibleMatch>,
    /// Where the search continues; `None`: no older entry matches.
    pub(crate) continues_before: Option<SearchPosition>,
    /// The number of entries that were compared.
    compared: usize,
}

/// The positions between which entries are searched, both exclusive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EntrySpan {
    pub(crate) before: Option<SearchPosition>,
    pub(crate) after: Option<SearchPosition>,
}

/// Rejects searches if the index was switched off.
pub(crate) fn require_index(gateway: &Gateway) -> Result<(), Rejection> {
    if gateway.settings.has_search_index {
        return Ok(());
    }
    let reason = "This gateway has no search index: it was switched off (FEEDGATE_SEARCH). \
        Subscribe to a track, which is sent the entries that match a query from then on.";
    Err(Rejection::unprocessable(reason).with_code("search_disabled"))
}

/// Returns the newest `count` entries in a span that match a query and that the account may find. What is
/// read counts as requests of the account.
pub(crate) async fn find_entries(
    gateway: &Gateway,
    account: AccountId,
    query: &Query,
    span: EntrySpan,
    count: usize,
) -> Result<FoundEntries, Rejection> {
    let EntrySpan { before, after } = span;
    let search = IndexSearch { keys: query.search_keys(), before, after, limit: PORTION };
    let most = RowsRead { read: MAX_PORTIONS * PORTION * ROWS_PER_ENTRY, skipped: 0 };
    let charge = gateway.account_rate_limit.admit_rows(account, most)?;
    let mut searched = SearchedResources::new(gateway, account);
    let found = read_matches(&mut searched, query, search, count).await;
    let found = found.map_err(|err| Rejection::unavailable(&err))?;
    charge.return_unused(RowsRead { read: found.compared * ROWS_PER_ENTRY, skipped: 0 });
    Ok(found)
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
async fn read_matches(
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
