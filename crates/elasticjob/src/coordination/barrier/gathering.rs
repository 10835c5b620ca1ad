//! Who is at a gate: what the watch shows, and what a registration means. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    coordination::ledger::{Page, State},
    job::RunId,
    registry::{Event, Path, Zxid},
};

/// A registration as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registration {
    /// Its name: the shard, unless somebody put something else there.
    pub(super) name: String,
    /// Whose round it is of; Java says nothing.
    pub(super) data: Bytes,
    /// Tells it from another one made later in the same place.
    pub(super) created: Zxid,
}

impl Registration {
    /// The shard.
    pub(super) fn shard(&self) -> Option<u32> {
        self.name.parse().ok()
    }

    /// Whether it is of this run, in so many words.
    pub(super) fn names(&self, run: &RunId) -> bool {
        self.data == run.to_string()
    }

    /// Whether Java made it.
    pub(super) fn is_of_java(&self) -> bool {
        self.data.is_empty()
    }

    /// Whether it is certainly of a later round.
    pub(super) fn is_ahead(&self, run: &RunId) -> bool {
        let theirs = std::str::from_utf8(&self.data).ok().and_then(|text| text.parse().ok());
        let theirs = theirs.as_ref().and_then(RunId::due_at);
        run.due_at().is_some_and(|mine| theirs.is_some_and(|theirs| theirs > mine))
    }

    /// Whether it is of the round of this run, as far as one can tell; `dealt` is when the shard got its present owner.
    pub(super) fn counts(&self, run: &RunId, dealt: Zxid) -> bool {
        if self.names(run) {
            return true;
        }
        let theirs = std::str::from_utf8(&self.data).ok().and_then(|text| text.parse().ok());
        let is_nameless = match theirs {
            None => true,
            // Every instance names its triggered run by itself.
            Some(theirs) => !RunId::is_scheduled(&theirs) && !run.is_scheduled(),
        };
        is_nameless && self.created > dealt
    }
}

/// Whether a shard that is not there will not come any more, by its page of the ledger.
pub(super) fn has_gone_on(page: &Page, run: &RunId, due_at: Timestamp) -> bool {
    if page.run.as_ref() == Some(run) {
        return matches!(page.state, State::Done | State::Failed | State::Lost);
    }
    run.is_scheduled() && page.due_at.is_some_and(|theirs| theirs > due_at)
}

/// Everything below `guarantee`, by existence.
#[derive(Debug)]
pub(super) struct Gathering {
    root: Path,
    latch: Path,
    known: BTreeSet<Path>,
    /// Every shard that was there at some time.
    ever: BTreeSet<u32>,
    /// There was a gap: something may have come and gone unseen.
    gap: bool,
}

impl Gathering {
    pub(super) fn new(root: Path, latch: Path) -> Self {
        Self { root, latch, known: BTreeSet::new(), ever: BTreeSet::new(), gap: false }
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Init => {
                self.gap = true;
                self.known.clear();
            }
            Event::InitApply { path, .. } | Event::Apply { path } => {
                self.ever.extend(shard(path, &self.root));
                self.known.insert(path.clone());
            }
            Event::Delete { path } => drop(self.known.remove(path)),
            Event::InitDone => {}
        }
    }

    /// From here on it counts who was there.
    pub(super) fn begin(&mut self) {
        self.gap = false;
        self.ever = self.registered().collect();
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.known.contains(path)
    }

    /// The shards that are there, whatever they are worth.
    pub(super) fn registered(&self) -> impl Iterator<Item = u32> {
        self.known.iter().filter_map(|path| shard(path, &self.root))
    }

    /// Whether somebody has the turn, or waits for it.
    pub(super) fn is_queued(&self) -> bool {
        self.known.iter().any(|path| path.below(&self.latch).is_some())
    }

    /// Those of `expected` that are not there.
    pub(super) fn missing(&self, expected: &BTreeSet<u32>) -> BTreeSet<u32> {
        let there: BTreeSet<u32> = self.registered().collect();
        expected.difference(&there).copied().collect()
    }

    /// Those of `expected` that have certainly never been there.
    pub(super) fn never(&self, expected: &BTreeSet<u32>) -> BTreeSet<u32> {
        if self.gap { BTreeSet::new() } else { expected.difference(&self.ever).copied().collect() }
    }
}

fn shard(path: &Path, root: &Path) -> Option<u32> {
    path.below(root)?.parse().ok()
}

/// Those of `expected` that no registration counts for.
pub(super) fn lacking(
    expected: &BTreeSet<u32>,
    found: &[Registration],
    run: &RunId,
    dealt: &BTreeMap<u32, Zxid>,
) -> BTreeSet<u32> {
    let counted = found.iter().filter_map(|registration| {
        let shard = registration.shard()?;
        let dealt = dealt.get(&shard).copied().unwrap_or_default();
        registration.counts(run, dealt).then_some(shard)
    });
    let counted: BTreeSet<u32> = counted.collect();
    expected.difference(&counted).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(second: i64) -> RunId {
        RunId::scheduled("settle".parse().unwrap(), Timestamp::from_second(second).unwrap())
    }

    fn registration(data: &str, created: i64) -> Registration {
        Registration {
            name: "0".into(),
            data: Bytes::copy_from_slice(data.as_bytes()),
            created: Zxid(created),
        }
    }

    #[test]
    fn a_registration_counts_for_its_own_run_and_a_nameless_one_if_its_owner_can_have_made_it() {
        let (one, other) = (RunId::triggered(1), RunId::triggered(2));
        let dealt = Zxid(10);
        for (data, created, mine, counts) in [
            (run(5).to_string(), 1, run(5), true),
            (run(4).to_string(), 11, run(5), false),
            (run(6).to_string(), 11, run(5), false),
            (String::new(), 11, run(5), true),
            (String::new(), 9, run(5), false),
            (one.to_string(), 11, one.clone(), true),
            (one.to_string(), 11, other.clone(), true),
            (one.to_string(), 9, other, false),
            (one.to_string(), 11, run(5), false),
            (run(5).to_string(), 11, one, false),
        ] {
            let found = registration(&data, created);
            assert_eq!(found.counts(&mine, dealt), counts, "{data:?} at {created} for {mine}");
            assert_eq!(found.is_ahead(&mine), data == run(6).to_string(), "{data:?} for {mine}");
        }
    }

    #[test]
    fn whoever_is_through_with_a_fire_or_at_a_later_one_will_not_come() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let page = |run: RunId, second, state| Page {
            run: Some(run),
            due_at: Some(at(second)),
            state,
            ..Page::default()
        };
        let gone_on = |page: &Page| has_gone_on(page, &run(5), at(5));

        assert!(!gone_on(&Page::default()));
        assert!(!gone_on(&page(run(5), 5, State::Running)));
        assert!(!gone_on(&page(run(4), 4, State::Running)));
        assert!(gone_on(&page(run(5), 5, State::Done)));
        assert!(gone_on(&page(run(5), 5, State::Lost)));
        assert!(gone_on(&page(run(6), 6, State::Running)));
        assert!(!has_gone_on(&page(run(6), 6, State::Done), &RunId::triggered(1), at(5)));
    }

    #[test]
    fn after_a_gap_nobody_is_said_never_to_have_been_there() {
        let root: Path = "/shop/settle/guarantee/started".parse().unwrap();
        let latch: Path = "/shop/settle/guarantee/started-latch".parse().unwrap();
        let mut gathering = Gathering::new(root.clone(), latch.clone());
        let expected = BTreeSet::from([0, 1]);
        gathering.begin();

        gathering.apply(&Event::Apply { path: root.join("0").unwrap() });
        gathering.apply(&Event::Apply { path: latch.join("_c_1-latch-0000000000").unwrap() });
        assert_eq!(gathering.missing(&expected), BTreeSet::from([1]));
        assert!(gathering.is_queued());

        gathering.apply(&Event::Delete { path: root.join("0").unwrap() });
        assert_eq!(gathering.missing(&expected), expected);
        assert_eq!(gathering.never(&expected), BTreeSet::from([1]), "shard 0 was there");

        gathering.apply(&Event::Init);
        gathering.apply(&Event::InitDone);
        assert_eq!(gathering.never(&expected), BTreeSet::new());
        assert!(!gathering.is_queued());
    }
}
