//! Chance that can be had again.

use std::sync::{Mutex, PoisonError};

use elasticjob::runtime::Randomness;

/// Dice that fall the same way for the same seed (`SplitMix64`).
#[derive(Debug)]
pub(super) struct Dice(Mutex<u64>);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }

    /// Other dice, that do not depend on how often these are thrown from now on.
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

    /// From `low` up to and including `high`.
    pub(super) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Once in `n`; never for zero.
    pub(super) fn once_in(&self, n: u64) -> bool {
        n != 0 && self.next().is_multiple_of(n)
    }

    /// True in so many of a hundred cases.
    pub(super) fn percent(&self, share: u64) -> bool {
        self.next() % 100 < share
    }

    /// One of these.
    pub(super) fn pick<T: Clone>(&self, from: &[T]) -> T {
        from[self.between(0, from.len() as u64 - 1) as usize].clone()
    }
}

impl Randomness for Dice {
    fn bits(&self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}
