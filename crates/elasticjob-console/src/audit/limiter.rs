//! Limits audit entries that a stranger, or one user, can cause in any number.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

const MINUTE: Duration = Duration::from_mins(1);
/// Keys that are tracked.
const MAX_KEYS: usize = 10_000;

/// Records the first entries of a key in each minute, and of all keys together, and only counts the rest.
#[derive(Debug)]
pub(crate) struct EntryLimiter {
    max_per_key: u32,
    max: u32,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Of all keys together, and of keys that are not tracked any more.
    all: Count,
    by_key: HashMap<String, Count>,
}

#[derive(Debug, Default)]
struct Count {
    since: Option<Monotonic>,
    recorded: u32,
    suppressed: u64,
}

impl EntryLimiter {
    /// Refusals, by user.
    pub(crate) fn of_refusals() -> Self {
        Self::new(10, u32::MAX)
    }

    /// Failed logins, by name and network. Strangers have any number of both, so all of them together are limited, too.
    pub(crate) fn of_failed_logins() -> Self {
        Self::new(10, 20)
    }

    fn new(max_per_key: u32, max: u32) -> Self {
        Self { max_per_key, max, counts: Mutex::default() }
    }

    /// `Some` if an entry should be recorded, with the number of entries suppressed since the last one.
    pub(crate) fn record(&self, key: &str, now: Monotonic) -> Option<u64> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let Counts { all, by_key } = &mut *counts;
        all.begin_minute(now);
        if by_key.len() >= MAX_KEYS {
            by_key.retain(|_, count| {
                let is_kept = count.is_of_this_minute(now);
                all.suppressed += if is_kept { 0 } else { count.suppressed };
                is_kept
            });
        }
        let is_tracked = by_key.len() < MAX_KEYS || by_key.contains_key(key);
        if all.recorded >= self.max || !is_tracked {
            all.suppressed += 1;
            return None;
        }
        let of_key = by_key.entry(key.to_owned()).or_default();
        of_key.begin_minute(now);
        if of_key.recorded >= self.max_per_key {
            of_key.suppressed += 1;
            return None;
        }
        of_key.recorded += 1;
        all.recorded = all.recorded.saturating_add(1);
        Some(std::mem::take(&mut of_key.suppressed) + std::mem::take(&mut all.suppressed))
    }
}

impl Count {
    fn is_of_this_minute(&self, now: Monotonic) -> bool {
        self.since.is_some_and(|since| now.saturating_since(since) < MINUTE)
    }

    fn begin_minute(&mut self, now: Monotonic) {
        if !self.is_of_this_minute(now) {
            (self.since, self.recorded) = (Some(now), 0);
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
    fn excess_refusals_in_a_minute_are_counted_not_recorded() {
        let refusals = EntryLimiter::of_refusals();
        let written =
            (0..50).filter(|second| refusals.record("ann", at(*second)).is_some()).count();

        assert_eq!(written, 10);
        assert_eq!(refusals.record("bob", at(50)), Some(0), "users are counted separately");
        assert_eq!(refusals.record("ann", at(60)), Some(40));
        assert_eq!(refusals.record("ann", at(61)), Some(0));
    }

    #[test]
    fn flood_of_failed_logins_is_counted_by_the_next_entry() {
        let failed_logins = EntryLimiter::of_failed_logins();
        let record = |key: u32, now| failed_logins.record(&key.to_string(), now);
        let written = (0..20_000).filter(|key| record(*key, at(0)).is_some()).count();

        assert_eq!(written, 20);
        assert_eq!(record(1, at(60)), Some(19_980));
        let same = (0..30).filter(|_| record(7, at(61)).is_some()).count();
        assert_eq!(same, 10, "of one name from one network");
        assert_eq!(record(8, at(62)), Some(0));
        assert_eq!(record(7, at(121)), Some(20));
    }

    #[test]
    fn suppressed_entries_of_a_forgotten_key_are_counted_for_all() {
        let refusals = EntryLimiter::of_refusals();
        for _ in 0..15 {
            refusals.record("ann", at(0));
        }
        for user in 1..MAX_KEYS {
            refusals.record(&format!("user {user}"), at(30));
        }

        assert_eq!(refusals.record("zoe", at(61)), Some(5));
        assert!(refusals.counts.lock().unwrap().by_key.len() <= MAX_KEYS);
    }
}
