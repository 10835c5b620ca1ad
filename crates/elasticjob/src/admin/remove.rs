//! Removing a job, whole.
//!
//! Its tree and its pages of the ledger go in one transaction, so that nobody ever sees half a job, and a job of the same name that somebody
//! makes at the same time is either there before, and then something of the plan does not fit and it is looked at again, or after, and
//! then it is theirs. A tree too large for one transaction goes in several; the first takes the configuration, without which no
//! Rust instance writes, and each of the others makes sure that there is none.

use serde::Serialize;

use super::{
    door::Admin,
    error::AdminError,
    picture::Picture,
    switch::{committed, restless},
};
use crate::{
    job::JobName,
    registry::{Create, Expected, Op, Path},
};

/// How often it is looked at again when something changes meanwhile.
const TRIES: usize = 16;
/// How many nodes go in one transaction: a registry takes about a megabyte, and a path may be long.
const BATCH: usize = 2_000;

/// A job was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// How many nodes went, those of the ledger included.
    pub nodes: usize,
    /// Instances that were members: they see it and leave.
    pub instances: Vec<String>,
}

impl Admin {
    /// Removes a job: configuration, tree and ledger. Refused while instances are members, unless `force` says that they may lose it.
    pub async fn remove(&self, job: &JobName, force: bool) -> Result<Removed, AdminError> {
        let mut picture = self.picture(job).await?;
        if !picture.is_there() {
            return Err(self.no_such_job(job, false));
        }
        let mut removed = Removed { nodes: 0, instances: Vec::new() };
        for _ in 0..TRIES {
            let instances: Vec<String> = picture.ids().into_iter().collect();
            if !instances.is_empty() && !force {
                return Err(AdminError::refused(
                    format!("job {job} has instances: {}", instances.join(", ")),
                    "shut it down first, or force it",
                ));
            }
            removed.instances.extend(instances);
            removed.nodes += self.clear(&picture).await?;
            // Instances that were running may have written something since; Java does not look whether the job is still there.
            picture = self.picture(job).await?;
            if !picture.is_there() || (removed.nodes > 0 && picture.config_node().is_some()) {
                removed.instances.sort_unstable();
                removed.instances.dedup();
                return Ok(removed);
            }
        }
        Err(restless(job))
    }

    /// Deletes what the picture shows; says how many nodes, none if it is no longer so.
    async fn clear(&self, picture: &Picture) -> Result<usize, AdminError> {
        let plan = deletions(picture);
        let (first, rest) = plan.split_at(plan.len().min(BATCH));
        let mut first: Vec<Op> = first.to_vec();
        if !rest.is_empty() {
            // The gate goes first: nobody enters a job without instances' parent, and nobody writes without a configuration.
            first = gate(picture);
        }
        if !committed(self.registry.multi(first.clone()).await)? {
            return Ok(0);
        }
        if rest.is_empty() {
            return Ok(first.len());
        }
        let mut gone = first.len();
        let left: Vec<Op> = plan
            .into_iter()
            .filter(|op| !first.iter().any(|done| done.path() == op.path()))
            .collect();
        for batch in left.chunks(BATCH) {
            let config = picture.tree.config();
            let mut ops = batch.to_vec();
            if picture.has(picture.tree.root())
                && !batch.iter().any(|op| op.path() == picture.tree.root())
            {
                // That can only be done where there is none.
                ops.push(Op::Create(Create::persistent(&config, "")));
                ops.push(Op::Delete { path: config, expected: Expected::Any });
            }
            if !committed(self.registry.multi(ops).await)? {
                break;
            }
            gone += batch.len();
        }
        Ok(gone)
    }
}

/// Everything, children before parents; the configuration in the version that was seen.
fn deletions(picture: &Picture) -> Vec<Op> {
    // A path is smaller than those below it, so from the end on children come before parents.
    let ledger = picture.ledger.keys().rev().cloned().map(delete);
    let tree = picture.nodes.iter().rev().map(|(path, node)| {
        let is_config = *path == picture.tree.config();
        let expected = if is_config { Expected::Version(node.stat.version) } else { Expected::Any };
        Op::Delete { path: path.clone(), expected }
    });
    ledger.chain(tree).collect()
}

/// What keeps a job open: its configuration, and the place where instances enter.
fn gate(picture: &Picture) -> Vec<Op> {
    let instances = picture.tree.instances();
    let all = deletions(picture).into_iter();
    all.filter(|op| {
        *op.path() == picture.tree.config()
            || *op.path() == instances
            || op.path().below(&instances).is_some()
    })
    .collect()
}

fn delete(path: Path) -> Op {
    Op::Delete { path, expected: Expected::Any }
}
