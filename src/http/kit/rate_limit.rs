//! How many requests one client without an account may make (rules S26, S27), and one account
//! (rule S44). A request whose answer takes much reading counts as several.
//!
//! Registrations, subscriptions and pings need no account, and each makes feedgate send requests of
//! its own. So each address has a budget that refills with time, and so has each account. The table
//! of budgets has a fixed size: clients share slots by a hash that cannot be computed from outside,
//! so nobody can fill the table, nor choose whom to share a slot with. The method `limited_as` of a
//! [`Request`] says which address it is counted for. Each node counts for itself.

use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::http::kit::rejection::Rejection;
use crate::http::kit::request::Request;
use crate::http::kit::slots::{HeldSlot, NoSlot, Slots};
use crate::net::network;
use feedgate_core::account::AccountId;

/// Half a megabyte of slots; a few thousand busy clients rarely share one.
const SLOTS: usize = 1 << 16;
/// The time in which an empty budget refills. A budget is what may be requested in this time,
/// and all of it may be requested at once.
const REFILL_TIME: Duration = Duration::from_secs(60);
/// The rows that may be read for each request at no further cost.
const FREE_ROWS: usize = 100;
/// The number of further rows that count as one request. Reading them takes a tenth of a millisecond, so
/// that an account with 60,000 requests a minute has a tenth of a processor for lists and searches.
const ROWS_PER_REQUEST: usize = 8;
/// The number of rows that can be skipped in an index in the time in which one is read.
const SKIPPED_PER_ROW: usize = 32;

/// The POSTs to the REST API that a node carries out together, although their clients may have closed their
/// connections. Each has a body of 64 kB at most.
const MAX_POSTS: usize = 2_000;
/// The POSTs that a node carries out together for one account.
const MAX_POSTS_OF_ACCOUNT: usize = 500;

/// The pushes of one topic in a minute: twice as many as fetches that pings cause.
const PUSHES_OF_TOPIC_PER_MIN: usize = 120;
/// The pushes of one network in a minute, and its verifications: as many as of a hub for 100,000 topics that
/// change every quarter of an hour.
const PUSHES_OF_NETWORK_PER_MIN: usize = 6_000;

/// The budgets of all clients without an account.
#[derive(Debug)]
pub struct AnonymousRateLimit {
    requests: RequestBudgets,
    pushes_of_topic: RequestBudgets,
    pushes_of_network: RequestBudgets,
}

impl AnonymousRateLimit {
    /// Allows each address `per_minute` requests, from `now` on.
    pub fn new(per_minute: usize, now: Instant) -> AnonymousRateLimit {
        AnonymousRateLimit {
            requests: RequestBudgets::new(per_minute, now),
            pushes_of_topic: RequestBudgets::new(PUSHES_OF_TOPIC_PER_MIN, now),
            pushes_of_network: RequestBudgets::new(PUSHES_OF_NETWORK_PER_MIN, now),
        }
    }

    /// Takes a request of a hub from the budgets of its network and of its token: whoever is limited sends
    /// it again later. The error is the number of seconds after which it is admitted.
    pub(crate) fn admit_push(&self, limited_as: Option<IpAddr>, token: &str) -> Result<(), u64> {
        let (Some(client), now) = (limited_as, Instant::now()) else { return Ok(()) };
        self.pushes_of_network.take_requests(network(client), 1, now)?;
        self.pushes_of_topic.take_requests(token, 1, now)
    }

    /// Takes `count` requests from the budget of the client, if that has as many left. A `count`
    /// above the size of a budget is admitted when the budget is full.
    pub(crate) fn admit(&self, request: &Request, count: usize) -> Result<(), Rejection> {
        self.admit_from(request.limited_as(), count, Instant::now())
            .map_err(Rejection::rate_limited)
    }

    /// Returns what is left of the budget of the client; `None` if it is not limited.
    pub(crate) fn quota(&self, limited_as: Option<IpAddr>) -> Option<RequestQuota> {
        self.quota_of(limited_as, Instant::now())
    }

    fn quota_of(&self, client: Option<IpAddr>, now: Instant) -> Option<RequestQuota> {
        Some(self.requests.quota("anonymous", network(client?), now))
    }

    fn admit_from(&self, client: Option<IpAddr>, count: usize, now: Instant) -> Result<(), u64> {
        let Some(client) = client else { return Ok(()) };
        self.requests.take_requests(network(client), count, now)
    }
}

/// The budgets of all accounts (rule S44).
#[derive(Debug)]
pub struct AccountRateLimit {
    requests: RequestBudgets,
    /// The POSTs to the REST API that are being carried out.
    posts: Arc<Slots<AccountId>>,
}

impl AccountRateLimit {
    /// Allows each account `per_minute` requests, from `now` on.
    pub fn new(per_minute: usize, now: Instant) -> AccountRateLimit {
        let requests = RequestBudgets::new(per_minute, now);
        AccountRateLimit { requests, posts: Arc::new(Slots::new(MAX_POSTS, MAX_POSTS_OF_ACCOUNT)) }
    }

    /// Takes `count` requests from the budget of the account, as
    /// [`AnonymousRateLimit::admit`] does.
    pub(crate) fn admit(&self, account: AccountId, count: usize) -> Result<(), Rejection> {
        let taken = self.requests.take_requests(account, count, Instant::now());
        taken.map_err(Rejection::account_rate_limited)
    }

    /// Counts a POST of the account as being carried out, until what is returned is dropped.
    pub(crate) fn begin_post(&self, account: AccountId) -> Result<HeldSlot<AccountId>, NoSlot> {
        self.posts.acquire(account)
    }

    /// Returns what is left of the budget of the account.
    pub(crate) fn quota(&self, account: AccountId) -> RequestQuota {
        self.requests.quota("account", account, Instant::now())
    }

    /// Takes from the budget of the account what an answer costs for which at most these rows are
    /// read, but no more than half of a whole budget: the request itself was taken from it before.
    pub(crate) fn admit_rows(
        &self,
        account: AccountId,
        most: RowsRead,
    ) -> Result<RowCharge<'_>, Rejection> {
        let requests = most.requests().min(self.requests.size() / 2);
        self.admit(account, requests)?;
        Ok(RowCharge { limit: self, account, requests })
    }
}

/// The rows that are read for one answer: some are read, and others are only skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowsRead {
    /// The rows that are read.
    pub(crate) read: usize,
    /// The rows before them.
    pub(crate) skipped: usize,
}

impl RowsRead {
    /// Returns the number of requests that the rows count as, besides the one that asks for them.
    fn requests(self) -> usize {
        let rows = self.read.saturating_add(self.skipped / SKIPPED_PER_ROW);
        rows.saturating_sub(FREE_ROWS) / ROWS_PER_REQUEST
    }
}

/// The requests that were taken from the budget of an account for rows that it has not read yet.
#[derive(Debug)]
pub(crate) struct RowCharge<'l> {
    limit: &'l AccountRateLimit,
    account: AccountId,
    requests: usize,
}

impl RowCharge<'_> {
    /// Returns to the budget what this many rows that were read did not need.
    pub(crate) fn return_unread(self, read: usize) {
        self.return_unused(RowsRead { read, skipped: 0 });
    }

    /// Returns to the budget what the rows that were read did not need.
    pub(crate) fn return_unused(self, rows: RowsRead) {
        let unused = self.requests.saturating_sub(rows.requests());
        self.limit.requests.return_requests(self.account, unused);
    }
}

/// The verifications of one callback for one topic that the clients of one network may cause in a
/// minute: many more than a subscriber needs, and few enough to harm nobody.
const VERIFICATIONS_PER_MIN: usize = 30;

/// The budgets of verifications of callbacks, for each network of clients (rule S26). A callback that
/// agrees to everything could otherwise be sent any number of requests. Clients of other networks are
/// not affected, and neither is a client that knows the secret of the subscription: so nobody can
/// keep a subscriber from renewing its subscription.
#[derive(Debug)]
pub struct VerificationRateLimit(RequestBudgets);

impl VerificationRateLimit {
    /// Creates full budgets.
    pub fn new(now: Instant) -> VerificationRateLimit {
        VerificationRateLimit(RequestBudgets::new(VERIFICATIONS_PER_MIN, now))
    }

    /// Takes a verification from the budget of the client. `is_proven`: it knows the secret of the
    /// subscription.
    pub(crate) fn admit(
        &self,
        request: &Request,
        (topic, callback): (&str, &str),
        is_proven: bool,
    ) -> Result<(), Rejection> {
        let client = request.counted_client().map(network).filter(|_| !is_proven);
        let taken = self.0.take_requests((client, is_proven, topic, callback), 1, Instant::now());
        taken.map_err(Rejection::verification_rate_limited)
    }
}

/// A table of budgets.
struct RequestBudgets {
    /// When each budget will be full again, in microseconds after `started`.
    full_at: Box<[AtomicU64]>,
    hasher: RandomState,
    started: Instant,
    /// Microseconds in which a budget gains one request.
    cost_of_one: u64,
    /// Microseconds in which an empty budget refills.
    cost_of_all: u64,
}

impl RequestBudgets {
    fn new(per_minute: usize, now: Instant) -> RequestBudgets {
        let cost_of_all = REFILL_TIME.as_micros() as u64;
        RequestBudgets {
            full_at: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            started: now,
            cost_of_one: (cost_of_all / per_minute.max(1) as u64).max(1),
            cost_of_all,
        }
    }

    /// Returns what is left at `now` of the budget of `client`.
    fn quota(&self, policy: &'static str, client: impl Hash, now: Instant) -> RequestQuota {
        let now = now.saturating_duration_since(self.started).as_micros() as u64;
        let full_at = self.full_at[self.slot(client)].load(Ordering::Relaxed);
        let used = full_at.saturating_sub(now);
        RequestQuota {
            policy,
            requests: self.cost_of_all / self.cost_of_one,
            remaining: self.cost_of_all.saturating_sub(used) / self.cost_of_one,
            full_in_s: used.div_ceil(1_000_000),
        }
    }

    /// Returns the number of requests that a budget allows at once.
    fn size(&self) -> usize {
        usize::try_from(self.cost_of_all / self.cost_of_one).unwrap_or(usize::MAX)
    }

    /// Returns `count` requests to the budget of `client`.
    fn return_requests(&self, client: impl Hash, count: usize) {
        let cost = self.cost_of_one.saturating_mul(count as u64);
        let returned = |at: u64| Some(at.saturating_sub(cost));
        let _ = self.full_at[self.slot(client)].fetch_update(
            Ordering::Relaxed,
            Ordering::Relaxed,
            returned,
        );
    }

    fn slot(&self, client: impl Hash) -> usize {
        self.hasher.hash_one(client) as usize % SLOTS
    }

    /// Takes `count` requests from the budget of `client` at `now`. The error is the number of
    /// seconds after which the same would be admitted.
    fn take_requests(&self, client: impl Hash, count: usize, now: Instant) -> Result<(), u64> {
        let cost = self.cost_of_one.saturating_mul(count as u64).min(self.cost_of_all);
        let now = now.saturating_duration_since(self.started).as_micros() as u64;
        let slot = self.slot(client);
        let mut wait = 0;
        let taken = self.full_at[slot].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
            let full_at = at.max(now) + cost;
            wait = full_at.saturating_sub(now + self.cost_of_all);
            (wait == 0).then_some(full_at)
        });
        taken.map(drop).map_err(|_| wait.div_ceil(1_000_000))
    }
}

/// What is left of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestQuota {
    /// The name of the policy.
    policy: &'static str,
    /// The requests that the whole budget allows.
    requests: u64,
    /// The requests that are left of it.
    remaining: u64,
    /// The seconds until it is full again.
    full_in_s: u64,
}

impl RequestQuota {
    /// Returns the value of `RateLimit-Policy` (draft-ietf-httpapi-ratelimit-headers).
    pub(crate) fn policy(self) -> String {
        format!("\"{}\";q={};w={}", self.policy, self.requests, REFILL_TIME.as_secs())
    }

    /// Returns the value of `RateLimit`.
    pub(crate) fn state(self) -> String {
        format!("\"{}\";r={};t={}", self.policy, self.remaining, self.full_in_s)
    }
}

impl fmt::Debug for RequestBudgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBudgets")
            .field("cost_of_one", &self.cost_of_one)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s26_an_allowance_is_used_up_and_fills_again() {
        let began = Instant::now();
        let limit = AnonymousRateLimit::new(60, began);
        #[rustfmt::skip]
        let cases = [
            ("half of it at once",            "8.8.8.8",         30,   0, None),
            ("the other half",                "8.8.8.8",         30,   0, None),
            ("no more",                       "8.8.8.8",         1,    0, Some(1)),
            ("ten are ten seconds away",      "8.8.8.8",         10,   0, Some(10)),
            ("another address",               "1.1.1.1",         60,   0, None),
            ("one is there after a second",   "8.8.8.8",         1,    1, None),
            ("and only one",                  "8.8.8.8",         1,    1, Some(1)),
            ("it fills no further than full", "8.8.8.8",         60, 600, None),
            ("as it was asked",               "8.8.8.8",         1,  600, Some(1)),
            ("more than it can ever hold",    "9.9.9.9",         999,  0, None),
            ("a network of IPv6",             "2606:4700::1",    60,   0, None),
            ("is one client",                 "2606:4700::2",    1,    0, Some(1)),
            ("its neighbour is another",      "2606:4700:0:1::", 1,    0, None),
        ];
        for (why, client, calls, after_s, want) in cases {
            let now = began + Duration::from_secs(after_s);
            let got = limit.admit_from(Some(client.parse().unwrap()), calls, now);
            assert_eq!(got.err(), want, "{why}");
        }
    }

    #[test]
    fn s44_accounts_have_budgets_of_their_own() {
        let began = Instant::now();
        let limit = AccountRateLimit::new(60, began);
        let take = |account, count| limit.requests.take_requests(AccountId(account), count, began);
        assert_eq!(take(1, 60), Ok(()));
        assert_eq!(take(1, 1), Err(1));
        assert_eq!(take(2, 60), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn h12_an_answer_costs_its_account_as_many_requests_as_it_takes_reading() {
        let rows = |read, skipped| RowsRead { read, skipped };
        let limit = AccountRateLimit::new(600, Instant::now());
        let account = AccountId(1);
        // The rows that may be read, those that were read, and the requests left then.
        #[rustfmt::skip]
        let cases = [
            (rows(100, 0),     rows(100, 0),   600),
            (rows(500, 0),     rows(500, 0),   550),
            (rows(2_000, 0),   rows(180, 0),   540),
            (rows(180, 25_600), rows(180, 256), 529),
        ];
        for (most, read, left) in cases {
            limit.admit_rows(account, most).unwrap().return_unused(read);
            assert_eq!(limit.quota(account).remaining, left, "{most:?}");
        }
        let huge = rows(usize::MAX, usize::MAX);
        assert!(limit.admit_rows(AccountId(2), huge).is_ok());
        assert!(limit.admit_rows(AccountId(2), huge).is_ok(), "the other half");
        assert!(limit.admit_rows(AccountId(2), huge).is_err());
        let small = AccountRateLimit::new(3, Instant::now());
        small.admit(account, 1).unwrap();
        assert!(small.admit_rows(account, huge).is_ok(), "even with the smallest budget");
    }

    #[test]
    fn f17_what_is_left_of_an_allowance_is_told() {
        let began = Instant::now();
        let limit = AnonymousRateLimit::new(60, began);
        let client = Some("8.8.8.8".parse().unwrap());
        let quota = |after_s| {
            let quota = limit.quota_of(client, began + Duration::from_secs(after_s)).unwrap();
            (quota.policy(), quota.state())
        };
        let policy = || "\"anonymous\";q=60;w=60".to_owned();
        assert_eq!(quota(0), (policy(), "\"anonymous\";r=60;t=0".to_owned()));
        limit.admit_from(client, 20, began).unwrap();
        assert_eq!(quota(0), (policy(), "\"anonymous\";r=40;t=20".to_owned()));
        assert_eq!(quota(5).1, "\"anonymous\";r=45;t=15");
        assert_eq!(limit.quota_of(None, began), None);
    }
}
