//! The list of feeds: searched, filtered and ordered, a page at a time.
//!
//! A page is made in steps, each of which reads a bounded number of rows. First an index gives the next
//! [`COMPARED`] feeds that come into question: those in a state, those with a word, or all. Then those are left
//! out that the account does not subscribe to, or in which a word of the search is missing. The rest is read
//! until the page is full. An account with few subscriptions begins with these.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use crate::cells::list_pages::{CellPage, PORTIONS, PlacedRow, end_of_prefix, merge_pages};
use crate::engine::sql::{Value, params};
use crate::engine::tx::Tx;
use crate::log::row::most;
use crate::resources::row::{resource, resource_columns};
use crate::resources::subscribed_by;
use crate::{Db, Store};
use feedgate_core::account::AccountId;
use feedgate_core::feed_state::FeedState;
use feedgate_core::resource::Resource;
use feedgate_core::store::{FeedOrder, FeedQuery, FeedsFound, ListPosition, StoreError};
use feedgate_core::subscription::SubscriptionOwner;

/// The most feeds that are compared for a page.
const COMPARED: usize = 1_000;
/// The most subscriptions of an account whose feeds are all read for a page.
const FEW: u64 = 2_000;

/// The list of feeds.
impl Store {
    /// Returns a page of the feeds that a query selects, which somebody subscribes to.
    pub async fn find_feeds(
        &self,
        query: &FeedQuery,
        now: DateTime<Utc>,
    ) -> Result<FeedsFound, StoreError> {
        let few_of = self.account_with_few(query.account).await?;
        let found = self.each(|db| db.find_feeds(query.clone(), few_of, now)).await?;
        let (feeds, next) = merge_pages(found, query.limit);
        Ok(FeedsFound { feeds, next })
    }

    /// Returns the account if it has few subscriptions.
    pub(crate) async fn account_with_few(
        &self,
        account: Option<AccountId>,
    ) -> Result<Option<AccountId>, StoreError> {
        let Some(account) = account else { return Ok(None) };
        let count = self.count_owned(&SubscriptionOwner::Account(account)).await?;
        Ok((count <= FEW).then_some(account))
    }
}

impl Db {
    async fn find_feeds(
        &self,
        query: FeedQuery,
        few_of: Option<AccountId>,
        now: DateTime<Utc>,
    ) -> Result<CellPage<Resource>, StoreError> {
        self.read(move |tx| Box::pin(async move { find(tx, &query, few_of, now).await })).await
    }
}

/// The places of feeds that come into question, and whether there may be more behind them.
struct Candidates {
    places: Vec<ListPosition>,
    is_full: bool,
}

async fn find(
    tx: &Tx<'_>,
    query: &FeedQuery,
    few_of: Option<AccountId>,
    now: DateTime<Utc>,
) -> Result<CellPage<Resource>, StoreError> {
    let Candidates { mut places, is_full } = match (few_of, query.account) {
        (Some(account), _) => owned(tx, account, query).await?,
        (None, Some(account)) => owned_among_all(tx, account, query).await?,
        (None, None) => candidates(tx, query).await?,
    };
    let mut next = places.last().cloned().filter(|_| is_full);
    for (n, word) in query.search.words.iter().enumerate() {
        let found = first_words(tx, word, ids(&places)).await?;
        // A feed with several words that begin so is in the index of words several times.
        let is_driver = n == 0 && few_of.is_none() && by_state(query).is_none();
        places.retain(|place| {
            found.get(&place.id).is_some_and(|first| !is_driver || *first == place.text)
        });
    }
    let (mut rows, mut compared): (Vec<PlacedRow<Resource>>, _) = (Vec::new(), places.as_slice());
    while !compared.is_empty() && rows.len() <= query.limit {
        let (some, rest) = compared.split_at(compared.len().min(query.limit + 1));
        let mut read = read(tx, ids(some)).await?;
        let feeds = some.iter().filter_map(|place| Some((place.clone(), read.remove(&place.id)?)));
        rows.extend(feeds.filter(|(_, feed)| {
            let state = FeedState::from_resource(feed, now);
            query.state.is_none_or(|wanted| state.is_listed_as(wanted))
        }));
        compared = rest;
    }
    if rows.len() > query.limit {
        rows.truncate(query.limit);
        next = rows.last().map(|(place, _)| place.clone());
    }
    Ok(CellPage { rows, next })
}

fn ids(places: &[ListPosition]) -> Vec<i64> {
    places.iter().map(|place| place.id).collect()
}

/// The statements that find the feeds that may be in a state.
struct StateIndex {
    /// Reads the next ones.
    next: &'static str,
    /// Reads those among some feeds.
    among: &'static str,
}

/// Returns how the feeds in a state are found; `None` if no index has them.
fn by_state(query: &FeedQuery) -> Option<StateIndex> {
    const FAILING: &str = "
        select id from resources {sqlite indexed by resources_failing}
         where failing = 1 and subscribers > 0 and id > $1 order by id limit $2";
    const ARE_FAILING: &str = "select id from resources where id in ({ids $1}) and failing = 1";
    const NEW: &str = "
        select id from resources {sqlite indexed by resources_new}
         where fetched_at is null and subscribers > 0 and id > $1 order by id limit $2";
    const ARE_NEW: &str = "select id from resources where id in ({ids $1}) and fetched_at is null";
    const MOVED: &str = "
        select id from resources {sqlite indexed by resources_moved}
         where fetch_url <> topic and subscribers > 0 and id > $1 order by id limit $2";
    const ARE_MOVED: &str =
        "select id from resources where id in ({ids $1}) and fetch_url <> topic";
    const PUSHED: &str = "
        select resource_id from upstreams {sqlite indexed by upstreams_trusted}
         where state = 'active' and is_trusted = 1 and resource_id > $1
         order by resource_id limit $2";
    const ARE_PUSHED: &str = "
        select resource_id from upstreams
         where resource_id in ({ids $1}) and state = 'active' and is_trusted = 1";
    let index = |next, among| Some(StateIndex { next, among });
    match query.state? {
        FeedState::Failing | FeedState::Gone => index(FAILING, ARE_FAILING),
        FeedState::New => index(NEW, ARE_NEW),
        FeedState::Moved => index(MOVED, ARE_MOVED),
        FeedState::Pushed => index(PUSHED, ARE_PUSHED),
        FeedState::Ok => None,
    }
}

/// Returns the next feeds of all accounts that come into question.
async fn candidates(tx: &Tx<'_>, query: &FeedQuery) -> Result<Candidates, StoreError> {
    const BY_WORD: &str = "
        select word, cast(0 as bigint), resource_id from resource_words
         where (word, resource_id) > ($1, $2) and word < $3
         order by word, resource_id limit $4";
    const BY_NAME: &str = "
        select name, cast(0 as bigint), resource_id from resource_names
         where (name, resource_id) > ($1, $2) order by name, resource_id limit $3";
    const BY_LAST_CHANGE: &str = "
        select '', last_new, resource_id from resource_names
         where (last_new, resource_id) > ($1, $2) order by last_new, resource_id limit $3";
    const BY_NEXT_FETCH: &str = "
        select '', due_at, id from resources
         where subscribers > 0 and (due_at, id) > ($1, $2) order by due_at, id limit $3";
    let (after, limit) = (&query.after, most(COMPARED));
    let rows = if let Some(by_state) = by_state(query) {
        let rows = tx.query(by_state.next, params![after.id, limit]).await?;
        let place = |id| ListPosition { text: String::new(), number: 0, id };
        let places = rows.into_iter().map(|mut row| row.int().map(place));
        return Ok(Candidates::new(places.collect::<Result<_, _>>()?));
    } else if let Some(word) = query.search.words.first() {
        let from = if after.text.is_empty() { word } else { &after.text };
        let params = params![from.as_str(), after.id, end_of_prefix(word), limit].to_vec();
        tx.query(BY_WORD, &params).await?
    } else {
        match query.order {
            FeedOrder::Title => {
                tx.query(BY_NAME, params![after.text.as_str(), after.id, limit]).await?
            }
            FeedOrder::LastChange => {
                tx.query(BY_LAST_CHANGE, params![after.number, after.id, limit]).await?
            }
            FeedOrder::NextFetch => {
                tx.query(BY_NEXT_FETCH, params![after.number, after.id, limit]).await?
            }
        }
    };
    let places = rows
        .into_iter()
        .map(|mut row| Ok(ListPosition { text: row.text()?, number: row.int()?, id: row.int()? }));
    Ok(Candidates::new(places.collect::<Result<_, StoreError>>()?))
}

impl Candidates {
    fn new(places: Vec<ListPosition>) -> Candidates {
        let is_full = places.len() == COMPARED;
        Candidates { places, is_full }
    }
}

/// Returns the next feeds of an account with many subscriptions, which are looked for among those of all
/// accounts, but not for ever. The account learns of its own places alone, because a place has a title.
async fn owned_among_all(
    tx: &Tx<'_>,
    account: AccountId,
    query: &FeedQuery,
) -> Result<Candidates, StoreError> {
    let mut query = query.clone();
    for _ in 0..PORTIONS {
        let Candidates { mut places, is_full } = candidates(tx, &query).await?;
        let last = places.last().cloned().filter(|_| is_full);
        let own: HashSet<i64> =
            subscribed_by(tx, account, ids(&places)).await?.into_iter().collect();
        places.retain(|place| own.contains(&place.id));
        match last {
            Some(last) if places.is_empty() => query.after = last,
            _ => return Ok(Candidates { places, is_full }),
        }
    }
    Ok(Candidates::new(Vec::new()))
}

/// Returns the next feeds of an account with few subscriptions.
async fn owned(
    tx: &Tx<'_>,
    account: AccountId,
    query: &FeedQuery,
) -> Result<Candidates, StoreError> {
    const NAMES: &str = "
        select resource_id, name, cast(0 as bigint) from resource_names
         where resource_id in ({ids $1})";
    const LAST_CHANGES: &str = "
        select resource_id, '', last_new from resource_names where resource_id in ({ids $1})";
    const NEXT_FETCHES: &str = "select id, '', due_at from resources where id in ({ids $1})";
    let mut own = owned_ids(tx, account).await?;
    if let Some(by_state) = by_state(query) {
        let rows = tx.query(by_state.among, &[Value::Ints(own)]).await?;
        own = rows.into_iter().map(|mut row| row.int()).collect::<Result<_, _>>()?;
    }
    let place = |id| (id, ListPosition { text: String::new(), number: 0, id });
    let mut places: HashMap<i64, ListPosition> = own.iter().copied().map(place).collect();
    let own = [Value::Ints(own)];
    let keys = match query.order {
        FeedOrder::Title => NAMES,
        FeedOrder::LastChange => LAST_CHANGES,
        FeedOrder::NextFetch => NEXT_FETCHES,
    };
    for mut row in tx.query(keys, &own).await? {
        let (id, text, number) = (row.int()?, row.text()?, row.int()?);
        places.insert(id, ListPosition { text, number, id });
    }
    let mut places: Vec<_> = places.into_values().filter(|place| *place > query.after).collect();
    places.sort_unstable();
    Ok(Candidates { places, is_full: false })
}

/// Returns the numbers of the resources that an account with few subscriptions subscribes to.
pub(super) async fn owned_ids(tx: &Tx<'_>, account: AccountId) -> Result<Vec<i64>, StoreError> {
    const OWN: &str = "
        select distinct resource_id from subscriptions
         where account_id = $1 and account_id <> 0 order by resource_id limit $2";
    let limit = i64::try_from(FEW).unwrap_or(i64::MAX);
    let rows = tx.query(OWN, params![account.0, limit]).await?;
    rows.into_iter().map(|mut row| row.int()).collect()
}

/// Returns, of the feeds with a word that begins like `word`, the first of these words.
pub(crate) async fn first_words(
    tx: &Tx<'_>,
    word: &str,
    ids: Vec<i64>,
) -> Result<HashMap<i64, String>, StoreError> {
    // No index is of a longer text, so that the words are found by their feeds.
    const FIRST: &str = "
        select resource_id, min(word) from resource_words
         where resource_id in ({ids $1}) and word || '' >= $2 and word || '' < $3
         group by resource_id";
    let params = [Value::Ints(ids), word.into(), end_of_prefix(word).into()];
    let rows = tx.query(FIRST, &params).await?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.text()?))).collect()
}

/// Returns those of these resources that lists have.
async fn read(tx: &Tx<'_>, ids: Vec<i64>) -> Result<HashMap<i64, Resource>, StoreError> {
    const LISTED: &str = concat!(
        "select ",
        resource_columns!(),
        " from resources r join resource_details d on d.resource_id = r.id
         where r.id in ({ids $1}) and r.subscribers > 0 and r.kind <> 'collection'"
    );
    let rows = tx.query(LISTED, &[Value::Ints(ids)]).await?;
    let read = rows.into_iter().map(|mut row| resource(&mut row).map(|feed| (feed.id.0, feed)));
    read.collect()
}
