//! The instance id of this process in its current session.

use std::net::Ipv4Addr;

use tokio::sync::Mutex;

use crate::{
    coordination::process,
    job::InstanceId,
    registry::{Error, Registry, SessionId},
    runtime::Randomness,
};

/// The instance id of this process. Every session gets a new one, so that no instance confuses this process with its own former session; all jobs of
/// a session share it.
pub(super) struct Identity {
    address: Ipv4Addr,
    current: Mutex<Option<(SessionId, InstanceId)>>,
}

impl Identity {
    pub(super) fn new(address: Ipv4Addr) -> Self {
        Self { address, current: Mutex::new(None) }
    }

    /// The newest id, and its session.
    pub(super) async fn newest(&self) -> Option<(SessionId, InstanceId)> {
        self.current.lock().await.clone()
    }

    /// The id in the current session; a new id is announced in the registry before it is returned.
    pub(super) async fn current(
        &self,
        registry: &dyn Registry,
        randomness: &dyn Randomness,
    ) -> Result<InstanceId, Error> {
        let mut current = self.current.lock().await;
        let session = registry.session().id();
        if let Some((known, id)) = &*current
            && *known == session
        {
            return Ok(id.clone());
        }
        let id = InstanceId::new(self.address, std::process::id(), randomness.bits() as u32);
        process::register(registry, &id, session).await?;
        *current = Some((session, id.clone()));
        Ok(id)
    }
}
