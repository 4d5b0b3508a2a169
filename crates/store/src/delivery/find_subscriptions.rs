//! The list of subscriptions: searched and filtered, a page at a time.
//!
//! An index gives the next [`COMPARED`] subscriptions that come into question: those to a resource, with a
//! callback at a host, in a state, or all. What is compared is read with them; only the rows of the page are
//! read as a whole. An account with few subscriptions begins with these.

use std::collections::BTreeSet;

use crate::cells::list_pages::{CellPage, PORTIONS, end_of_prefix, merge_pages};
use crate::delivery::listing::{listed_columns, read_listed};
use crate::delivery::row::subscription_id;
use crate::engine::row::Row;
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::find_feeds::first_words;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::feed_name::NameSearch;
use feedgate_core::store::{
    ListPosition, ListedState, ListedSubscription, StoreError, SubscriptionQuery,
    SubscriptionsFound,
};
use feedgate_core::subscription::SubscriptionId;

/// The most subscriptions that are compared for a page.
const COMPARED: usize = 2_000;

/// The list of subscriptions.
impl Store {
    /// Returns a page of the subscriptions that a query selects. Those of an account with few subscriptions
    /// are also found by another part of their callback, and by the words of their feed.
    pub async fn find_subscriptions(
        &self,
        query: &SubscriptionQuery,
    ) -> Result<SubscriptionsFound, StoreError> {
        let few_of = self.account_with_few(query.account).await?;
        let found = match query.resource {
            Some(id) => {
                vec![self.of_number(id.0).find_subscriptions(query.clone(), few_of).await?]
            }
            None => self.each(|db| db.find_subscriptions(query.clone(), few_of)).await?,
        };
        let (listed, next) = merge_pages(found, query.limit);
        Ok(SubscriptionsFound { listed, next })
    }
}

impl Db {
    async fn find_subscriptions(
        &self,
        query: SubscriptionQuery,
        few_of: Option<AccountId>,
    ) -> Result<CellPage<ListedSubscription>, StoreError> {
        self.read(move |tx| Box::pin(async move { find(tx, &query, few_of).await })).await
    }
}

/// A subscription that comes into question: what is compared of it.
struct Candidate {
    place: ListPosition,
    id: SubscriptionId,
    account: AccountId,
    callback: String,
    state: Option<ListedState>,
}

/// The columns of a [`Candidate`] besides its place.
macro_rules! candidate_columns {
    () => {
        "resource_id, id, account_id, callback, failures, paused_at, is_suspended"
    };
}

impl Candidate {
    /// Reads the place, and `candidate_columns!`.
    fn read(row: &mut Row) -> Result<Candidate, StoreError> {
        let place = ListPosition { text: row.text()?, number: row.int()?, id: row.int()? };
        let (id, account, callback) = (subscription_id(row)?, AccountId(row.int()?), row.text()?);
        let (fails, is_paused) = (row.int()? > 0, row.opt_int()?.is_some());
        let state = match (row.int()? != 0, is_paused) {
            (true, _) => Some(ListedState::Suspended),
            (false, true) => Some(ListedState::Paused),
            (false, false) => fails.then_some(ListedState::Failing),
        };
        Ok(Candidate { place, id, account, callback, state })
    }

    fn is_selected_by(&self, query: &SubscriptionQuery) -> bool {
        query.account.is_none_or(|account| account == self.account)
            && query.state.is_none_or(|state| self.state == Some(state))
    }
}

/// Returns an address without its scheme and credentials, in lower case.
fn bare(address: &str) -> String {
    let address = address.trim().to_lowercase();
    let bare = address.split_once("://").map_or(address.as_str(), |(_, bare)| bare);
    let (host, path) = bare.split_at(bare.find('/').unwrap_or(bare.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{host}{path}")
}

async fn find(
    tx: &Tx<'_>,
    query: &SubscriptionQuery,
    few_of: Option<AccountId>,
) -> Result<CellPage<ListedSubscription>, StoreError> {
    let (mut found, mut next) = selected(tx, query, few_of).await?;
    let wanted = bare(&query.search);
    if few_of.is_some() && !wanted.is_empty() {
        let named = feeds_named(tx, &query.search, &found).await?;
        found.retain(|Candidate { callback, id, .. }| {
            callback.to_lowercase().contains(&wanted) || named.contains(&id.resource.0)
        });
    } else {
        found.retain(|candidate| bare(&candidate.callback).starts_with(&wanted));
    }
    if found.len() > query.limit {
        found.truncate(query.limit);
        next = found.last().map(|last| last.place.clone());
    }
    let mut rows = Vec::with_capacity(found.len());
    let mut listed = read(tx, &found).await?;
    listed.sort_by_key(|listed| listed.subscription.id);
    for Candidate { place, id, .. } in found {
        // A subscription may have ended since it was compared.
        if let Ok(at) = listed.binary_search_by_key(&id, |listed| listed.subscription.id) {
            rows.push((place, listed.remove(at)));
        }
    }
    Ok(CellPage { rows, next })
}

/// Returns the feeds of these subscriptions that a search finds.
async fn feeds_named(
    tx: &Tx<'_>,
    search: &str,
    of: &[Candidate],
) -> Result<BTreeSet<i64>, StoreError> {
    let words = NameSearch::parse(search).words;
    let mut named: BTreeSet<i64> = of.iter().map(|candidate| candidate.id.resource.0).collect();
    for word in &words {
        let ids = named.into_iter().collect();
        named = first_words(tx, word, ids).await?.into_keys().collect();
    }
    Ok(if words.is_empty() { BTreeSet::new() } else { named })
}

/// Returns the next subscriptions that a query selects, which are looked for, but not for ever, and the place
/// behind which there may be more. It is that of one of them, because a place has a host.
async fn selected(
    tx: &Tx<'_>,
    query: &SubscriptionQuery,
    few_of: Option<AccountId>,
) -> Result<(Vec<Candidate>, Option<ListPosition>), StoreError> {
    let mut query = query.clone();
    for _ in 0..PORTIONS {
        let mut found = candidates(tx, &query, few_of).await?;
        let last = found.last().filter(|_| found.len() == COMPARED);
        let last = last.map(|last| last.place.clone());
        found.retain(|candidate| candidate.is_selected_by(&query));
        match last {
            Some(last) if found.is_empty() => query.after = last,
            last => {
                let next = last.and_then(|_| found.last().map(|own| own.place.clone()));
                return Ok((found, next));
            }
        }
    }
    // Whoever may see all may also know the place, and go on from there.
    Ok((Vec::new(), Some(query.after).filter(|_| query.account.is_none())))
}

/// Returns the next subscriptions that come into question.
async fn candidates(
    tx: &Tx<'_>,
    query: &SubscriptionQuery,
    few_of: Option<AccountId>,
) -> Result<Vec<Candidate>, StoreError> {
    const OF_RESOURCE: &str = concat!(
        "select '', cast(0 as bigint), id, ",
        candidate_columns!(),
        " from subscriptions
         where resource_id = $1 and id > $2 order by id limit $3"
    );
    const OWN_OF_RESOURCE: &str = concat!(
        "select '', cast(0 as bigint), id, ",
        candidate_columns!(),
        " from subscriptions {sqlite indexed by subscriptions_account_feed}
         where account_id = $1 and account_id <> 0 and resource_id = $2 and id > $3
         order by id limit $4"
    );
    const AT_HOST: &str = concat!(
        "select host, resource_id, id, ",
        candidate_columns!(),
        " from subscriptions {sqlite indexed by subscriptions_host}
         where (host {postgres collate \"C\"}, resource_id, id) > ($1, $2, $3)
           and host {postgres collate \"C\"} < $4
         order by host {postgres collate \"C\"}, resource_id, id limit $5"
    );
    let (after, limit) = (&query.after, most(COMPARED));
    let host = bare(&query.search);
    let host = host.split('/').next().unwrap_or_default();
    let rows = if let (Some(resource), Some(account)) = (query.resource, query.account) {
        let params = params![account.0, resource.0, after.id, limit].to_vec();
        tx.query(OWN_OF_RESOURCE, &params).await?
    } else if let Some(resource) = query.resource {
        tx.query(OF_RESOURCE, params![resource.0, after.id, limit]).await?
    } else if few_of.is_none() && !host.is_empty() {
        let from = if after.text.is_empty() { host } else { &after.text };
        let params = params![from, after.number, after.id, end_of_prefix(host), limit].to_vec();
        tx.query(AT_HOST, &params).await?
    } else {
        let (first, last) = query.account.map_or((0, i64::MAX), |account| (account.0, account.0));
        tx.query(of_accounts(query.state), params![after.number.max(first), after.id, last, limit])
            .await?
    };
    rows.into_iter().map(|mut row| Candidate::read(&mut row)).collect()
}

/// Returns the statement that reads the subscriptions of a range of accounts in this state.
fn of_accounts(state: Option<ListedState>) -> &'static str {
    const FAILING: &str = concat!(
        "select '', account_id, id, ",
        candidate_columns!(),
        " from subscriptions {sqlite indexed by subscriptions_failing}
         where failures > 0 and paused_at is null
           and (account_id, id) > ($1, $2) and account_id <= $3
         order by account_id, id limit $4"
    );
    const PAUSED: &str = concat!(
        "select '', account_id, id, ",
        candidate_columns!(),
        " from subscriptions {sqlite indexed by subscriptions_paused}
         where paused_at is not null
           and (account_id, id) > ($1, $2) and account_id <= $3
         order by account_id, id limit $4"
    );
    const ALL: &str = concat!(
        "select '', account_id, id, ",
        candidate_columns!(),
        " from subscriptions
         where (account_id, id) > ($1, $2) and account_id <= $3
         order by account_id, id limit $4"
    );
    match state {
        Some(ListedState::Failing) => FAILING,
        Some(ListedState::Paused | ListedState::Suspended) => PAUSED,
        None => ALL,
    }
}

/// Reads these subscriptions as a whole, in any order.
async fn read(tx: &Tx<'_>, found: &[Candidate]) -> Result<Vec<ListedSubscription>, StoreError> {
    const LISTED: &str = concat!(
        "select ",
        listed_columns!(),
        " from {rows}
          join subscriptions s on s.resource_id = given.resource_id and s.id = given.id
          join resources r on r.id = s.resource_id
          join resource_details d on d.resource_id = r.id"
    );
    let ids = |of: fn(&Candidate) -> i64| Value::Ints(found.iter().map(of).collect());
    let columns = [
        ("resource_id", ids(|candidate| candidate.id.resource.0)),
        ("id", ids(|candidate| candidate.id.number)),
    ];
    let rows = tx.query_rows(LISTED, &[], &columns).await?;
    rows.into_iter().map(|mut row| read_listed(&mut row)).collect()
}
