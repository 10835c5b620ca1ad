//! `elasticjob run --observe`: logs what happens in a namespace without taking part in it.
//!
//! ```text
//!   registry ── watch ──▶ changed path ──▶ mark of a shard: logged when it appears and disappears
//!                              │
//!                              └──▶ configuration, instances, leader, owners: read again, differences are logged
//!   clock ──▶ fires
//! ```
//!
//! The observer joins nothing and writes nothing: it has a session but no nodes, and only reads. So it can run beside Java instances and show that it
//! sees what they do: shard assignment, fires, runs, misfires and failovers. Java writes marks of a run only if the job has `monitorExecution`.

mod observed_job;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    admin::{Admin, AdminError, ConfigChange, Edit},
    job::{Handler, JobName, ShardLimit},
    registry::{Event, Path, Registry, RegistryUrl},
    runtime::{Clock, SystemClock},
};
use jiff::Timestamp;

use self::observed_job::{Observation, ObservedJob, ShardMark};
use crate::{error::Error, stop_signals::StopSignals, worker::retry_connect};
use elasticjob_jobfile::{Entry, Kind};

/// Upper bound of a sleep, since the system clock may be set meanwhile.
const MAX_SLEEP: Duration = Duration::from_secs(10);

pub(crate) struct Observer {
    pub(crate) registry: RegistryUrl,
    /// The jobs to observe; all jobs of the namespace if empty.
    pub(crate) entries: Vec<Entry>,
    /// How long to retry at the start while the registry is unreachable.
    pub(crate) connect_timeout: Duration,
    /// How many shards a job may have.
    pub(crate) max_shards: ShardLimit,
}

impl Observer {
    /// Logs what happens until SIGINT or SIGTERM.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let mut stop = StopSignals::new()?;
        let url = &self.registry;
        let registry = tokio::select! {
            registry = retry_connect(url, self.connect_timeout, async || {
                Ok(elasticjob::registry::connect_read_only(url).await?)
            }) => registry?,
            () = stop.next() => return Ok(()),
        };
        let admin = Admin::new(Arc::clone(&registry)).max_shards(self.max_shards);
        self.log_differences(&admin).await;
        let filter = self.entries.iter().map(|entry| entry.job.name.clone()).collect();
        let mut observer = NamespaceObserver { admin, filter, jobs: BTreeMap::new() };
        let outcome = tokio::select! {
            outcome = observer.run(&*registry) => outcome,
            () = stop.next() => Ok(()),
        };
        tracing::info!("observer stopped");
        registry.close().await;
        outcome
    }

    /// Logs how the files differ from the registry, as a worker with these files would have to resolve.
    async fn log_differences(&self, admin: &Admin) {
        for Entry { job, kind, location } in &self.entries {
            let handler = match kind {
                Kind::Script => Handler::Script,
                Kind::Http => Handler::Http,
                Kind::Java(class) => Handler::Code { java_class: Some(class.clone()) },
            };
            match admin.plan(Edit::new(job.clone()).handler(handler)).await {
                Ok(plan) => match plan.change {
                    ConfigChange::New => {
                        tracing::warn!(job = %job.name, %location, "job is in the files but not in the registry");
                    }
                    ConfigChange::Changed(differences) => {
                        for difference in differences {
                            tracing::warn!(job = %job.name, %difference, "stored configuration overrides the files");
                        }
                    }
                    ConfigChange::Same => {}
                },
                Err(error) => {
                    let error = Error::from(error).line();
                    tracing::warn!(job = %job.name, error, "cannot compare files with the registry");
                }
            }
        }
    }
}

/// The state of all observed jobs of a namespace.
struct NamespaceObserver {
    admin: Admin,
    filter: BTreeSet<JobName>,
    jobs: BTreeMap<JobName, ObservedJob>,
}

impl NamespaceObserver {
    async fn run(&mut self, registry: &dyn Registry) -> Result<(), Error> {
        let namespace = registry.namespace().path().clone();
        let mut watch = registry.watch(&namespace).await?;
        tracing::info!(%namespace, "observing without joining");
        loop {
            let event = tokio::select! {
                event = watch.next() => match event {
                    Some(event) => Some(event),
                    None => return Ok(()),
                },
                () = self.wait_for_fire() => None,
            };
            let more = std::iter::from_fn(|| watch.try_next());
            let changed: BTreeSet<JobName> = event
                .into_iter()
                .chain(more)
                .filter_map(|event| self.handle_event(&event, &namespace))
                .collect();
            for job in changed {
                // A job that cannot be read now is read again at its next change.
                if let Err(error) = self.refresh(&job).await {
                    tracing::debug!(%job, %error, "cannot read job");
                }
            }
        }
    }

    /// Logs an event that is about a mark. Returns the job that must be read again because of any other event.
    fn handle_event(&mut self, event: &Event, namespace: &Path) -> Option<JobName> {
        let (path, is_present, is_news) = match event {
            Event::InitApply { path, .. } => (path, true, false),
            Event::Apply { path } => (path, true, true),
            Event::Delete { path } => (path, false, true),
            Event::Init => {
                // Marks that disappeared while the watch was interrupted are not logged.
                self.jobs.values_mut().for_each(ObservedJob::clear_marks);
                return None;
            }
            Event::InitDone => return None,
        };
        let (name, rest) = match path.relative_to(namespace)?.split_once('/') {
            Some((name, rest)) => (name, rest),
            None => (path.relative_to(namespace)?, ""),
        };
        let name: JobName = name.parse().ok()?;
        if !self.filter.is_empty() && !self.filter.contains(&name) {
            return None;
        }
        match ShardMark::at(rest) {
            Some(mark) => {
                let observed = self.jobs.entry(name.clone()).or_default();
                if let Some(observation) = observed.mark(mark, is_present, is_news) {
                    log(&name, &observation);
                }
                None
            }
            None => observed_job::is_relevant(rest).then_some(name),
        }
    }

    async fn refresh(&mut self, job: &JobName) -> Result<(), AdminError> {
        let details = match self.admin.job(job).await {
            Ok(details) => details,
            Err(AdminError::NotFound { .. }) => {
                if self.jobs.remove(job).is_some_and(|observed| observed.is_known()) {
                    log(job, &Observation::new("job removed"));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let shards = self.admin.shards(job).await?;
        let observed = self.jobs.entry(job.clone()).or_default();
        for observation in observed.refresh(&details, &shards) {
            log(job, &observation);
        }
        Ok(())
    }

    /// Waits for the next fire and logs it.
    async fn wait_for_fire(&mut self) {
        let now = SystemClock.now();
        let next = self.jobs.values().filter_map(ObservedJob::next_fire).min();
        let sleep = next.map_or(MAX_SLEEP, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or_default().min(MAX_SLEEP)
        });
        SystemClock.sleep_until(SystemClock.monotonic() + sleep).await;
        let now: Timestamp = SystemClock.now();
        for (job, observed) in &mut self.jobs {
            if let Some(observation) = observed.take_fire(now) {
                log(job, &observation);
            }
        }
    }
}

fn log(job: &JobName, observation: &Observation) {
    tracing::info!(
        %job,
        shard = observation.shard,
        instance = observation.instance.as_deref(),
        detail = observation.detail.as_deref(),
        "{}",
        observation.message
    );
}
