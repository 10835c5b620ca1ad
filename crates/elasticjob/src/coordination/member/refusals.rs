//! How long to wait before what the registry has refused is tried again.
//!
//! Most refusals are races, and the next attempt succeeds. But the registry may refuse for ever, for example because another program has put a node
//! where none is expected.

use std::time::Duration;

use crate::runtime::Monotonic;

/// How many refusals in a row are followed by another attempt at once.
const WITHOUT_DELAY: u32 = 2;
/// How long the next attempt waits after that; doubled with each refusal, up to the maximum.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(10);

/// Refusals of the same thing in a row.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    count: u32,
    retry_at: Option<Monotonic>,
}

impl Refusals {
    /// Notes a refusal. Returns how long the next attempt has to wait, if it has to.
    pub(super) fn note(&mut self, now: Monotonic) -> Option<Duration> {
        self.count = self.count.saturating_add(1);
        let delay = delay_after(self.count);
        self.retry_at = delay.map(|delay| now + delay);
        delay
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// When the next attempt may be made, if it has to wait.
    pub(super) fn retry_at(&self, now: Monotonic) -> Option<Monotonic> {
        self.retry_at.filter(|at| now < *at)
    }

    /// Whether an attempt had to wait, and may be made now.
    pub(super) fn is_due(&self, now: Monotonic) -> bool {
        self.retry_at.is_some_and(|at| now >= at)
    }

    /// An attempt is made.
    pub(super) fn retry(&mut self) {
        self.retry_at = None;
    }
}

fn delay_after(refusals: u32) -> Option<Duration> {
    let doublings = refusals.checked_sub(WITHOUT_DELAY + 1)?.min(16);
    Some(FIRST_DELAY.saturating_mul(1 << doublings).min(MAX_DELAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_grows_with_each_refusal_up_to_a_maximum() {
        let delays: Vec<_> = [1, 2, 3, 4, 5, u32::MAX].into_iter().map(delay_after).collect();

        let millis = |count| Some(Duration::from_millis(count));
        assert_eq!(delays, [None, None, millis(100), millis(200), millis(400), millis(10_000)]);
    }
}
