//! Reading an account's subscriptions, and searching them, at the account's own cost: what is read
//! counts as so many requests of the account, and one answer reads a bounded number.

use super::search::SubscriptionSearch;
use crate::http::kit::rate_limit::RowsRead;
use crate::http::kit::rejection::Rejection;
use crate::http::state::Gateway;
use feedgate_core::account::Access;
use feedgate_core::store::{ListedSubscription, SubscriptionFilter};

/// The subscriptions that are compared for one answer: some 20 ms of processor time.
const PART: usize = 2_000;
/// The most subscriptions that are compared for a request that needs all that a search finds.
const MAX_SEARCHED: usize = 10 * PART;

/// What a search finds in a part of the subscriptions.
pub(super) struct SearchedPart {
    /// The subscriptions that match, oldest first.
    pub(super) found: Vec<ListedSubscription>,
    /// The number of subscriptions before the part that follows; `None` after the last one.
    pub(super) next: Option<usize>,
}

/// Returns the subscriptions that a filter selects, and how many there are. They count as requests
/// of the account.
pub(super) async fn read(
    gateway: &Gateway,
    access: &Access,
    filter: &SubscriptionFilter,
) -> Result<(Vec<ListedSubscription>, u64), Rejection> {
    let most = RowsRead { read: filter.limit, skipped: filter.offset };
    let charge = gateway.account_rate_limit.admit_rows(access.account, most)?;
    let (listed, total) =
        gateway.store.list(filter).await.map_err(|err| Rejection::unavailable(&err))?;
    let skipped = filter.offset.min(usize::try_from(total).unwrap_or(usize::MAX));
    charge.return_unused(RowsRead { read: listed.len(), skipped });
    Ok((listed, total))
}

/// Searches a part of the subscriptions that `filter` selects, after so many others.
pub(super) async fn search_part(
    gateway: &Gateway,
    access: &Access,
    search: &SubscriptionSearch,
    filter: &SubscriptionFilter,
    skip: usize,
) -> Result<SearchedPart, Rejection> {
    let part = SubscriptionFilter { offset: skip, limit: PART, ..filter.clone() };
    let (listed, _) = read(gateway, access, &part).await?;
    let next = (listed.len() == PART).then(|| skip.saturating_add(PART));
    let found = listed.into_iter().filter(|listed| search.matches(listed)).collect();
    Ok(SearchedPart { found, next })
}

/// Returns up to `filter.limit` subscriptions that a search finds, and how many it finds in all.
pub(super) async fn find(
    gateway: &Gateway,
    access: &Access,
    search: &SubscriptionSearch,
    filter: &SubscriptionFilter,
) -> Result<(Vec<ListedSubscription>, u64), Rejection> {
    let (mut found, mut total, mut skip) = (Vec::new(), 0, Some(0));
    while let Some(searched) = skip.filter(|searched| *searched < MAX_SEARCHED) {
        let part = search_part(gateway, access, search, filter, searched).await?;
        total += part.found.len() as u64;
        let room = filter.limit - found.len();
        found.extend(part.found.into_iter().take(room));
        skip = part.next;
    }
    Ok((found, total))
}
