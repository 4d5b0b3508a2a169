//! What a resource itself offers so as to be polled less: a hub or a cloud that tells of
//! its changes, and how far we can rely on it (rule P53).
//!
//! ```text
//! wanted ──► requested ──► active ──► (renewed) ──► active …
//!    ▲           │           │
//!    └── retry ──┘           └──► doubted ── a week ──► wanted
//! ```
//!
//! An offer is taken as a promise that has to be kept: polls become rare only while what
//! is new comes by push before a poll finds it.

mod advertised;

use std::time::Duration;

use super::resource_id::ResourceId;
use super::subscription::Secret;
use chrono::{DateTime, Utc};

pub use advertised::AdvertisedUpstream;

/// A request to a hub that does not respond is retried after this, doubled each time …
const RETRY_FIRST: Duration = Duration::from_secs(5 * 60);
/// … up to a day.
const RETRY_LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// A hub that refused, or is doubted, gets the next request after a week.
const MUCH_LATER: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How long a hub may take to verify what it has accepted.
const VERIFIES_WITHIN: Duration = Duration::from_secs(10 * 60);
/// The share of what comes by push is judged from so many entries on (rule P53).
const JUDGED_FROM: u32 = 20;
/// Beyond twice as many the past counts half, so that a hub that dies is soon found out.
const REMEMBERED: u32 = 2 * JUDGED_FROM;

/// An offer, with what a subscription to it would be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// What was offered.
    pub offer: AdvertisedUpstream,
    /// See [`Upstream::token`].
    pub token: String,
    /// See [`Upstream::secret`].
    pub secret: Secret,
}

/// What a poll learned of upstreams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum UpstreamFinding {
    /// There was no document that could tell.
    #[default]
    Unknown,
    /// The resource has none.
    Nothing,
    /// This one. Nothing changes if it is known.
    Upstream(Proposal),
}

/// How far a subscription at an upstream has come.
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

    /// Reads the word.
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

/// What is known of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whose.
    pub resource: ResourceId,
    /// What was offered.
    pub offer: AdvertisedUpstream,
    /// What makes the address at which we are told, `/upstream/{token}`, unguessable.
    pub token: String,
    /// With what a hub signs.
    pub secret: Secret,
    /// How far it has come.
    pub state: UpstreamState,
    /// Until when it holds.
    pub lease_until: Option<DateTime<Utc>>,
    /// Consecutive requests that came to nothing.
    pub failures: u32,
    /// How many follow the resource: nobody needs to be told for nobody.
    pub subscribers: u32,
}

/// What an upstream has proved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Entries that came by push first.
    pub pushed: u32,
    /// Entries that a poll found although they should have been pushed.
    pub missed: u32,
    /// Whether the last of them came by push.
    pub last_was_pushed: bool,
}

impl Proof {
    /// So many new entries came, by push or found by a poll.
    pub fn after(self, entries: u32, by_push: bool) -> Proof {
        let (mut pushed, mut missed) = (self.pushed, self.missed);
        let count = if by_push { &mut pushed } else { &mut missed };
        *count = count.saturating_add(entries);
        while pushed.saturating_add(missed) > REMEMBERED {
            (pushed, missed) = (pushed / 2, missed / 2);
        }
        Proof { pushed, missed, last_was_pushed: by_push }
    }

    /// Whether it is treated as no push at all: less than half came by it (rule P53).
    pub fn is_doubtful(self) -> bool {
        let all = self.pushed.saturating_add(self.missed);
        all >= JUDGED_FROM && self.pushed < self.missed
    }

    /// Whether polls may be rare: it has told of something, and of the last thing too.
    pub fn is_relied_on(self) -> bool {
        self.last_was_pushed && self.pushed > 0 && !self.is_doubtful()
    }
}

impl Upstream {
    /// It is to tell us until `lease_until`.
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

    /// A request came to nothing: `finally` by a word of the other side's, else by what
    /// may be over in minutes. Returns how long to wait before the next.
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

/// Until an upstream that was found wanting gets another chance.
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
