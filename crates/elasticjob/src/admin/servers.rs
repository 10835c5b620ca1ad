//! Servers: the machines that jobs run on, across jobs.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    door::Admin,
    error::AdminError,
    jobs::Presence,
    model::{ServerDetails, ServerJob, ServerStatus, ServerSummary},
};
use crate::{
    job::{JobName, server_of},
    registry::{Error, Expected, Op},
};

impl Admin {
    /// All servers of the namespace, by address.
    pub async fn servers(&self) -> Result<Vec<ServerSummary>, AdminError> {
        let mut servers: BTreeMap<String, Vec<ServerJob>> = BTreeMap::new();
        for presence in self.presences().await? {
            for address in addresses(&presence) {
                servers.entry(address.clone()).or_default().extend(on(&presence, &address));
            }
        }
        Ok(servers.into_iter().map(|(address, jobs)| summary(address, &jobs)).collect())
    }

    /// One server, job by job.
    pub async fn server(&self, address: &str) -> Result<ServerDetails, AdminError> {
        let presences = self.presences().await?;
        let jobs: Vec<ServerJob> =
            presences.iter().filter_map(|presence| on(presence, address)).collect();
        if jobs.is_empty() {
            return Err(self.no_such_server(address, None));
        }
        Ok(ServerDetails { summary: summary(address.to_owned(), &jobs), jobs })
    }

    /// Shuts down every instance of a job, as the ancestor does: its node is taken away, and it leaves. A Rust instance lets what it runs
    /// come to an end. Says whom.
    pub async fn shutdown(&self, job: &JobName) -> Result<Vec<String>, AdminError> {
        let ids = self.existing(job).await?.ids();
        self.end(job, ids.into_iter().collect()).await
    }

    /// The same for the instances on one server: of one job, or of all. Says whom, by job.
    pub async fn shutdown_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<BTreeMap<String, Vec<String>>, AdminError> {
        let mut ended = BTreeMap::new();
        for (job, place) in self.places(address, job).await? {
            let ids = self.end(&job, place.instances).await?;
            if !ids.is_empty() {
                ended.insert(job.to_string(), ids);
            }
        }
        Ok(ended)
    }

    /// The same for one instance: in one job, or in all it is a member of. Says whom, by job; an error if it is nowhere.
    pub async fn shutdown_instance(
        &self,
        id: &str,
        job: Option<&JobName>,
    ) -> Result<BTreeMap<String, Vec<String>>, AdminError> {
        let mut ended = BTreeMap::new();
        let places = match self.places(server_of(id), job).await {
            Err(AdminError::NotFound { .. }) => Vec::new(),
            places => places?,
        };
        for (job, place) in places {
            let ids = place.instances.into_iter().filter(|known| known == id).collect();
            let ids = self.end(&job, ids).await?;
            if !ids.is_empty() {
                ended.insert(job.to_string(), ids);
            }
        }
        if ended.is_empty() {
            let place = self.in_words(job);
            return Err(AdminError::NotFound {
                what: format!("there is no instance {id} in {place}"),
                hint: "list the instances".to_owned(),
            });
        }
        Ok(ended)
    }

    /// Forgets a server: in one job, or in all. Refused while an instance is on it: that would only bring it back. Says in which
    /// jobs.
    pub async fn remove_server(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<String>, AdminError> {
        let places = self.places(address, job).await?;
        let alive: Vec<String> = places
            .iter()
            .filter(|(_, place)| !place.instances.is_empty())
            .map(|(job, place)| format!("{} in {job}", place.instances.join(", ")))
            .collect();
        if !alive.is_empty() {
            return Err(AdminError::refused(
                format!("server {address} is in use: {}", alive.join("; ")),
                "shut it down first",
            ));
        }
        let mut removed = Vec::new();
        for (job, _) in places.into_iter().filter(|(_, place)| place.status.is_some()) {
            match self.registry.delete(&self.tree(&job)?.server(address), Expected::Any).await {
                Ok(_) => removed.push(job.to_string()),
                Err(Error::Absent { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(removed)
    }

    /// Where a server is, by job; an error if it is nowhere.
    pub(super) async fn places(
        &self,
        address: &str,
        job: Option<&JobName>,
    ) -> Result<Vec<(JobName, ServerJob)>, AdminError> {
        let presences = match job {
            Some(job) => {
                self.registry.sync().await?;
                vec![self.presence(job.clone()).await?]
            }
            None => self.presences().await?,
        };
        let places: Vec<(JobName, ServerJob)> = presences
            .iter()
            .filter_map(|presence| Some((presence.job.clone(), on(presence, address)?)))
            .collect();
        if places.is_empty() {
            return Err(self.no_such_server(address, job));
        }
        Ok(places)
    }

    async fn end(&self, job: &JobName, ids: Vec<String>) -> Result<Vec<String>, AdminError> {
        let tree = self.tree(job)?;
        let mut ended = Vec::new();
        for id in ids {
            let path = tree.instance(&id);
            match self.registry.multi(vec![Op::Delete { path, expected: Expected::Any }]).await {
                Ok(_) => ended.push(id),
                // It left by itself.
                Err(Error::Member { cause, .. }) if matches!(*cause, Error::Absent { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(ended)
    }

    /// Where something is looked for.
    fn in_words(&self, job: Option<&JobName>) -> String {
        match job {
            Some(job) => format!("job {job}"),
            None => self.registry.namespace().to_string(),
        }
    }

    fn no_such_server(&self, address: &str, job: Option<&JobName>) -> AdminError {
        let place = self.in_words(job);
        AdminError::NotFound {
            what: format!("there is no server {address} in {place}"),
            hint: "list the servers".to_owned(),
        }
    }
}

fn addresses(presence: &Presence) -> BTreeSet<String> {
    let named = presence.servers.iter().map(|(address, _)| address.clone());
    named.chain(presence.instances.iter().map(|id| server_of(id).to_owned())).collect()
}

/// A job on a server; nothing if it is not there.
fn on(presence: &Presence, address: &str) -> Option<ServerJob> {
    let status =
        presence.servers.iter().find(|(known, _)| known == address).map(|(_, status)| *status);
    let mut instances: Vec<String> =
        presence.instances.iter().filter(|id| server_of(id) == address).cloned().collect();
    instances.sort_unstable();
    if status.is_none() && instances.is_empty() {
        return None;
    }
    Some(ServerJob { job: presence.job.to_string(), status, instances })
}

fn summary(address: String, jobs: &[ServerJob]) -> ServerSummary {
    let instances: BTreeSet<&String> = jobs.iter().flat_map(|job| &job.instances).collect();
    ServerSummary {
        address,
        instances: instances.into_iter().cloned().collect(),
        jobs: jobs.iter().map(|job| job.job.clone()).collect(),
        disabled: jobs.iter().filter(|job| job.status == Some(ServerStatus::Disabled)).count(),
    }
}
