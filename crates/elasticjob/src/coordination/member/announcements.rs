//! Decides which events about its shards a member sends to its owner, and remembers which it has sent. Pure.

use std::collections::BTreeSet;

use super::handle::MemberEvent;

/// The shards of this instance that its owner could act on now.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnShards {
    /// Fires can be claimed: we are connected, and the owners of all shards are certain and present.
    pub(super) is_ready: bool,
    /// Shards assigned to us.
    pub(super) assigned: BTreeSet<u32>,
    /// Our shards with a misfire mark.
    pub(super) misfired: BTreeSet<u32>,
}

/// The events that the member has sent to its owner. It sends another one only if something has changed.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    told: OwnShards,
}

impl Announcements {
    pub(super) fn update(&mut self, own_shards: OwnShards) -> Vec<MemberEvent> {
        let mut events = Vec::new();
        let told = &mut self.told;
        if own_shards.is_ready {
            // An assignment that is committed at once looks settled before and after. A fire that was due while a new shard of ours
            // belonged to another instance may not have run.
            if !told.is_ready || !own_shards.assigned.is_subset(&told.assigned) {
                events.push(MemberEvent::Ready);
            }
            told.assigned = own_shards.assigned;
        }
        told.is_ready = own_shards.is_ready;
        let misfired = if own_shards.is_ready { own_shards.misfired } else { BTreeSet::new() };
        if !misfired.is_subset(&told.misfired) {
            events.push(MemberEvent::Misfired);
        }
        told.misfired = misfired;
        events
    }

    pub(super) fn disconnected(&mut self) {
        self.told.is_ready = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_shards(assigned: &[u32], misfired: &[u32]) -> OwnShards {
        let set = |shards: &[u32]| shards.iter().copied().collect();
        OwnShards { is_ready: true, assigned: set(assigned), misfired: set(misfired) }
    }

    #[test]
    fn owner_is_told_that_it_is_ready_when_a_shard_is_new() {
        let mut announcements = Announcements::default();
        assert_eq!(announcements.update(own_shards(&[0, 1], &[])), [MemberEvent::Ready]);

        assert_eq!(announcements.update(own_shards(&[0], &[])), []);
        assert_eq!(announcements.update(own_shards(&[0, 1], &[])), [MemberEvent::Ready]);
    }

    #[test]
    fn owner_is_told_that_it_is_ready_again_after_an_outage() {
        let mut announcements = Announcements::default();
        announcements.update(own_shards(&[0], &[]));

        announcements.disconnected();
        assert_eq!(announcements.update(OwnShards::default()), []);
        assert_eq!(announcements.update(own_shards(&[0], &[])), [MemberEvent::Ready]);
    }

    #[test]
    fn misfire_is_told_once_and_only_when_ready() {
        let mut announcements = Announcements::default();
        let not_ready = OwnShards { is_ready: false, ..own_shards(&[], &[0]) };
        assert_eq!(announcements.update(not_ready), []);

        let ready = announcements.update(own_shards(&[0], &[0]));
        assert_eq!(ready, [MemberEvent::Ready, MemberEvent::Misfired]);
        assert_eq!(announcements.update(own_shards(&[0], &[0])), []);
    }
}
