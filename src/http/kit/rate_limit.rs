//! How much one stranger may ask (rules S26 and S27).
//!
//! Who has no account can make us fetch and call others: registrations, subscriptions and
//! pings. Each address has an allowance that fills again with time. What is kept is of fixed
//! size: addresses share places by a hash that nobody outside can compute, so that nobody can
//! fill a table, nor choose whom to share with. Addresses that are not public are the
//! operator's, and are not limited.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use crate::http::kit::exchange::Asked;
use crate::http::kit::params::Refused;
use crate::net::is_public;

/// Half a megabyte; a few thousand busy strangers rarely meet.
const PLACES: usize = 1 << 16;
/// In how long an empty allowance fills: the allowance is what may be asked in it, and so
/// much may be asked at once.
const FILLS_IN: Duration = Duration::from_secs(60);

/// The allowances of all strangers.
pub struct Strangers {
    /// When each allowance will be full again, in microseconds after `began`.
    full_at: Box<[AtomicU64]>,
    hasher: RandomState,
    began: Instant,
    /// Microseconds in which an allowance gains one call.
    each: u64,
    /// Microseconds in which it fills.
    all: u64,
}

/// A stranger has asked too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch {
    /// Seconds after which the same would be let in.
    pub(crate) wait_s: u64,
}

impl Strangers {
    /// Allows each address `per_minute` calls; `now` is when this begins.
    pub fn new(per_minute: usize, now: Instant) -> Strangers {
        let all = FILLS_IN.as_micros() as u64;
        Strangers {
            full_at: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::new(),
            began: now,
            each: (all / per_minute.max(1) as u64).max(1),
            all,
        }
    }

    /// Takes `calls` off the allowance of whoever asks, if it holds as many. More than fit
    /// into any allowance are let in when it is full.
    pub(crate) fn admit(&self, asked: &Asked, calls: usize) -> Result<(), TooMuch> {
        self.admit_from(asked.client, calls, Instant::now())
    }

    fn admit_from(
        &self,
        client: Option<IpAddr>,
        calls: usize,
        now: Instant,
    ) -> Result<(), TooMuch> {
        let Some(client) = client.filter(|client| is_public(*client)) else { return Ok(()) };
        let cost = self.each.saturating_mul(calls as u64).min(self.all);
        let now = now.saturating_duration_since(self.began).as_micros() as u64;
        let place = self.hasher.hash_one(network(client)) as usize % PLACES;
        let mut wait = 0;
        let taken = self.full_at[place].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| {
            let full_at = at.max(now) + cost;
            wait = full_at.saturating_sub(now + self.all);
            (wait == 0).then_some(full_at)
        });
        taken.map(drop).map_err(|_| TooMuch { wait_s: wait.div_ceil(1_000_000) })
    }
}

impl TooMuch {
    /// A sentence for whoever asked.
    pub(crate) fn sentence(self) -> String {
        format!("Your address asks too much, please try again in {} s.", self.wait_s)
    }
}

impl From<TooMuch> for Refused {
    fn from(much: TooMuch) -> Refused {
        let refused = Refused::new(StatusCode::TOO_MANY_REQUESTS, much.sentence());
        Refused { retry_after_s: Some(much.wait_s), ..refused }
    }
}

impl From<TooMuch> for String {
    fn from(much: TooMuch) -> String {
        much.sentence()
    }
}

impl std::fmt::Debug for Strangers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strangers").field("each", &self.each).finish_non_exhaustive()
    }
}

/// Whose address it is: one customer has at least a /64 of IPv6.
pub(crate) fn network(ip: IpAddr) -> u64 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s26_an_allowance_is_used_up_and_fills_again() {
        let began = Instant::now();
        let strangers = Strangers::new(60, began);
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
            ("is one stranger",               "2606:4700::2",    1,    0, Some(1)),
            ("its neighbour is another",      "2606:4700:0:1::", 1,    0, None),
            ("the operator's own",            "127.0.0.1",       999,  0, None),
            ("are not limited",               "127.0.0.1",       999,  0, None),
        ];
        for (why, client, calls, after_s, want) in cases {
            let now = began + Duration::from_secs(after_s);
            let got = strangers.admit_from(Some(client.parse().unwrap()), calls, now);
            assert_eq!(got.err().map(|much| much.wait_s), want, "{why}");
        }
    }
}
