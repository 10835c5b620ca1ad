//! Reconnects of Java instances. A Java instance that reconnects deletes its node and creates it again, and its runs go on meanwhile.
//!
//! Java takes that for a death and flags what the instance runs; an instance that took over such a shard would run it in parallel. So a
//! flag that was raised while the shard's owner was absent for less than [`GRACE`] is no loss if the owner returns, and one if it does not.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::runtime::Monotonic;

/// How long a Java instance has to be absent before it counts as dead.
pub(super) const GRACE: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct ReconnectFlaps {
    /// Java instances whose node was deleted, and the shards that each of them was running.
    gone: BTreeMap<String, (Absence, BTreeSet<u32>)>,
    /// Shards that were flagged because of one of them.
    flagged: BTreeMap<u32, (Absence, String)>,
}

#[derive(Debug, Clone, Copy)]
struct Absence {
    dead_at: Monotonic,
    /// The instance returned before it counted as dead.
    is_back: bool,
}

impl Absence {
    fn end(&mut self, now: Monotonic) {
        self.is_back |= now < self.dead_at;
    }
}

impl ReconnectFlaps {
    /// The node of a Java instance that was running these shards was deleted.
    pub(super) fn instance_gone(&mut self, id: &str, ran: BTreeSet<u32>, now: Monotonic) {
        self.gone.retain(|_, (absence, _)| now < absence.dead_at);
        if !ran.is_empty() {
            let absence = Absence { dead_at: now + GRACE, is_back: false };
            self.gone.insert(id.to_owned(), (absence, ran));
        }
    }

    pub(super) fn instance_seen(&mut self, id: &str, now: Monotonic) {
        if let Some((absence, _)) = self.gone.get_mut(id) {
            absence.end(now);
        }
        for (absence, owner) in self.flagged.values_mut() {
            if owner == id {
                absence.end(now);
            }
        }
    }

    pub(super) fn flagged(&mut self, shard: u32, now: Monotonic) {
        let mut gone = self.gone.iter();
        let owner = gone.find(|(_, (absence, ran))| ran.contains(&shard) && now < absence.dead_at);
        match owner {
            Some((id, (absence, _))) => {
                drop(self.flagged.insert(shard, (*absence, id.clone())));
            }
            None => self.unflagged(shard),
        }
    }

    pub(super) fn unflagged(&mut self, shard: u32) {
        self.flagged.remove(&shard);
    }

    /// After a gap in the watch nothing that was seen before counts.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether the owner of this flagged shard may still return.
    pub(super) fn is_undecided(&self, shard: u32, now: Monotonic) -> bool {
        let flagged = self.flagged.get(&shard);
        flagged.is_some_and(|(absence, _)| !absence.is_back && now < absence.dead_at)
    }

    /// The owner of this flagged shard, if it returned in time.
    pub(super) fn returned_owner(&self, shard: u32) -> Option<&str> {
        let (absence, id) = self.flagged.get(&shard)?;
        absence.is_back.then_some(id.as_str())
    }

    /// When the next absent owner counts as dead.
    pub(super) fn next_decision(&self, now: Monotonic) -> Option<Monotonic> {
        self.flagged.values().map(|(absence, _)| absence.dead_at).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAVA: &str = "10.0.0.3@-@4711";

    fn at(ms: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_millis(ms))
    }

    #[test]
    fn flag_is_undecided_until_the_owner_returns_or_counts_as_dead() {
        let mut flaps = ReconnectFlaps::default();
        flaps.instance_gone(JAVA, BTreeSet::from([0, 1]), at(0));
        flaps.flagged(1, at(20));
        flaps.flagged(2, at(20));

        assert!(flaps.is_undecided(1, at(499)));
        assert!(!flaps.is_undecided(1, at(500)), "it is dead");
        assert!(!flaps.is_undecided(2, at(20)), "it did not run that one");
        assert_eq!(flaps.next_decision(at(20)), Some(at(500)));
        assert_eq!(flaps.next_decision(at(500)), None);
        assert_eq!(flaps.returned_owner(1), None);
        flaps.instance_seen(JAVA, at(40));
        assert_eq!((flaps.returned_owner(0), flaps.returned_owner(1)), (None, Some(JAVA)));
        assert!(!flaps.is_undecided(1, at(40)));
        flaps.unflagged(1);
        assert_eq!(flaps.returned_owner(1), None);
    }

    #[test]
    fn flag_raised_after_the_return_is_mistaken_too() {
        let mut flaps = ReconnectFlaps::default();
        flaps.instance_gone(JAVA, BTreeSet::from([0]), at(0));
        flaps.instance_seen(JAVA, at(5));
        flaps.flagged(0, at(100));

        assert_eq!(flaps.returned_owner(0), Some(JAVA));
    }

    #[test]
    fn flag_is_real_if_the_owner_returns_late_or_it_is_raised_late() {
        let mut flaps = ReconnectFlaps::default();
        flaps.instance_gone(JAVA, BTreeSet::from([0]), at(0));
        flaps.flagged(0, at(20));
        flaps.instance_seen(JAVA, at(500));
        assert_eq!(flaps.returned_owner(0), None, "it may have been started again");

        flaps.instance_gone(JAVA, BTreeSet::from([0]), at(600));
        flaps.instance_seen(JAVA, at(605));
        flaps.flagged(0, at(610));
        flaps.flagged(0, at(2_000));
        assert_eq!(flaps.returned_owner(0), None, "raised again");
    }
}
