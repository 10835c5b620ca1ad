//! Limits audit entries about refused requests.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

/// Refusals of a user that are audited per minute.
const MAX_PER_MINUTE: u32 = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// Users that are tracked.
const MAX_USERS: usize = 10_000;

/// Audits the first refusals of a user in each minute and only counts the rest, so that refusals cannot flood the audit.
#[derive(Debug, Default)]
pub(crate) struct RefusalLimiter(Mutex<HashMap<String, RefusalCount>>);

#[derive(Debug)]
struct RefusalCount {
    since: Monotonic,
    count: u32,
    suppressed: u64,
}

impl RefusalLimiter {
    /// Counts a refusal. `Some` if it should be audited, with the number of refusals suppressed since the last audited one.
    pub(crate) fn record(&self, username: &str, now: Monotonic) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_USERS {
            all.retain(|_, count_of_user| now.saturating_since(count_of_user.since) < MINUTE);
        }
        let new = || RefusalCount { since: now, count: 0, suppressed: 0 };
        let count_of_user = all.entry(username.to_owned()).or_insert_with(new);
        if now.saturating_since(count_of_user.since) >= MINUTE {
            (count_of_user.since, count_of_user.count) = (now, 0);
        }
        count_of_user.count = count_of_user.count.saturating_add(1);
        if count_of_user.count > MAX_PER_MINUTE {
            count_of_user.suppressed += 1;
            return None;
        }
        Some(std::mem::take(&mut count_of_user.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_refusals_in_a_minute_are_counted_not_recorded() {
        let refusals = RefusalLimiter::default();
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let written =
            (0..50).filter(|second| refusals.record("ann", at(*second)).is_some()).count();

        assert_eq!(written, 10);
        assert_eq!(refusals.record("bob", at(50)), Some(0), "users are counted separately");
        assert_eq!(refusals.record("ann", at(60)), Some(40));
        assert_eq!(refusals.record("ann", at(61)), Some(0));
    }
}
