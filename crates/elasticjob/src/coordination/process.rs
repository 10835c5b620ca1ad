//! The process node of an instance, which shows whether its process is alive.
//!
//! An instance node shows that a process takes part in a job. A console deletes it to shut the instance down, and the process goes on until its
//! running shards have ended. So every process also has an ephemeral node of its own, beside the ledger, that no other client deletes: a Rust
//! instance is dead when both nodes are gone. Java has no such node. A Java instance counts as dead only after its instance node has been absent
//! for a grace period, because Java deletes and re-creates that node whenever it reconnects.

use super::tree::processes_path;
use crate::{
    job::InstanceId,
    registry::{Create, Error, ExpectedVersion, Op, Registry, SessionId, ensure_path},
};

/// Creates the process node of this instance. The node exists as long as the session.
pub async fn register(
    registry: &dyn Registry,
    id: &InstanceId,
    session: SessionId,
) -> Result<(), Error> {
    let invalid =
        |reason: String| Error::Invalid { path: registry.namespace().path().clone(), reason };
    let parent =
        processes_path(registry.namespace()).map_err(|error| invalid(error.to_string()))?;
    ensure_path(registry, &parent).await?;
    let path = parent.join(id).map_err(|error| invalid(error.to_string()))?;
    let create = Op::Create(Create::ephemeral(&path, "", session));
    // Only the answer to a set tells the registry's time.
    let set = Op::Set { path: path.clone(), data: "".into(), expected: ExpectedVersion::Any };
    match registry.multi(vec![create, set]).await {
        Ok(_) => Ok(()),
        // Instance ids are new for every session, so an existing node is this one's: the answer to an earlier create was lost.
        Err(Error::Operation { cause, .. }) if matches!(*cause, Error::Exists { .. }) => {
            touch(registry, id).await
        }
        Err(error) => Err(error),
    }
}

/// Writes the process node of this instance again: the answer tells the registry's time.
pub async fn touch(registry: &dyn Registry, id: &InstanceId) -> Result<(), Error> {
    let invalid =
        |reason: String| Error::Invalid { path: registry.namespace().path().clone(), reason };
    let parent =
        processes_path(registry.namespace()).map_err(|error| invalid(error.to_string()))?;
    let path = parent.join(id).map_err(|error| invalid(error.to_string()))?;
    registry.set(&path, "".into(), ExpectedVersion::Any).await?;
    Ok(())
}
