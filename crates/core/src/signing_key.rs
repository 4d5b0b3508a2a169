//! The keys that requests to publishers are signed with, and when they are replaced.
//!
//! ```text
//! key 1  ├── used ────────────────────────────┤ published ┤
//! key 2                          ├ published ──┼── used ────────────────────── …
//! ```
//!
//! A key is published before it is used, so that a verifier that keeps the directory of keys knows it by
//! then, and stays published after it until no signature made with it is valid any more. All nodes
//! follow the rows of the store, so they use the same key, within what their clocks differ.

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};

/// How long a key is used.
const USED_FOR: TimeDelta = TimeDelta::days(30);
/// How long a key is published before it is used: longer than a verifier keeps the directory, for which
/// it is allowed an hour.
const PUBLISHED_BEFORE: TimeDelta = TimeDelta::days(2);
/// How long a key is published after it: longer than a signature is valid, which is minutes.
const PUBLISHED_AFTER: TimeDelta = TimeDelta::days(2);

/// The number of bytes of a seed.
const SEED_BYTES: usize = 32;

/// What an Ed25519 key is made from. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySeed([u8; SEED_BYTES]);

impl KeySeed {
    /// Returns a random seed.
    pub fn random() -> Result<KeySeed, getrandom::Error> {
        let mut bytes = [0; SEED_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(KeySeed(bytes))
    }

    /// Reads the text that is stored.
    pub fn from_hex(text: &str) -> Option<KeySeed> {
        let mut bytes = [0; SEED_BYTES];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(KeySeed(bytes))
    }

    /// Returns the text that is stored.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The seed itself.
    pub fn expose(&self) -> &[u8; SEED_BYTES] {
        &self.0
    }
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(..)")
    }
}

/// A key as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSigningKey {
    /// How many keys there were before it, plus one.
    pub generation: i64,
    /// What it is made from.
    pub seed: KeySeed,
    /// Since when, or from when on, requests are signed with it.
    pub used_from: DateTime<Utc>,
}

/// A key that has to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedKey {
    /// [`StoredSigningKey::generation`].
    pub generation: i64,
    /// [`StoredSigningKey::used_from`].
    pub used_from: DateTime<Utc>,
}

/// Returns the key that has to be made at `now` beside `keys`, which are ordered by generation; `None`
/// if there is nothing to do yet.
pub fn planned_key(keys: &[StoredSigningKey], now: DateTime<Utc>) -> Option<PlannedKey> {
    let Some(newest) = keys.last() else {
        return Some(PlannedKey { generation: 1, used_from: now });
    };
    let ends = newest.used_from + USED_FOR;
    (now >= ends - PUBLISHED_BEFORE).then(|| PlannedKey {
        generation: newest.generation + 1,
        used_from: ends.max(now + PUBLISHED_BEFORE),
    })
}

/// Returns the place in `keys` of the one that requests are signed with at `now`.
pub fn current_key(
    used_from: impl DoubleEndedIterator<Item = DateTime<Utc>> + ExactSizeIterator,
    now: DateTime<Utc>,
) -> Option<usize> {
    let count = used_from.len();
    let newest_used = used_from.enumerate().rev().find(|(_, from)| *from <= now);
    // A clock that was set back leaves the oldest one.
    newest_used.map(|(place, _)| place).or((count > 0).then_some(0))
}

/// Returns the generation before which keys are no longer published at `now`.
pub fn oldest_published(keys: &[StoredSigningKey], now: DateTime<Utc>) -> i64 {
    let replaced = |key: &&StoredSigningKey| key.used_from + PUBLISHED_AFTER <= now;
    keys.iter().rev().find(replaced).map_or(0, |key| key.generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(days: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(days)
    }

    fn key(generation: i64, used_from: DateTime<Utc>) -> StoredSigningKey {
        StoredSigningKey { generation, seed: KeySeed([7; SEED_BYTES]), used_from }
    }

    #[test]
    fn a_key_is_published_before_it_is_used_and_after_it_was() {
        let mut keys = Vec::new();
        let mut seen = Vec::new();
        for today in 0..100 {
            if let Some(PlannedKey { generation, used_from }) = planned_key(&keys, day(today)) {
                keys.push(key(generation, used_from));
            }
            let oldest = oldest_published(&keys, day(today));
            keys.retain(|key| key.generation >= oldest);
            let used = current_key(keys.iter().map(|key| key.used_from), day(today)).unwrap();
            let published: Vec<_> = keys.iter().map(|key| key.generation).collect();
            seen.push((published, keys[used].generation));
        }
        let on = |day: usize| (&*seen[day].0, seen[day].1);
        assert_eq!(on(0), (&[1][..], 1));
        assert_eq!(on(27), (&[1][..], 1));
        assert_eq!(on(28), (&[1, 2][..], 1), "two days before it is used");
        assert_eq!(on(30), (&[1, 2][..], 2));
        assert_eq!(on(31), (&[1, 2][..], 2), "its signatures are valid still");
        assert_eq!(on(32), (&[2][..], 2));
        assert_eq!(on(60).1, 3);
        assert_eq!(on(90).1, 4);
    }

    #[test]
    fn after_a_long_standstill_the_next_key_is_published_first_as_well() {
        let keys = [key(4, day(0))];
        let planned = planned_key(&keys, day(200)).unwrap();
        assert_eq!(planned, PlannedKey { generation: 5, used_from: day(202) });
        let keys = [keys[0].clone(), key(5, planned.used_from)];
        assert_eq!(planned_key(&keys, day(201)), None);
        assert_eq!(current_key(keys.iter().map(|key| key.used_from), day(201)), Some(0));
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_a_key() {
        let keys = [key(1, day(10)), key(2, day(40))];
        assert_eq!(current_key(keys.iter().map(|key| key.used_from), day(5)), Some(0));
        assert_eq!(oldest_published(&keys, day(5)), 0);
        assert_eq!(planned_key(&keys, day(5)), None);
        assert_eq!(current_key([].into_iter(), day(5)), None);
    }

    #[test]
    fn a_seed_survives_the_store_and_is_not_printed() {
        let seed = KeySeed([0xab; SEED_BYTES]);
        assert_eq!(KeySeed::from_hex(&seed.to_hex()), Some(seed.clone()));
        assert_eq!(KeySeed::from_hex("ab"), None);
        assert_eq!(format!("{seed:?}"), "KeySeed(..)");
    }
}
