//! Counts failures by key, and makes each one wait longer than the one before it.

use std::{collections::HashMap, time::Duration};

use elasticjob::runtime::Monotonic;

const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Failures beyond the free ones that are counted; more would only take longer to be forgiven.
const MAX_EXCESS: u32 = 16;
/// Entries of a lane.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Entries that a full lane evicts.
const MAX_EVICTED: usize = MAX_ENTRIES / 10;

/// A hash, so that the length of a name does not matter.
pub(super) type Key = [u8; 16];

#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Failures without a wait.
    pub(super) free: u32,
    pub(super) max_wait: Duration,
    pub(super) forgiven_after: Duration,
}

/// Failures by key. Memory is bounded: a full lane evicts the entries that would be forgiven first. Every failure postpones that, so a flood of single
/// failures cannot evict an entry with many.
#[derive(Debug)]
pub(super) struct Lane {
    rule: Rule,
    failures: HashMap<Key, Failures>,
}

/// The failures of a key. Their number is the time until all of them are forgiven.
#[derive(Debug, Clone, Copy)]
struct Failures {
    forgiven_at: Monotonic,
    last: Monotonic,
}

impl Lane {
    pub(super) fn new(rule: Rule) -> Self {
        Self { rule, failures: HashMap::new() }
    }

    pub(super) fn count(&self, key: &Key, now: Monotonic) -> u32 {
        self.failures.get(key).map_or(0, |failures| failures.count(&self.rule, now))
    }

    /// When the next attempt may be made; `None` if it is free.
    pub(super) fn opens_at(&self, key: &Key, now: Monotonic) -> Option<Monotonic> {
        let failures = self.failures.get(key)?;
        let wait = self.rule.wait(failures.count(&self.rule, now))?;
        Some(failures.last + wait)
    }

    pub(super) fn wait(&self, key: &Key, now: Monotonic) -> Duration {
        self.opens_at(key, now).map_or(Duration::ZERO, |at| at.saturating_since(now))
    }

    /// Counts a failure. Returns the time of the failure before it.
    pub(super) fn add(&mut self, key: Key, now: Monotonic) -> Option<Monotonic> {
        if !self.failures.contains_key(&key) {
            self.make_room(now);
        }
        let Rule { free, forgiven_after, .. } = self.rule;
        let before = self.failures.get(&key).filter(|failures| failures.forgiven_at > now).copied();
        let begin = before.map_or(now, |failures| failures.forgiven_at);
        let latest = now + forgiven_after * (free + MAX_EXCESS);
        let forgiven_at = (begin + forgiven_after).min(latest);
        self.failures.insert(key, Failures { forgiven_at, last: now });
        before.map(|failures| failures.last)
    }

    /// Takes back a failure that was counted at `at`.
    pub(super) fn withdraw(&mut self, key: &Key, at: Monotonic, before: Option<Monotonic>) {
        let Some(failures) = self.failures.get_mut(key) else { return };
        failures.forgiven_at = failures.forgiven_at - self.rule.forgiven_after;
        if failures.last == at {
            failures.last = before.unwrap_or(at);
        }
        if failures.forgiven_at <= at {
            self.failures.remove(key);
        }
    }

    pub(super) fn forgive(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    fn make_room(&mut self, now: Monotonic) {
        if self.failures.len() < MAX_ENTRIES {
            return;
        }
        self.failures.retain(|_, failures| failures.forgiven_at > now);
        if self.failures.len() < MAX_ENTRIES {
            return;
        }
        // Several at once: in a flood, not every failure should cost a look at all entries.
        let mut ends: Vec<_> =
            self.failures.values().map(|failures| failures.forgiven_at).collect();
        let (_, last_end, _) = ends.select_nth_unstable(MAX_EVICTED);
        let (last_end, mut left) = (*last_end, MAX_EVICTED);
        self.failures.retain(|_, failures| {
            let is_evicted = left > 0 && failures.forgiven_at <= last_end;
            left -= usize::from(is_evicted);
            !is_evicted
        });
    }
}

impl Failures {
    fn count(&self, rule: &Rule, now: Monotonic) -> u32 {
        let left = self.forgiven_at.saturating_since(now).as_millis();
        u32::try_from(left.div_ceil(rule.forgiven_after.as_millis())).unwrap_or(u32::MAX)
    }
}

impl Rule {
    /// The wait after this many failures; `None` if there is none.
    fn wait(&self, failures: u32) -> Option<Duration> {
        let excess = failures.checked_sub(self.free)?;
        Some(FIRST_WAIT.saturating_mul(2_u32.saturating_pow(excess)).min(self.max_wait))
    }
}

#[cfg(test)]
impl Lane {
    pub(super) fn len(&self) -> usize {
        self.failures.len()
    }
}
