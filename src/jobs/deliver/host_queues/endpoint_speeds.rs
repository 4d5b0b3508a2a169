//! How quickly callbacks answered their last requests, in a fixed amount of memory.
//!
//! Callbacks share the entries of a table by a hash that cannot be computed from outside. An entry
//! has a part of the hash, so that one callback is hardly ever taken for another; a callback whose
//! entry is overwritten counts as unknown, and is learned again with its next request.
//!
//! A quick callback counts as slow only after two slow answers in a row: one may have been slow because
//! of the network, or because this node was busy.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Half a megabyte of entries: enough for a hundred thousand callbacks.
const ENTRIES: usize = 1 << 18;
/// An answer that takes longer is slow.
const SLOW_AFTER: Duration = Duration::from_secs(1);
/// What an entry adds to a part of the hash, in its lowest two bits, if the callback is slow.
const SLOW: u16 = 1;
/// Stands for a callback that was quick and whose last answer was slow.
const DOUBTED: u16 = 2;
/// The bits of an entry that are a part of the hash.
const TAG: u16 = !3;

/// What is known of the callback of a delivery before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    /// Its last answer came quickly.
    Quick,
    /// Nothing is known.
    Unknown,
    /// Its last answer came late, or not at all.
    Slow,
}

/// The speeds of callbacks.
pub(super) struct EndpointSpeeds {
    entries: Box<[u16]>,
    hasher: RandomState,
}

impl EndpointSpeeds {
    pub(super) fn new() -> EndpointSpeeds {
        EndpointSpeeds { entries: vec![0; ENTRIES].into(), hasher: RandomState::new() }
    }

    pub(super) fn get(&self, callback: &str) -> Speed {
        let (place, tag) = self.place(callback);
        match self.entries[place] {
            entry if entry & TAG != tag => Speed::Unknown,
            entry if entry & SLOW != 0 => Speed::Slow,
            _ => Speed::Quick,
        }
    }

    /// Notes how long a callback took to answer, or not to answer.
    pub(super) fn note(&mut self, callback: &str, took: Duration) {
        let (place, tag) = self.place(callback);
        let state = match self.entries[place] {
            _ if took <= SLOW_AFTER => 0,
            entry if entry == tag => DOUBTED,
            _ => SLOW,
        };
        self.entries[place] = tag | state;
    }

    /// Returns the entry of a callback, and the value that the entry has if the callback is quick.
    fn place(&self, callback: &str) -> (usize, u16) {
        let hash = self.hasher.hash_one(callback);
        let tag = ((hash >> 48) as u16 & TAG).max(1 << 2); // 0 is an empty entry
        (hash as usize % ENTRIES, tag)
    }
}

impl std::fmt::Debug for EndpointSpeeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EndpointSpeeds").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e04_a_callback_is_slow_until_it_answers_quickly_and_quick_until_it_was_slow_twice() {
        let mut speeds = EndpointSpeeds::new();
        let (quickly, slowly) = (Duration::from_millis(700), Duration::from_secs(9));
        assert_eq!(speeds.get("http://a.test/1"), Speed::Unknown);
        let noted = [(slowly, Speed::Slow), (quickly, Speed::Quick), (slowly, Speed::Quick)];
        for (took, want) in noted.into_iter().chain([(slowly, Speed::Slow)]) {
            speeds.note("http://a.test/1", took);
            assert_eq!(speeds.get("http://a.test/1"), want);
        }
        assert_eq!(speeds.get("http://a.test/2"), Speed::Unknown);
    }
}
