//! The seeded random number generator of the simulation.

use std::sync::{Mutex, PoisonError};

use elasticjob::runtime::Randomness;

/// `SplitMix64`: the same seed gives the same numbers.
#[derive(Debug)]
pub(super) struct Rng(Mutex<u64>);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// A second generator for the same seed. What draws from it changes none of the numbers of the first one, so known seeds keep their faults.
    pub(super) fn second(seed: u64) -> Self {
        Self::new(seed ^ 0x5851_f42d_4c95_7f2d)
    }

    /// A new generator whose numbers do not depend on how often this one is used from now on.
    pub(super) fn fork(&self) -> Self {
        Self::new(self.next())
    }

    fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from `low` up to and including `high`.
    pub(super) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True once in `n` calls on average; never if `n` is zero.
    pub(super) fn one_in(&self, n: u64) -> bool {
        n != 0 && self.next().is_multiple_of(n)
    }

    /// True with a probability of `share` percent.
    pub(super) fn percent(&self, share: u64) -> bool {
        self.next() % 100 < share
    }

    pub(super) fn pick<T: Clone>(&self, from: &[T]) -> T {
        from[self.between(0, from.len() as u64 - 1) as usize].clone()
    }
}

impl Randomness for Rng {
    fn bits(&self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}
