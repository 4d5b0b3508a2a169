//! Upstreams: the hub or cloud that a resource advertises, which notifies the gateway of changes,
//! and how reliable it is (P53).
//!
//! ```text
//! wanted ──► requested ──► active ──► (renewed) ──► active …
//!    ▲           │           │
//!    └── retry ──┘           └──► doubted ── a week ──► wanted
//! ```
//!
//! An advertised upstream must prove itself: the resource is polled rarely only while new entries
//! are pushed before a poll finds them.

mod advertised;
mod known_hubs;

use std::time::Duration;

use super::resource_id::ResourceId;
use super::signing::Secret;
use chrono::{DateTime, Utc};

pub use advertised::AdvertisedUpstream;

/// A request to a hub that does not respond is retried after this, doubled each time …
const RETRY_FIRST: Duration = Duration::from_secs(5 * 60);
/// … up to a day.
const RETRY_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// A hub that refused, or is doubted, gets the next request after a week.
const MUCH_LATER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The time that a hub has to verify an accepted request.
const VERIFIES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The minimum number of entries from which the share of pushed entries is judged (P53).
const JUDGED_FROM: u32 = 20;
/// Beyond twice as many entries, older ones count half, so that a failing hub is soon detected.
const REMEMBERED: u32 = 2 * JUDGED_FROM;

/// An advertised upstream, with the token and secret for a subscription to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The advertised upstream.
    pub offer: AdvertisedUpstream,
    /// See [`Upstream::token`].
    pub token: String,
    /// See [`Upstream::secret`].
    pub secret: Secret,
}

/// The upstream found by a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpstreamFinding {
    /// Unknown, because the poll received no document.
    #[default]
    Unknown,
    /// The resource advertises none.
    Nothing,
    /// The resource advertises this one. Nothing changes if it is known.
    Upstream(Proposal),
}

/// The state of a subscription at an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// No subscription request has been sent yet.
    Wanted,
    /// The upstream accepted the request and has not verified it yet.
    Requested,
    /// The subscription is verified: the upstream notifies us of changes.
    Active,
    /// The upstream refused, or polls found most new entries first.
    Doubted,
}

impl UpstreamState {
    /// The word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            UpstreamState::Wanted => "wanted",
            UpstreamState::Requested => "requested",
            UpstreamState::Active => "active",
            UpstreamState::Doubted => "doubted",
        }
    }

    /// Parses the word.
    pub fn from_word(word: &str) -> Option<UpstreamState> {
        let all = [
            UpstreamState::Wanted,
            UpstreamState::Requested,
            UpstreamState::Active,
            UpstreamState::Doubted,
        ];
        all.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether a verification by the hub is expected. A hub may verify before it responds to the
    /// request.
    pub fn is_asking(self) -> bool {
        self != UpstreamState::Doubted
    }
}

/// The stored state of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The resource.
    pub resource: ResourceId,
    /// The advertised upstream.
    pub offer: AdvertisedUpstream,
    /// The random token in the address for notifications, `/upstream/{token}`, which makes it
    /// unguessable.
    pub token: String,
    /// The key with which a hub signs.
    pub secret: Secret,
    /// The state of the subscription.
    pub state: UpstreamState,
    /// When the lease ends.
    pub lease_until: Option<DateTime<Utc>>,
    /// The number of consecutive failed requests.
    pub failures: u32,
    /// The number of subscriptions of the resource. Without any, no upstream is needed.
    pub subscribers: u32,
}

/// What is displayed of an upstream: no token and no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSummary {
    /// The URL of the hub or cloud.
    pub endpoint: String,
    /// The state of the subscription.
    pub state: UpstreamState,
    /// When the lease ends.
    pub lease_until: Option<DateTime<Utc>>,
    /// How reliable it has proved lately.
    pub proof: Proof,
    /// When it last announced a change.
    pub pushed_at: Option<DateTime<Utc>>,
}

/// The record of an upstream's reliability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The number of entries that were pushed first.
    pub pushed: u32,
    /// The number of entries that a poll found although they should have been pushed.
    pub missed: u32,
    /// Whether the last entry was pushed.
    pub last_was_pushed: bool,
}

impl Proof {
    /// Adds new entries, which were pushed or found by a poll.
    pub fn after(self, entries: u32, by_push: bool) -> Proof {
        let (mut pushed, mut missed) = (self.pushed, self.missed);
        let count = if by_push { &mut pushed } else { &mut missed };
        *count = count.saturating_add(entries);
        while pushed.saturating_add(missed) > REMEMBERED {
            (pushed, missed) = (pushed / 2, missed / 2);
        }
        Proof { pushed, missed, last_was_pushed: by_push }
    }

    /// Whether the upstream is treated as if there were none, because less than half of the entries
    /// were pushed (P53).
    pub fn is_doubtful(self) -> bool {
        let all = self.pushed.saturating_add(self.missed);
        all >= JUDGED_FROM && self.pushed < self.missed
    }

    /// Whether polls may be rare, because entries were pushed, including the last one.
    pub fn is_relied_on(self) -> bool {
        self.last_was_pushed && self.pushed > 0 && !self.is_doubtful()
    }
}

impl Upstream {
    /// Records that the upstream will send notifications until `lease_until`.
    pub fn confirm(&mut self, lease_until: DateTime<Utc>) {
        self.state = UpstreamState::Active;
        self.lease_until = Some(lease_until);
        self.failures = 0;
    }

    /// Records that the upstream accepted the request and will verify. Returns how long to wait
    /// for the verification; until then the request counts as a failure.
    pub fn accepted(&mut self) -> Duration {
        if self.state != UpstreamState::Active {
            self.state = UpstreamState::Requested;
        }
        let wait = self.retry().max(VERIFIES_WITHIN);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Records a failed request, which was refused if `finally` is set and may otherwise succeed on
    /// retry. Returns how long to wait before the next request.
    pub fn refused(&mut self, finally: bool) -> Duration {
        let wait = if finally { MUCH_LATER } else { self.retry() };
        if finally {
            self.state = UpstreamState::Doubted;
        }
        self.failures = self.failures.saturating_add(1);
        wait
    }

    fn retry(&self) -> Duration {
        (RETRY_FIRST * (1 << self.failures.min(10))).min(RETRY_LONGEST)
    }
}

/// The time until an upstream that was judged unreliable gets another request.
pub fn next_chance(now: DateTime<Utc>) -> DateTime<Utc> {
    now + MUCH_LATER
}

#[cfg(test)]
mod tests {
    use super::*;
    use feedgate_protocol::Protocol;

    const URL: &str = "https://a.test/feed";

    #[test]
    fn p53_a_push_is_relied_on_while_it_comes_first() {
        let none = Proof::default();
        assert!(!none.is_relied_on(), "nothing is proved yet");
        let good = none.after(1, true);
        assert!(good.is_relied_on());
        let late = good.after(1, false);
        assert!(!late.is_relied_on() && !late.is_doubtful(), "one miss: polls come back");
        assert!(late.after(1, true).is_relied_on(), "and go again");

        let bad = none.after(9, true).after(11, false);
        assert!(bad.is_doubtful(), "{bad:?}");
        assert!(!none.after(9, true).after(10, false).is_doubtful(), "19 are too few");
        let died = (0..25).fold(none.after(10_000, true), |record, _| record.after(1, false));
        assert!(died.is_doubtful(), "years of good service are soon forgotten: {died:?}");
    }

    #[test]
    fn requests_that_fail_are_made_again_ever_later() {
        let upstream = |failures, state| Upstream {
            resource: ResourceId(1),
            offer: AdvertisedUpstream {
                protocol: Protocol::WebSub,
                endpoint: "https://h.test/".to_owned(),
                topic: URL.to_owned(),
            },
            token: String::new(),
            secret: Secret::new(String::new()).unwrap(),
            state,
            lease_until: None,
            failures,
            subscribers: 1,
        };
        for (failures, secs) in [(0, 300), (1, 600), (4, 4_800), (40, 86_400)] {
            let mut silent = upstream(failures, UpstreamState::Wanted);
            assert_eq!(silent.refused(false).as_secs(), secs, "{failures}");
            assert_eq!((silent.state, silent.failures), (UpstreamState::Wanted, failures + 1));
        }
        let mut no = upstream(0, UpstreamState::Requested);
        assert_eq!((no.refused(true), no.state), (MUCH_LATER, UpstreamState::Doubted));

        let mut accepted = upstream(0, UpstreamState::Wanted);
        assert_eq!(accepted.accepted(), VERIFIES_WITHIN);
        assert_eq!(
            (accepted.state, accepted.failures),
            (UpstreamState::Requested, 1),
            "until it verifies"
        );
        let mut renewed = upstream(0, UpstreamState::Active);
        renewed.accepted();
        assert_eq!(renewed.state, UpstreamState::Active, "the old lease goes on");
        renewed.confirm(DateTime::UNIX_EPOCH);
        assert_eq!(renewed.failures, 0);
        let days = |days: u64| Duration::from_secs(days * 86_400);
        assert_eq!(renewed.offer.renewal(days(10)), days(5));
    }
}
