//! Flagged shards that could not be taken over for a reason of their own, which may last: a page that cannot be read, or another program's node. They
//! are tried again, ever more rarely, and delay no other shard.

use std::{collections::BTreeMap, time::Duration};

use crate::runtime::Monotonic;

/// How long a shard is set aside at first; doubled each time.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_mins(1);

/// The shards that are set aside.
#[derive(Default)]
pub(super) struct SetAside {
    /// Until when, and for how long.
    shards: BTreeMap<u32, (Monotonic, Duration)>,
}

impl SetAside {
    pub(super) fn add(&mut self, shard: u32, now: Monotonic) {
        let before = self.shards.get(&shard).map(|(_, delay)| *delay);
        let delay = before.map_or(FIRST_DELAY, |before| (before * 2).min(MAX_DELAY));
        self.shards.insert(shard, (now + delay, delay));
    }

    /// The shard was taken over, or was lost again: the next delay is a short one.
    pub(super) fn forget(&mut self, shard: u32) {
        self.shards.remove(&shard);
    }

    pub(super) fn contains(&self, shard: u32, now: Monotonic) -> bool {
        self.shards.get(&shard).is_some_and(|(until, _)| now < *until)
    }

    /// When the next shard is tried again.
    pub(super) fn next(&self, now: Monotonic) -> Option<Monotonic> {
        self.shards.values().map(|(until, _)| *until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::member::test_view::at;

    #[test]
    fn shard_is_set_aside_for_longer_each_time() {
        let mut aside = SetAside::default();
        aside.add(3, at(0));
        assert!(aside.contains(3, at(0)) && !aside.contains(3, at(1)) && !aside.contains(4, at(0)));
        aside.add(3, at(1));
        assert_eq!(aside.next(at(1)), Some(at(3)));
        for _ in 0..10 {
            aside.add(3, at(3));
        }
        assert_eq!(aside.next(at(3)), Some(at(63)));
        aside.forget(3);
        assert_eq!(aside.next(at(3)), None);
    }
}
