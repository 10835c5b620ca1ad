//! Queries about servers, the machines that jobs run on; shutting instances down and removing servers.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    error::AdminError,
    handle::Admin,
    jobs::Membership,
    model::{ServerDetails, ServerJob, ServerStatus, ServerSummary},
};
use crate::{
    job::{JobName, server_of},
    registry::{Error, ExpectedVersion, Op},
};

impl Admin {
    /// All servers of the namespace, sorted by address.
    pub async fn servers(&self) -> Result<Vec<ServerSummary>, AdminError> {
        let mut servers: BTreeMap<String, Vec<ServerJob>> = BTreeMap::new();
        for membership in self.memberships().await? {
            for address in addresses(&membership) {
                servers
                    .entry(address.clone())
                    .or_default()
                    .extend(job_on_server(&membership, &address));
            }
        }
        Ok(servers.into_iter().map(|(address, jobs)| summary(address, &jobs)).collect())
    }

    /// One server with its state in every job.
    pub async fn server(&self, address: &str) -> Result<ServerDetails, AdminError> {
        let memberships = self.memberships().await?;
        let jobs: Vec<ServerJob> = memberships
            .iter()
            .filter_map(|membership| job_on_server(membership, address))
            .collect();
        if jobs.is_empty() {
            return Err(self.no_such_server(address, None));
        }
        Ok(ServerDetails { summary: summary(address.to_owned(), &jobs), jobs })
    }

    /// Shuts down every instance of a job, as Java ElasticJob does: deletes its node, upon which it leaves. A Rust instance finishes what it is
    /// running first. Returns the ids of the instances.
    pub async fn shutdown(&self, job: &JobName) -> Result<Vec<String>, AdminError> {
        let ids = self.existing_job(job).await?.instance_ids();
        self.delete_instances(job, ids.into_iter().collect()).await
    }

    /// Shuts down the instances on one server, of one job or of all jobs. Returns their ids by job.
    pub async fn shutdown_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<BTreeMap<String, Vec<String>>, AdminError> {
        let mut deleted = BTreeMap::new();
        for (job, server_job) in self.server_jobs(address, job).await? {
            let ids = self.delete_instances(&job, server_job.instances).await?;
            if !ids.is_empty() {
                deleted.insert(job.to_string(), ids);
            }
        }
        Ok(deleted)
    }

    /// Shuts down one instance, in one job or in all its jobs. Returns its id by job; an error if no job has this instance.
    pub async fn shutdown_instance(
        &self,
        id: &str,
        job: Option<&JobName>,
    ) -> Result<BTreeMap<String, Vec<String>>, AdminError> {
        let mut deleted = BTreeMap::new();
        let server_jobs = match self.server_jobs(server_of(id), job).await {
            Err(AdminError::NotFound { .. }) => Vec::new(),
            server_jobs => server_jobs?,
        };
        for (job, server_job) in server_jobs {
            let ids = server_job.instances.into_iter().filter(|known| known == id).collect();
            let ids = self.delete_instances(&job, ids).await?;
            if !ids.is_empty() {
                deleted.insert(job.to_string(), ids);
            }
        }
        if deleted.is_empty() {
            let scope = self.scope(job);
            return Err(AdminError::NotFound {
                what: format!("there is no instance {id} in {scope}"),
                hint: "list the instances".to_owned(),
            });
        }
        Ok(deleted)
    }

    /// Deletes a server's entry, in one job or in all jobs. Refused while the server has an instance, which would only re-create the entry.
    /// Returns the names of the jobs.
    pub async fn remove_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        let server_jobs = self.server_jobs(address, job).await?;
        let alive: Vec<String> = server_jobs
            .iter()
            .filter(|(_, server_job)| !server_job.instances.is_empty())
            .map(|(job, server_job)| format!("{} in {job}", server_job.instances.join(", ")))
            .collect();
        if !alive.is_empty() {
            return Err(AdminError::refused(
                format!("server {address} is in use: {}", alive.join("; ")),
                "shut it down first",
            ));
        }
        let mut removed = Vec::new();
        for (job, _) in
            server_jobs.into_iter().filter(|(_, server_job)| server_job.status.is_some())
        {
            match self
                .registry
                .delete(&self.tree(&job)?.server(address), ExpectedVersion::Any)
                .await
            {
                Ok(_) => removed.push(job.to_string()),
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }

    /// The jobs that know a server, or the given job; an error if there is none.
    pub(super) async fn server_jobs(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<(JobName, ServerJob)>, AdminError> {
        let memberships = match job {
            Some(job) => {
                self.registry.sync().await?;
                vec![self.membership(job.clone()).await?]
            }
            None => self.memberships().await?,
        };
        let server_jobs: Vec<(JobName, ServerJob)> = memberships
            .iter()
            .filter_map(|membership| {
                Some((membership.job.clone(), job_on_server(membership, address)?))
            })
            .collect();
        if server_jobs.is_empty() {
            return Err(self.no_such_server(address, job));
        }
        Ok(server_jobs)
    }

    async fn delete_instances(
        &self,
        job: &JobName,
        ids: Vec<String>,
    ) -> Result<Vec<String>, AdminError> {
        let tree = self.tree(job)?;
        let mut deleted = Vec::new();
        for id in ids {
            let path = tree.instance(&id);
            match self
                .registry
                .multi(vec![Op::Delete { path, expected: ExpectedVersion::Any }])
                .await
            {
                Ok(_) => deleted.push(id),
                // The instance has left already.
                Err(Error::Operation { cause, .. }) if matches!(*cause, Error::NotFound { .. }) => {
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(deleted)
    }

    /// The place that was searched, for error messages.
    fn scope(&self, job: Option<&JobName>) -> String {
        match job {
            Some(job) => format!("job {job}"),
            None => self.registry.namespace().to_string(),
        }
    }

    fn no_such_server(&self, address: &str, job: Option<&JobName>) -> AdminError {
        let scope = self.scope(job);
        AdminError::NotFound {
            what: format!("there is no server {address} in {scope}"),
            hint: "list the servers".to_owned(),
        }
    }
}

fn addresses(membership: &Membership) -> BTreeSet<String> {
    let named = membership.servers.iter().map(|(address, _)| address.clone());
    named.chain(membership.instances.iter().map(|id| server_of(id).to_owned())).collect()
}

/// The state of a server in one job; none if the job does not know the server.
fn job_on_server(membership: &Membership, address: &str) -> Option<ServerJob> {
    let status =
        membership.servers.iter().find(|(known, _)| known == address).map(|(_, status)| *status);
    let mut instances: Vec<String> =
        membership.instances.iter().filter(|id| server_of(id) == address).cloned().collect();
    instances.sort_unstable();
    if status.is_none() && instances.is_empty() {
        return None;
    }
    Some(ServerJob { job: membership.job.to_string(), status, instances })
}

fn summary(address: String, jobs: &[ServerJob]) -> ServerSummary {
    let instances: BTreeSet<&String> = jobs.iter().flat_map(|job| &job.instances).collect();
    ServerSummary::new(
        address,
        instances.into_iter().cloned().collect(),
        jobs.iter().map(|job| job.job.clone()).collect(),
        jobs.iter().filter(|job| job.status == Some(ServerStatus::Disabled)).count(),
    )
}
