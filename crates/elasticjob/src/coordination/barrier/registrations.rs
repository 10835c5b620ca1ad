//! The registrations at a gate, where the instances of a run meet before or after it: which nodes exist, and for which run each one counts. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;

use crate::{
    coordination::ledger::{LedgerPage, LedgerState},
    job::RunId,
    registry::{Event, Path, Zxid},
};

/// A registration node as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registration {
    /// The node's name: the shard number, unless the node is not part of the protocol.
    pub(super) name: String,
    /// The run id; empty if Java registered.
    pub(super) data: Bytes,
    /// Distinguishes this node from a later one at the same path.
    pub(super) created: Zxid,
}

impl Registration {
    pub(super) fn shard(&self) -> Option<u32> {
        self.name.parse().ok()
    }

    /// Whether the registration carries this run id.
    pub(super) fn has_run_id(&self, run: &RunId) -> bool {
        self.data == run.to_string()
    }

    pub(super) fn is_from_java(&self) -> bool {
        self.data.is_empty()
    }

    /// Whether the registration is certainly of a later fire than `run`.
    pub(super) fn is_of_later_fire(&self, run: &RunId) -> bool {
        let registered = std::str::from_utf8(&self.data).ok().and_then(|text| text.parse().ok());
        let registered = registered.as_ref().and_then(RunId::due_at);
        run.due_at().is_some_and(|due_at| registered.is_some_and(|registered| registered > due_at))
    }

    /// Whether the registration counts for this run. `assigned` is the zxid at which the shard got its present owner: a registration that does not
    /// identify its run counts if it is newer.
    pub(super) fn counts_for(&self, run: &RunId, assigned: Zxid) -> bool {
        if self.has_run_id(run) {
            return true;
        }
        let registered = std::str::from_utf8(&self.data).ok().and_then(|text| text.parse().ok());
        let is_ambiguous = match registered {
            None => true,
            // Every instance chooses the id of a triggered run by itself.
            Some(registered) => !RunId::is_scheduled(&registered) && !run.is_scheduled(),
        };
        is_ambiguous && self.created > assigned
    }
}

/// Whether a shard that is not registered will not register any more, according to its ledger page.
pub(super) fn has_moved_on(page: &LedgerPage, run: &RunId, due_at: Timestamp) -> bool {
    if page.run.as_ref() == Some(run) {
        return matches!(page.state, LedgerState::Done | LedgerState::Failed | LedgerState::Lost);
    }
    run.is_scheduled() && page.due_at.is_some_and(|started| started > due_at)
}

/// A mirror of the nodes below `guarantee`, by existence only.
#[derive(Debug)]
pub(super) struct GateMirror {
    root: Path,
    latch: Path,
    existing: BTreeSet<Path>,
    /// Every shard that was registered at any time since [`GateMirror::start`].
    ever_registered: BTreeSet<u32>,
    /// The watch had a gap: a registration may have been created and deleted unseen.
    had_gap: bool,
}

impl GateMirror {
    pub(super) fn new(root: Path, latch: Path) -> Self {
        Self {
            root,
            latch,
            existing: BTreeSet::new(),
            ever_registered: BTreeSet::new(),
            had_gap: false,
        }
    }

    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::Init => {
                self.had_gap = true;
                self.existing.clear();
            }
            Event::InitApply { path, .. } | Event::Apply { path } => {
                self.ever_registered.extend(shard(path, &self.root));
                self.existing.insert(path.clone());
            }
            Event::Delete { path } => drop(self.existing.remove(path)),
            Event::InitDone => {}
        }
    }

    /// Starts to track which shards were ever registered.
    pub(super) fn start(&mut self) {
        self.had_gap = false;
        self.ever_registered = self.registered().collect();
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.existing.contains(path)
    }

    /// The shards that have a registration, whether it counts or not.
    pub(super) fn registered(&self) -> impl Iterator<Item = u32> {
        self.existing.iter().filter_map(|path| shard(path, &self.root))
    }

    /// Whether any instance holds the latch or waits for it.
    pub(super) fn is_latch_queued(&self) -> bool {
        self.existing.iter().any(|path| path.relative_to(&self.latch).is_some())
    }

    /// The expected shards that have no registration.
    pub(super) fn missing(&self, expected: &BTreeSet<u32>) -> BTreeSet<u32> {
        let registered: BTreeSet<u32> = self.registered().collect();
        expected.difference(&registered).copied().collect()
    }

    /// The expected shards that certainly never had a registration.
    pub(super) fn never_registered(&self, expected: &BTreeSet<u32>) -> BTreeSet<u32> {
        if self.had_gap {
            BTreeSet::new()
        } else {
            expected.difference(&self.ever_registered).copied().collect()
        }
    }
}

fn shard(path: &Path, root: &Path) -> Option<u32> {
    path.relative_to(root)?.parse().ok()
}

/// The expected shards for which no registration counts.
pub(super) fn uncounted(
    expected: &BTreeSet<u32>,
    registrations: &[Registration],
    run: &RunId,
    assigned: &BTreeMap<u32, Zxid>,
) -> BTreeSet<u32> {
    let counted = registrations.iter().filter_map(|registration| {
        let shard = registration.shard()?;
        let assigned = assigned.get(&shard).copied().unwrap_or_default();
        registration.counts_for(run, assigned).then_some(shard)
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
    fn registration_counts_for_its_own_run_or_if_made_by_the_present_owner() {
        let (one, other) = (RunId::triggered(1), RunId::triggered(2));
        let assigned = Zxid(10);
        for (data, created, own, counts) in [
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
            assert_eq!(found.counts_for(&own, assigned), counts, "{data:?} at {created} for {own}");
            assert_eq!(
                found.is_of_later_fire(&own),
                data == run(6).to_string(),
                "{data:?} for {own}"
            );
        }
    }

    #[test]
    fn shard_has_moved_on_when_it_finished_the_fire_or_started_a_later_one() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let page = |run: RunId, second, state| LedgerPage {
            run: Some(run),
            due_at: Some(at(second)),
            state,
            ..LedgerPage::default()
        };
        let moved_on = |page: &LedgerPage| has_moved_on(page, &run(5), at(5));

        assert!(!moved_on(&LedgerPage::default()));
        assert!(!moved_on(&page(run(5), 5, LedgerState::Running)));
        assert!(!moved_on(&page(run(4), 4, LedgerState::Running)));
        assert!(moved_on(&page(run(5), 5, LedgerState::Done)));
        assert!(moved_on(&page(run(5), 5, LedgerState::Lost)));
        assert!(moved_on(&page(run(6), 6, LedgerState::Running)));
        assert!(!has_moved_on(&page(run(6), 6, LedgerState::Done), &RunId::triggered(1), at(5)));
    }

    #[test]
    fn gap_makes_past_registrations_uncertain() {
        let root: Path = "/shop/settle/guarantee/started".parse().unwrap();
        let latch: Path = "/shop/settle/guarantee/started-latch".parse().unwrap();
        let mut mirror = GateMirror::new(root.clone(), latch.clone());
        let expected = BTreeSet::from([0, 1]);
        mirror.start();

        mirror.apply(&Event::Apply { path: root.join("0").unwrap() });
        mirror.apply(&Event::Apply { path: latch.join("_c_1-latch-0000000000").unwrap() });
        assert_eq!(mirror.missing(&expected), BTreeSet::from([1]));
        assert!(mirror.is_latch_queued());

        mirror.apply(&Event::Delete { path: root.join("0").unwrap() });
        assert_eq!(mirror.missing(&expected), expected);
        assert_eq!(
            mirror.never_registered(&expected),
            BTreeSet::from([1]),
            "shard 0 was registered"
        );

        mirror.apply(&Event::Init);
        mirror.apply(&Event::InitDone);
        assert_eq!(mirror.never_registered(&expected), BTreeSet::new());
        assert!(!mirror.is_latch_queued());
    }
}
