//! A Java instance that reconnects deletes its node and makes it anew, and what it runs goes on meanwhile.
//!
//! Java takes that for a death and flags what the instance runs; whoever took such a shard over would run it beside the living. A flag that was
//! raised while its shard's owner was away for a moment is therefore no loss if the owner is back, and one if it is not.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::runtime::Monotonic;

/// How long a Java instance has to be absent before it counts as dead.
pub(super) const GRACE: Duration = Duration::from_millis(500);

/// Who was away for a moment, and what was flagged because of it.
#[derive(Debug, Default)]
pub(super) struct Blinks {
    /// Java instances whose node went, and what each of them ran then.
    gone: BTreeMap<String, (Absence, BTreeSet<u32>)>,
    /// Shards that were flagged because of one of them.
    flagged: BTreeMap<u32, (Absence, String)>,
}

/// When one who went counts as dead, and whether it was back before that.
#[derive(Debug, Clone, Copy)]
struct Absence {
    dead_at: Monotonic,
    is_back: bool,
}

impl Absence {
    fn ends(&mut self, now: Monotonic) {
        self.is_back |= now < self.dead_at;
    }
}

impl Blinks {
    /// The node of a Java instance that ran these shards went.
    pub(super) fn gone(&mut self, id: &str, ran: BTreeSet<u32>, now: Monotonic) {
        self.gone.retain(|_, (absence, _)| now < absence.dead_at);
        if !ran.is_empty() {
            let absence = Absence { dead_at: now + GRACE, is_back: false };
            self.gone.insert(id.to_owned(), (absence, ran));
        }
    }

    /// The node of an instance is there again.
    pub(super) fn back(&mut self, id: &str, now: Monotonic) {
        if let Some((absence, _)) = self.gone.get_mut(id) {
            absence.ends(now);
        }
        for (absence, who) in self.flagged.values_mut() {
            if who == id {
                absence.ends(now);
            }
        }
    }

    /// A shard was flagged.
    pub(super) fn flagged(&mut self, shard: u32, now: Monotonic) {
        let mut gone = self.gone.iter();
        let culprit =
            gone.find(|(_, (absence, ran))| ran.contains(&shard) && now < absence.dead_at);
        match culprit {
            Some((id, (absence, _))) => {
                drop(self.flagged.insert(shard, (*absence, id.clone())));
            }
            None => self.settled(shard),
        }
    }

    /// The flag is gone.
    pub(super) fn settled(&mut self, shard: u32) {
        self.flagged.remove(&shard);
    }

    /// Nothing that was seen counts any more.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether whoever runs this flagged shard may still come back.
    pub(super) fn is_undecided(&self, shard: u32, now: Monotonic) -> bool {
        let flagged = self.flagged.get(&shard);
        flagged.is_some_and(|(absence, _)| !absence.is_back && now < absence.dead_at)
    }

    /// The flagged shards whose owner came back at once, with who that is.
    pub(super) fn mistaken(&self) -> impl Iterator<Item = (u32, &str)> {
        let flagged = self.flagged.iter().filter(|(_, (absence, _))| absence.is_back);
        flagged.map(|(shard, (_, id))| (*shard, id.as_str()))
    }

    /// When the next of them is decided.
    pub(super) fn next(&self, now: Monotonic) -> Option<Monotonic> {
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

    fn mistaken(blinks: &Blinks) -> Vec<(u32, &str)> {
        blinks.mistaken().collect()
    }

    #[test]
    fn a_flag_is_mistaken_once_its_owner_is_back_and_undecided_until_it_counts_as_dead() {
        let mut blinks = Blinks::default();
        blinks.gone(JAVA, BTreeSet::from([0, 1]), at(0));
        blinks.flagged(1, at(20));
        blinks.flagged(2, at(20));

        assert!(blinks.is_undecided(1, at(499)));
        assert!(!blinks.is_undecided(1, at(500)), "it is dead");
        assert!(!blinks.is_undecided(2, at(20)), "it did not run that one");
        assert_eq!((blinks.next(at(20)), blinks.next(at(500))), (Some(at(500)), None));
        assert!(mistaken(&blinks).is_empty());
        blinks.back(JAVA, at(40));
        assert_eq!(mistaken(&blinks), [(1, JAVA)]);
        assert!(!blinks.is_undecided(1, at(40)));
        blinks.settled(1);
        assert!(mistaken(&blinks).is_empty());
    }

    #[test]
    fn a_flag_that_comes_after_the_return_is_mistaken_as_well() {
        let mut blinks = Blinks::default();
        blinks.gone(JAVA, BTreeSet::from([0]), at(0));
        blinks.back(JAVA, at(5));
        blinks.flagged(0, at(100));

        assert_eq!(mistaken(&blinks), [(0, JAVA)]);
    }

    #[test]
    fn whoever_comes_back_late_was_dead_and_a_flag_raised_late_is_another_matter() {
        let mut blinks = Blinks::default();
        blinks.gone(JAVA, BTreeSet::from([0]), at(0));
        blinks.flagged(0, at(20));
        blinks.back(JAVA, at(500));
        assert!(mistaken(&blinks).is_empty(), "it may have been started anew");

        blinks.gone(JAVA, BTreeSet::from([0]), at(600));
        blinks.back(JAVA, at(605));
        blinks.flagged(0, at(610));
        blinks.flagged(0, at(2_000));
        assert!(mistaken(&blinks).is_empty(), "raised anew");
    }
}
