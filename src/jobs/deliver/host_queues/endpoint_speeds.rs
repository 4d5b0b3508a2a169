//! How quickly callbacks answered their last requests, in a fixed amount of memory.
//!
//! Callbacks share the entries of a table by a hash that cannot be computed from outside. An entry
//! has a part of the hash, so that one callback is hardly ever taken for another; a callback whose
//! entry is overwritten counts as unknown, and is learned again with its next request.

use std::hash::{BuildHasher, RandomState};

/// Half a megabyte of entries: enough for a hundred thousand callbacks.
const ENTRIES: usize = 1 << 18;
/// The bit of an entry that is set if the callback was slow; the others are a part of its hash.
const SLOW: u16 = 1;

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
            entry if entry == tag => Speed::Quick,
            entry if entry == tag | SLOW => Speed::Slow,
            _ => Speed::Unknown,
        }
    }

    pub(super) fn note(&mut self, callback: &str, is_slow: bool) {
        let (place, tag) = self.place(callback);
        self.entries[place] = if is_slow { tag | SLOW } else { tag };
    }

    /// Returns the entry of a callback, and the value that the entry has if the callback is quick.
    fn place(&self, callback: &str) -> (usize, u16) {
        let hash = self.hasher.hash_one(callback);
        let tag = ((hash >> 48) as u16 & !SLOW).max(SLOW << 1); // 0 is an empty entry
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
    fn the_last_answer_of_each_callback_is_remembered() {
        let mut speeds = EndpointSpeeds::new();
        assert_eq!(speeds.get("http://a.test/1"), Speed::Unknown);
        speeds.note("http://a.test/1", true);
        speeds.note("http://a.test/2", false);
        assert_eq!(speeds.get("http://a.test/1"), Speed::Slow);
        assert_eq!(speeds.get("http://a.test/2"), Speed::Quick);
        speeds.note("http://a.test/1", false);
        assert_eq!(speeds.get("http://a.test/1"), Speed::Quick);
    }
}
