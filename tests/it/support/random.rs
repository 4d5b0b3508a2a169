//! Random numbers with a seed that is printed, since a test that fails once should fail again.

/// A sequence of random numbers: xorshift.
pub(crate) struct Random(u64);

impl Random {
    /// Begins a sequence with a random seed, and prints it.
    pub(crate) fn thrown() -> Random {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).unwrap();
        Random::seeded(u64::from_le_bytes(seed))
    }

    /// Begins the sequence of this seed, and prints it.
    pub(crate) fn seeded(seed: u64) -> Random {
        eprintln!("seed {seed}");
        Random(seed | 1)
    }

    /// Returns a number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }

    /// Returns another sequence that depends on this one.
    pub(crate) fn split(&mut self) -> Random {
        Random(self.below(u64::MAX) | 1)
    }

    /// Returns one of these, which are not empty.
    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
