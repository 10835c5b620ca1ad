//! Chance, as a seam: the simulation rolls its own dice.

use std::fmt;

/// Where random numbers come from.
pub trait Randomness: fmt::Debug + Send + Sync + 'static {
    /// 128 random bits.
    fn bits(&self) -> u128;

    /// A number from zero up to one.
    fn fraction(&self) -> f64 {
        // As many bits as a float holds exactly from an integer.
        f64::from((self.bits() >> 96) as u32) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The system's own.
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
    struct Loaded(u128);

    impl Randomness for Loaded {
        fn bits(&self) -> u128 {
            self.0
        }
    }

    #[test]
    fn a_fraction_is_at_least_zero_and_below_one() {
        assert!((0.0..f64::EPSILON).contains(&Loaded(0).fraction()));
        assert!(Loaded(u128::MAX).fraction() < 1.0);
    }
}
