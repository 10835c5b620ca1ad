//! One registry session of a node: connection, instance id, lease.

use std::{net::Ipv4Addr, sync::Arc};

use super::{
    clocked_registry::ClockedRegistry,
    identity::Identity,
    lease_keeper::{self, LeaseUsers},
    metered_registry::MeteredRegistry,
    schedule_clock::ScheduleClock,
};
use crate::{
    coordination::ephemerals::{MOST_CLAIMED, MOST_RESERVED},
    registry::{Combiner, Registry},
    runtime::Clock,
};

pub(super) type RegistryWrapper = Box<dyn Fn(Arc<dyn Registry>) -> Arc<dyn Registry> + Send + Sync>;

/// How many bytes of ephemeral paths one session may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    /// Jobs reserve up to here.
    pub(super) reserved: usize,
    /// Claims wait from here on.
    pub(super) claimed: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { reserved: MOST_RESERVED, claimed: MOST_CLAIMED }
    }
}

/// Makes the sessions of a node.
pub(super) struct SessionMaker {
    pub(super) wrap: RegistryWrapper,
    pub(super) schedule_clock: Arc<ScheduleClock>,
    pub(super) address: Ipv4Addr,
    pub(super) limits: SessionLimits,
}

impl SessionMaker {
    /// Puts together everything between a connection and the jobs that use it.
    pub(super) fn make(&self, connection: Arc<dyn Registry>) -> Arc<NodeSession> {
        let registry = (self.wrap)(connection);
        let clock = Arc::clone(&self.schedule_clock);
        let registry = Arc::new(ClockedRegistry { registry, clock });
        let meter = Arc::new(MeteredRegistry::new(registry, self.limits.claimed));
        let combiner = Combiner::new(Arc::clone(&meter) as Arc<dyn Registry>);
        Arc::new(NodeSession {
            registry: Arc::new(combiner),
            meter,
            identity: Identity::new(self.address),
            lease_users: LeaseUsers::default(),
        })
    }
}

/// One registry session of a node, and the sessions that replace it when it ends.
pub(super) struct NodeSession {
    pub(super) registry: Arc<dyn Registry>,
    /// What `registry` sends its requests through.
    pub(super) meter: Arc<MeteredRegistry>,
    pub(super) identity: Identity,
    /// The runs that need the lease.
    pub(super) lease_users: LeaseUsers,
}

impl NodeSession {
    /// Keeps the lease. Never returns.
    pub(super) fn keep_lease(
        &self,
        maker: &SessionMaker,
    ) -> impl Future<Output = ()> + Send + 'static + use<> {
        let clock = Arc::clone(&maker.schedule_clock) as Arc<dyn Clock>;
        lease_keeper::run(Arc::clone(&self.registry), clock, self.lease_users.clone())
    }
}
