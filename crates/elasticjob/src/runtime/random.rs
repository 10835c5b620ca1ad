//! Random numbers behind a trait, so that the simulation can supply its own.

use std::fmt;

/// A source of random numbers.
pub trait Randomness: fmt::Debug + Send + Sync + 'static {
    /// 128 random bits.
    fn bits(&self) -> u128;

    /// A number from zero (inclusive) to one (exclusive).
    fn fraction(&self) -> f64 {
        // 32 bits, which an f64 represents exactly.
        f64::from((self.bits() >> 96) as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The operating system's random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn bits(&self) -> u128 {
        rand::random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct FixedBits(u128);

    impl Randomness for FixedBits {
        fn bits(&self) -> u128 {
            self.0
        }
    }

    #[test]
    fn fraction_is_at_least_zero_and_below_one() {
        assert!((0.0..f64::EPSILON).contains(&FixedBits(0).fraction()));
        assert!(FixedBits(u128::MAX).fraction() < 1.0);
    }
}
