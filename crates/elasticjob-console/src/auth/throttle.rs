//! Limits password attempts: five for a name from one address, fifty for an address; from then on the waiting time doubles with each attempt.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

/// Free attempts for one name from one address.
pub(crate) const TRIES_PER_NAME: u32 = 5;
/// Free attempts for an address, whatever the names: users who share it should not wait because of one user's mistakes.
pub(crate) const TRIES_PER_ADDRESS: u32 = 50;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_mins(5);
/// A key without attempts for this long is forgotten.
const FORGET_AFTER: Duration = Duration::from_mins(15);
const MAX_KEYS: usize = 10_000;

/// Failed attempts by key.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<String, Failures>>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last: Monotonic,
}

impl Throttle {
    /// Counts an attempt, or returns how long to wait. Each key has its number of free attempts. An attempt counts as failed until
    /// [`reset`](Self::reset) is called, so that concurrent attempts cannot bypass the limit.
    pub(crate) fn try_now(&self, keys: &[(String, u32)], now: Monotonic) -> Result<(), Duration> {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.retain(|_, failed| now.saturating_since(failed.last) < FORGET_AFTER);
        for (failed, free) in
            keys.iter().filter_map(|(key, free)| Some((failures.get(key)?, *free)))
        {
            let wait = failed.wait(free);
            let waited = now.saturating_since(failed.last);
            if waited < wait {
                return Err(wait.checked_sub(waited).unwrap_or_default());
            }
        }
        if failures.len() > MAX_KEYS {
            // An attacker is trying endless names. Making everyone wait is better than unlimited attempts.
            return Err(FIRST_WAIT);
        }
        for (key, _) in keys {
            let failed = failures.entry(key.clone()).or_insert(Failures { count: 0, last: now });
            *failed = Failures { count: failed.count.saturating_add(1), last: now };
        }
        Ok(())
    }

    /// The attempt succeeded: forgets the failures of these keys.
    pub(crate) fn reset(&self, keys: &[(String, u32)]) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, _) in keys {
            failures.remove(key);
        }
    }
}

impl Failures {
    fn wait(self, free: u32) -> Duration {
        match self.count.checked_sub(free) {
            None => Duration::ZERO,
            Some(excess) => FIRST_WAIT.saturating_mul(2_u32.saturating_pow(excess)).min(MAX_WAIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn wait_doubles_after_five_tries_until_a_success() {
        let (throttle, keys) = (Throttle::default(), [("ann".to_owned(), TRIES_PER_NAME)]);
        for _ in 0..5 {
            throttle.try_now(&keys, at(0)).unwrap();
        }

        assert_eq!(throttle.try_now(&keys, at(0)), Err(Duration::from_secs(1)));
        throttle.try_now(&keys, at(1)).unwrap();
        assert_eq!(throttle.try_now(&keys, at(2)), Err(Duration::from_secs(1)));
        throttle.try_now(&keys, at(3)).unwrap();
        assert_eq!(throttle.try_now(&keys, at(3)), Err(Duration::from_secs(4)));
        assert_eq!(throttle.try_now(&[("bob".to_owned(), TRIES_PER_NAME)], at(3)), Ok(()));

        throttle.reset(&keys);
        assert_eq!(throttle.try_now(&keys, at(3)), Ok(()));
    }

    #[test]
    fn wait_is_capped() {
        let (throttle, keys) = (Throttle::default(), [("ann".to_owned(), TRIES_PER_NAME)]);
        for hour in 0..100 {
            throttle.try_now(&keys, at(hour * 300)).unwrap();
        }

        assert_eq!(throttle.try_now(&keys, at(99 * 300)), Err(MAX_WAIT));
    }
}
