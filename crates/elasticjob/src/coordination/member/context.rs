//! What a member works with and what never changes while it lives.

use std::sync::Arc;

use bytes::Bytes;
use futures_channel::mpsc as queue;

use super::{busy_shards::BusyShards, handle::MemberEvent};
use crate::{
    coordination::{flaw::Flaws, sharding::CustomStrategies, tree::JobTree},
    job::{InstanceId, ShardLimit},
    registry::{Registry, Session},
    runtime::{Clock, Randomness},
};

pub(super) struct Context {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) strategies: CustomStrategies,
    pub(super) flaws: Flaws,
    pub(super) shard_limit: ShardLimit,
    pub(super) own_id: InstanceId,
    /// What our instance node holds.
    pub(super) own_document: Bytes,
    /// The session the instance joined in. Everything it writes names this session, even if the registry has begun another one.
    pub(super) session: Session,
    pub(super) tree: JobTree,
    pub(super) busy: BusyShards,
    pub(super) events: queue::UnboundedSender<MemberEvent>,
}

impl Context {
    /// Sends an event to the owner of the member. An owner that has stopped listening needs none.
    pub(super) fn send(&self, event: MemberEvent) {
        let _ = self.events.unbounded_send(event);
    }
}
