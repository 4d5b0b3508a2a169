//! Permanent redirects: decides when a resource is fetched at its new address, while its topic
//! stays the same (P20 to P22).
//!
//! A redirect is easy to set and hard to revoke, and captive portals and misconfigured servers send
//! permanent ones too. Therefore the same target must have been seen for a week, and must contain
//! entries of the resource.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use url::Url;

/// A target must have been seen for this long …
const SEEN_FOR: TimeDelta = TimeDelta::days(7);
/// … in this many polls in a row.
const SEEN_TIMES: u32 = 4;
/// The same address with `https` is followed after this many polls.
const SECURED_TIMES: u32 = 3;

/// A permanent redirect, and how often it was seen in consecutive polls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RedirectSighting {
    /// The target.
    pub to: String,
    /// When it was first seen.
    pub since: Option<DateTime<Utc>>,
    /// The number of consecutive polls that saw it.
    pub times: u32,
    /// Whether the content at the target ever matched that of the resource.
    pub proven: bool,
    /// Targets of moves that were revoked. A move to them is never repeated automatically.
    pub undone: Vec<String>,
}

/// A move that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The number among the moves of the resource.
    pub number: i64,
    /// When the resource moved.
    pub at: DateTime<Utc>,
    /// The fetch URL before the move.
    pub from: String,
    /// The fetch URL after the move.
    pub to: String,
    /// When the move was revoked.
    pub undone_at: Option<DateTime<Utc>>,
}

/// What one poll found about the address of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectEvidence {
    /// No response was received.
    Nothing,
    /// There was no permanent redirect.
    Here,
    /// There was a permanent redirect.
    Moved {
        /// The target of the redirect.
        to: Url,
        /// Whether the response from the target is usable.
        is_usable: bool,
        /// Whether the response matches the resource: an entry, the title, or the same bytes.
        is_alike: bool,
    },
}

impl RedirectSighting {
    /// The state after a move to `to` was revoked.
    pub fn undone(before: Option<&RedirectSighting>, to: String) -> RedirectSighting {
        let mut held = before.and_then(RedirectSighting::ended).unwrap_or_default();
        if !held.undone.contains(&to) {
            held.undone.push(to);
        }
        held
    }

    /// The state after the target was not seen again, or was followed.
    pub fn ended(&self) -> Option<RedirectSighting> {
        let undone = self.undone.clone();
        (!undone.is_empty()).then(|| RedirectSighting { undone, ..RedirectSighting::default() })
    }

    /// Returns the state after one more poll of `from`, and whether to move now.
    pub fn after(
        before: Option<&RedirectSighting>,
        from: &str,
        seen: &RedirectEvidence,
        now: DateTime<Utc>,
    ) -> (Option<RedirectSighting>, bool) {
        let (to, is_usable, is_alike) = match seen {
            RedirectEvidence::Nothing => return (before.cloned(), false),
            RedirectEvidence::Here => return (before.and_then(RedirectSighting::ended), false),
            RedirectEvidence::Moved { to, is_usable, is_alike } => (to, *is_usable, *is_alike),
        };
        let same = before.filter(|held| held.to == to.as_str());
        let ended = || before.and_then(RedirectSighting::ended).unwrap_or_default();
        let mut held = same.cloned().unwrap_or_else(ended);
        held.to = to.as_str().to_owned();
        held.times = held.times.saturating_add(1);
        held.proven |= is_alike;
        let since = *held.since.get_or_insert(now);
        let for_long = held.times >= SEEN_TIMES && now >= since + SEEN_FOR && held.proven;
        let secured = held.times >= SECURED_TIMES && is_secured(from, to);
        let follow = is_usable && !held.undone.contains(&held.to) && (for_long || secured);
        (Some(held), follow)
    }
}

/// Whether `to` is the same address as `from` with `https`.
fn is_secured(from: &str, to: &Url) -> bool {
    let Ok(from) = Url::parse(from) else { return false };
    from.scheme() == "http"
        && to.scheme() == "https"
        && from.port().is_none()
        && to.port().is_none()
        && (from.host_str(), from.path(), from.query()) == (to.host_str(), to.path(), to.query())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "https://a.test/feed";
    const B: &str = "https://b.test/feed";

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::hours(hours)
    }

    fn moved(to: &str, is_usable: bool, is_alike: bool) -> RedirectEvidence {
        RedirectEvidence::Moved { to: Url::parse(to).unwrap(), is_usable, is_alike }
    }

    #[test]
    fn p20_a_move_is_followed_once_it_is_old_and_proven() {
        let good = || moved(B, true, true);
        let alien = || moved(B, true, false);
        let broken = || moved(B, false, false);
        let other = || moved("https://portal.test/login", true, true);
        #[rustfmt::skip]
        let cases = [
            ("four polls in a week",          vec![(0, good()), (50, good()), (100, good()), (168, good())], Some(168)),
            ("three are not enough",          vec![(0, good()), (100, good()), (168, good()), (169, good())], Some(169)),
            ("a week is not over",            vec![(0, good()), (1, good()), (2, good()), (167, good())], None),
            ("another target begins anew",    vec![(0, good()), (50, other()), (100, good()), (168, good())], None),
            ("a direct answer begins anew",   vec![(0, good()), (50, RedirectEvidence::Here), (100, good()), (168, good())], None),
            ("no answer says nothing",        vec![(0, good()), (50, RedirectEvidence::Nothing), (60, good()), (100, good()), (168, good())], Some(168)),
            ("something else is there",       vec![(0, alien()), (50, alien()), (100, alien()), (168, alien())], None),
            ("it was the same at least once", vec![(0, alien()), (50, good()), (100, alien()), (168, alien())], Some(168)),
            ("not while it is broken",        vec![(0, good()), (50, good()), (100, good()), (168, broken())], None),
            ("but as soon as it is mended",   vec![(0, good()), (50, good()), (168, broken()), (170, good())], Some(170)),
        ];
        for (why, polls, want) in cases {
            let (mut held, mut followed) = (None, None);
            for (hours, seen) in polls {
                let (after, follow) = RedirectSighting::after(held.as_ref(), A, &seen, at(hours));
                held = after;
                if follow && followed.is_none() {
                    followed = Some(hours);
                }
            }
            assert_eq!(followed, want, "{why}");
        }
    }

    #[test]
    fn p20_the_same_address_by_https_is_believed_after_three_polls() {
        #[rustfmt::skip]
        let cases = [
            ("http://a.test/feed?x=1", "https://a.test/feed?x=1",      true),
            ("http://a.test/feed",     "https://a.test/other",         false),
            ("http://a.test/feed",     "https://www.a.test/feed",      false),
            ("http://a.test:81/feed",  "https://a.test/feed",          false),
            ("https://a.test/feed",    "http://a.test/feed",           false),
        ];
        for (from, to, want) in cases {
            let mut held = None;
            let mut followed = Vec::new();
            for hours in 0..3 {
                let (after, follow) = RedirectSighting::after(
                    held.as_ref(),
                    from,
                    &moved(to, true, false),
                    at(hours),
                );
                held = after;
                followed.push(follow);
            }
            assert_eq!(followed, [false, false, want], "{from} to {to}");
        }
    }

    #[test]
    fn p20_a_move_that_was_taken_back_is_not_made_again() {
        const C: &str = "https://c.test/feed";
        let mut held = Some(RedirectSighting::undone(None, B.to_owned()));
        let mut poll = |hours, seen: &RedirectEvidence| {
            let mut followed = false;
            for _ in 0..5 {
                let (after, follow) = RedirectSighting::after(held.as_ref(), A, seen, at(hours));
                (held, followed) = (after, followed || follow);
            }
            followed
        };
        #[rustfmt::skip]
        let cases = [
            ("at once",                        1,     moved(B, true, true), false),
            ("it is where it was",             2,     RedirectEvidence::Here,           false),
            ("after a long time",              900,   moved(B, true, true), false),
            ("another place was not unwanted", 901,   moved(C, true, true), false),
            ("and may be followed",            1_100, moved(C, true, true), true),
            ("which brings nothing back",      1_101, moved(B, true, true), false),
            ("even after a long time",         2_000, moved(B, true, true), false),
        ];
        for (why, hours, seen, want) in cases {
            assert_eq!(poll(hours, &seen), want, "{why}");
        }
        let both = RedirectSighting::undone(held.as_ref(), C.to_owned());
        assert_eq!(both.undone, [B, C]);
    }
}
