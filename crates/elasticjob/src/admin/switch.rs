//! Enabling and disabling: jobs, servers, shards.
//!
//! The ancestor keeps the switch of a job on its servers alone, and every server that starts is enabled. So a job is disabled in both places: on every
//! server, where Java sees it, and in the configuration, where those that come later find it and Rust obeys it at once.

use serde::Serialize;

use super::{door::Admin, error::AdminError, model::ServerStatus};
use crate::{
    coordination::tree::Part,
    job::JobName,
    registry::{Create, Error, Expected, Op},
};

/// How often it is tried again when the job changes meanwhile.
const TRIES: usize = 8;

/// A job was enabled or disabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Switched {
    /// Servers that were not so before.
    pub servers: Vec<String>,
    /// What became of the configuration.
    #[serde(rename = "config")]
    pub stored: Stored,
}

/// What became of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum Stored {
    /// It says so now.
    Written,
    /// It said so before.
    Same,
    /// It cannot be read, and was left as it is.
    Unreadable {
        /// Why.
        problem: String,
    },
}

impl Admin {
    /// Lets a job run again, everywhere.
    pub async fn enable(&self, job: &JobName) -> Result<Switched, AdminError> {
        self.switch(job, ServerStatus::Enabled).await
    }

    /// Lets a job run nowhere: not on the servers it has, and not on those that come. What runs comes to its end.
    pub async fn disable(&self, job: &JobName) -> Result<Switched, AdminError> {
        self.switch(job, ServerStatus::Disabled).await
    }

    /// Lets a server take part again, in one job or in all. Says in which jobs it was otherwise before.
    pub async fn enable_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        self.switch_server(address, job, ServerStatus::Enabled).await
    }

    /// Lets a server take part no longer, in one job or in all. Says in which jobs it was otherwise before.
    pub async fn disable_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        self.switch_server(address, job, ServerStatus::Disabled).await
    }

    /// Lets a shard run again. Says whether it was otherwise before.
    pub async fn enable_shard(&self, job: &JobName, shard: u32) -> Result<bool, AdminError> {
        let picture = self.existing_shard(job, shard).await?;
        match self.registry.delete(&picture.tree.shard(shard, Part::Disabled), Expected::Any).await
        {
            Ok(_) => Ok(true),
            Err(Error::Absent { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a shard run no longer. What runs comes to its end. Says whether it was otherwise before.
    pub async fn disable_shard(&self, job: &JobName, shard: u32) -> Result<bool, AdminError> {
        for _ in 0..TRIES {
            let picture = self.existing_shard(job, shard).await?;
            let tree = &picture.tree;
            let disabled = tree.shard(shard, Part::Disabled);
            if picture.has(&disabled) {
                return Ok(false);
            }
            let places = [tree.sharding(), tree.shard(shard, Part::Itself), disabled];
            let mut ops = vec![Op::Check { path: tree.config(), expected: Expected::Any }];
            let missing = places.iter().filter(|path| !picture.has(path));
            ops.extend(missing.map(|path| Op::Create(Create::persistent(path, ""))));
            if committed(self.registry.multi(ops).await)? {
                return Ok(true);
            }
        }
        Err(restless(job))
    }

    async fn existing_shard(
        &self,
        job: &JobName,
        shard: u32,
    ) -> Result<super::picture::Picture, AdminError> {
        let picture = self.existing(job).await?;
        let items = picture.items();
        if items.contains(&shard) {
            return Ok(picture);
        }
        Err(AdminError::invalid(
            format!("job {job} has no shard {shard}"),
            format!("its shards are 0 to {}", items.len().saturating_sub(1)),
        ))
    }

    async fn switch(&self, job: &JobName, to: ServerStatus) -> Result<Switched, AdminError> {
        for _ in 0..TRIES {
            let picture = self.existing(job).await?;
            let tree = &picture.tree;
            let mut ops = Vec::new();
            let version = picture.config_node().map(|node| node.stat.version).unwrap_or_default();
            let wanted = to == ServerStatus::Disabled;
            let stored = match picture.config() {
                Some(Ok(mut config)) if config.disabled != wanted => {
                    config.disabled = wanted;
                    let expected = Expected::Version(version);
                    ops.push(Op::Set {
                        path: tree.config(),
                        data: config.to_yaml().into(),
                        expected,
                    });
                    Stored::Written
                }
                Some(Err(error)) => Stored::Unreadable { problem: error.to_string() },
                _ => Stored::Same,
            };
            let servers = picture.servers().into_iter().filter(|server| server.status != to);
            let servers: Vec<String> = servers.map(|server| server.address).collect();
            ops.extend(servers.iter().map(|address| Op::Set {
                path: tree.server(address),
                data: word(to).into(),
                expected: Expected::Any,
            }));
            if ops.is_empty() || committed(self.registry.multi(ops).await)? {
                return Ok(Switched { servers, stored });
            }
        }
        Err(restless(job))
    }

    async fn switch_server(
        &self,
        address: &str,
        job: Option<&JobName>,
        to: ServerStatus,
    ) -> Result<Vec<String>, AdminError> {
        let mut switched = Vec::new();
        for (job, place) in self.places(address, job).await? {
            if place.status.is_none_or(|status| status == to) {
                continue;
            }
            let tree = self.tree(&job)?;
            let set = Op::Set {
                path: tree.server(address),
                data: word(to).into(),
                expected: Expected::Any,
            };
            let ops = vec![Op::Check { path: tree.config(), expected: Expected::Any }, set];
            // Refused when job or server have been removed: then there is nothing to switch.
            if committed(self.registry.multi(ops).await)? {
                switched.push(job.to_string());
            }
        }
        Ok(switched)
    }
}

fn word(status: ServerStatus) -> &'static str {
    match status {
        ServerStatus::Enabled => "ENABLED",
        ServerStatus::Disabled => "DISABLED",
    }
}

/// Whether it was done; false if what was seen is no longer so.
pub(super) fn committed<T>(result: Result<T, Error>) -> Result<bool, AdminError> {
    match result {
        Ok(_) => Ok(true),
        Err(Error::Member { cause, .. })
            if matches!(
                *cause,
                Error::Exists { .. }
                    | Error::Conflict { .. }
                    | Error::Absent { .. }
                    | Error::NotEmpty { .. }
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

pub(super) fn restless(job: &JobName) -> AdminError {
    AdminError::conflict(
        format!("job {job} changes faster than it can be read"),
        "do instances of two versions overwrite each other? try again",
    )
}
