//! The process behind an instance.
//!
//! An instance node says that a process takes part in a job; a console takes it away to shut the instance down, and the process goes on
//! until what it runs has ended. So every process also has an ephemeral node of its own, beside the ledger, that nobody else deletes: a Rust
//! instance is dead when both are gone. Java has no such node; with Java ids it takes a moment of absence instead, because Java deletes
//! and creates its instance node whenever it reconnects.

use super::tree::processes;
use crate::{
    job::InstanceId,
    registry::{Create, Error, Registry, SessionId, plant},
};

/// Says that this process lives, as long as its session does.
pub async fn announce(
    registry: &dyn Registry,
    id: &InstanceId,
    session: SessionId,
) -> Result<(), Error> {
    let invalid =
        |reason: String| Error::Invalid { path: registry.namespace().path().clone(), reason };
    let parent = processes(registry.namespace()).map_err(|error| invalid(error.to_string()))?;
    plant(registry, &parent).await?;
    let path = parent.join(id).map_err(|error| invalid(error.to_string()))?;
    match registry.create(Create::ephemeral(&path, "", session)).await {
        // Ids are new for every session, so it is our own: an answer was lost.
        Ok(_) | Err(Error::Exists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
