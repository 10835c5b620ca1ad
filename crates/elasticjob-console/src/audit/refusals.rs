//! How many refusals of a user are written down.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use elasticjob::runtime::Monotonic;

/// How many refusals of a user are written down in a minute.
const WRITTEN_DOWN: u32 = 10;
const MINUTE: Duration = Duration::from_mins(1);
/// How many users are remembered for it.
const MOST_REFUSED: usize = 10_000;

/// Refusals of each user: the first of a minute are written down, and of the others how many there were, so that nobody drowns the audit in them.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<String, Counted>>);

#[derive(Debug)]
struct Counted {
    since: Monotonic,
    count: u32,
    left_out: u64,
}

impl Refusals {
    /// One more. If it is to be written down, how many were not since the last that was.
    pub(crate) fn note(&self, username: &str, now: Monotonic) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_REFUSED {
            all.retain(|_, counted| now.saturating_since(counted.since) < MINUTE);
        }
        let new = || Counted { since: now, count: 0, left_out: 0 };
        let counted = all.entry(username.to_owned()).or_insert_with(new);
        if now.saturating_since(counted.since) >= MINUTE {
            (counted.since, counted.count) = (now, 0);
        }
        counted.count = counted.count.saturating_add(1);
        if counted.count > WRITTEN_DOWN {
            counted.left_out += 1;
            return None;
        }
        Some(std::mem::take(&mut counted.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_refusals_in_a_minute_some_are_written_down_and_the_others_counted() {
        let refusals = Refusals::default();
        let at = |seconds| Monotonic::from_start(Duration::from_secs(seconds));
        let written = (0..50).filter(|second| refusals.note("ann", at(*second)).is_some()).count();

        assert_eq!(written, 10);
        assert_eq!(refusals.note("bob", at(50)), Some(0), "each has their own");
        assert_eq!(refusals.note("ann", at(60)), Some(40));
        assert_eq!(refusals.note("ann", at(61)), Some(0));
    }
}
