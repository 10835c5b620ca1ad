//! Who this process is, in its present session.

use std::net::Ipv4Addr;

use tokio::sync::Mutex;

use crate::{
    coordination::process,
    job::InstanceId,
    registry::{Error, Registry, SessionId},
    runtime::Randomness,
};

/// Who this process is. Every session has a new name, so that nobody takes us for our own ghost; all jobs of a session share it.
pub(super) struct Identity {
    address: Ipv4Addr,
    present: Mutex<Option<(SessionId, InstanceId)>>,
}

impl Identity {
    pub(super) fn new(address: Ipv4Addr) -> Self {
        Self { address, present: Mutex::new(None) }
    }

    /// Our name in the present session, announced to everybody.
    pub(super) async fn now(
        &self,
        registry: &dyn Registry,
        randomness: &dyn Randomness,
    ) -> Result<InstanceId, Error> {
        let mut present = self.present.lock().await;
        let session = registry.session().id();
        if let Some((known, id)) = &*present
            && *known == session
        {
            return Ok(id.clone());
        }
        let id = InstanceId::new(self.address, std::process::id(), randomness.bits() as u32);
        process::announce(registry, &id, session).await?;
        *present = Some((session, id.clone()));
        Ok(id)
    }
}
