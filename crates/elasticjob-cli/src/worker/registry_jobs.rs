//! Jobs that are defined in the registry and in no file, by `elasticjob job apply` or a console.
//!
//! The namespace is listed about once a second. New jobs are read; runnable jobs are not read again. Jobs that are refused or of a kind that a
//! worker cannot run are rechecked at longer intervals, since their configuration may have changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    job::{Job, JobName, ShardLimit},
    registry::{Error, Registry, Zxid},
    runtime::{Clock, Monotonic, SystemClock},
};
use tokio::task::JoinSet;

use super::permissions::Permissions;
use elasticjob::problem::Problem;
use elasticjob_jobfile::Kind;

/// Interval at which refused jobs are rechecked; their configuration may have changed.
const REFUSED_RECHECK: Duration = Duration::from_secs(10);
/// The same for jobs that this worker can never run as they are: Java classes, Rust handlers, kinds without any permission.
const FOREIGN_RECHECK: Duration = Duration::from_mins(1);
const MAX_CONCURRENT_READS: usize = 64;

/// A job as defined in the registry.
#[derive(Debug, Clone)]
pub(super) struct RegistryJob {
    pub(super) job: Job,
    pub(super) kind: Kind,
    /// Creation zxid of its configuration; tells it from a later job of the same name.
    pub(super) created: Zxid,
}

/// What is known about one name in the namespace.
enum Candidate {
    Runnable(Arc<RegistryJob>),
    /// Not permitted; the reason was logged.
    Refused {
        reason: String,
        /// Its configuration cannot be read, or exceeds a bound.
        is_invalid: bool,
        recheck_at: Monotonic,
    },
    /// A Java class, a job of a Rust program, or no job.
    Foreign {
        recheck_at: Monotonic,
    },
}

/// The jobs of the namespace that are not in the files.
#[derive(Default)]
pub(super) struct RegistryJobs {
    candidates: BTreeMap<JobName, Candidate>,
}

impl RegistryJobs {
    /// Reads new jobs, and those due for a recheck. `is_in_files` names the jobs of the files, which are skipped; `has_ended` the jobs that ended by
    /// themselves and must be read again.
    pub(super) async fn refresh(
        &mut self,
        registry: &Arc<dyn Registry>,
        permissions: &Permissions,
        max_shards: ShardLimit,
        is_in_files: impl Fn(&JobName) -> bool,
        has_ended: impl Fn(&JobName) -> bool,
    ) -> Result<(), Error> {
        let names = registry.children(registry.namespace().path()).await?.unwrap_or_default();
        let names: BTreeSet<JobName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        self.candidates.retain(|name, _| names.contains(name) && !is_in_files(name));
        let now = SystemClock.monotonic();
        let due = names.into_iter().filter(|name| {
            !is_in_files(name)
                && match self.candidates.get(name) {
                    None => true,
                    Some(Candidate::Runnable(_)) => has_ended(name),
                    Some(
                        Candidate::Refused { recheck_at, .. } | Candidate::Foreign { recheck_at },
                    ) => *recheck_at <= now,
                }
        });
        let due: Vec<JobName> = due.collect();
        for batch in due.chunks(MAX_CONCURRENT_READS) {
            let mut reads = JoinSet::new();
            for name in batch {
                reads.spawn(read(Arc::clone(registry), name.clone(), max_shards));
            }
            while let Some(read_result) = reads.join_next().await {
                let Ok((name, found)) = read_result else { continue };
                let candidate = match found {
                    // No access to this job; the others may still be readable.
                    Err(Error::NotAuthorised { .. }) => {
                        Candidate::Foreign { recheck_at: now + FOREIGN_RECHECK }
                    }
                    found => self.classify(&name, found?, permissions, now),
                };
                self.candidates.insert(name, candidate);
            }
        }
        Ok(())
    }

    /// The jobs that this worker may run.
    pub(super) fn runnable(&self) -> impl Iterator<Item = (&JobName, &Arc<RegistryJob>)> {
        self.candidates.iter().filter_map(|(name, candidate)| match candidate {
            Candidate::Runnable(registry_job) => Some((name, registry_job)),
            Candidate::Refused { .. } | Candidate::Foreign { .. } => None,
        })
    }

    pub(super) fn get(&self, name: &JobName) -> Option<&Arc<RegistryJob>> {
        match self.candidates.get(name) {
            Some(Candidate::Runnable(registry_job)) => Some(registry_job),
            _ => None,
        }
    }

    /// Number of jobs that this worker may not run.
    pub(super) fn refused(&self) -> usize {
        self.candidates
            .values()
            .filter(|candidate| matches!(candidate, Candidate::Refused { .. }))
            .count()
    }

    /// Number of jobs whose configuration cannot be read, or exceeds a bound.
    pub(super) fn invalid(&self) -> usize {
        self.candidates
            .values()
            .filter(|candidate| matches!(candidate, Candidate::Refused { is_invalid: true, .. }))
            .count()
    }

    fn classify(
        &self,
        name: &JobName,
        found: StoredNode,
        permissions: &Permissions,
        now: Monotonic,
    ) -> Candidate {
        let (kind, read, created) = match found {
            StoredNode::Foreign => return Candidate::Foreign { recheck_at: now + FOREIGN_RECHECK },
            StoredNode::Job { kind, read, created } => (kind, read, created),
        };
        let is_invalid = read.is_err();
        let checked = read.and_then(|job| match permissions.check(&kind, &job) {
            Ok(()) => Ok(*job),
            Err(refusal) => Err(refusal.to_string()),
        });
        let reason = match checked {
            Ok(job) => return Candidate::Runnable(Arc::new(RegistryJob { job, kind, created })),
            Err(reason) => reason,
        };
        let is_logged = matches!(
            self.candidates.get(name),
            Some(Candidate::Refused { reason: logged, .. }) if *logged == reason
        );
        if !is_logged {
            tracing::warn!(job = %name, reason, "registry job refused");
        }
        let recheck_at =
            now + if permissions.allows_any(&kind) { REFUSED_RECHECK } else { FOREIGN_RECHECK };
        Candidate::Refused { reason, is_invalid, recheck_at }
    }
}

/// What is stored under a name of the namespace.
enum StoredNode {
    Foreign,
    Job { kind: Kind, read: Result<Box<Job>, String>, created: Zxid },
}

async fn read(
    registry: Arc<dyn Registry>,
    name: JobName,
    max_shards: ShardLimit,
) -> (JobName, Result<StoredNode, Error>) {
    let found = read_node(&*registry, &name, max_shards).await;
    (name, found)
}

async fn read_node(
    registry: &dyn Registry,
    name: &JobName,
    max_shards: ShardLimit,
) -> Result<StoredNode, Error> {
    let Ok(root) = registry.namespace().path().join(name.as_str()) else {
        return Ok(StoredNode::Foreign);
    };
    let Ok(config) = root.join("config") else { return Ok(StoredNode::Foreign) };
    let Some(node) = registry.get(&root).await? else { return Ok(StoredNode::Foreign) };
    let kind = match String::from_utf8_lossy(&node.data).trim() {
        script if script.eq_ignore_ascii_case("SCRIPT") => Kind::Script,
        http if http.eq_ignore_ascii_case("HTTP") => Kind::Http,
        _ => return Ok(StoredNode::Foreign),
    };
    // A job without configuration is being removed.
    let Some(node) = registry.get(&config).await? else { return Ok(StoredNode::Foreign) };
    let read = Job::read_within(max_shards, name, &node.data);
    let read = read.map(Box::new).map_err(|error| Problem::of(&error).to_string());
    Ok(StoredNode::Job { kind, read, created: node.stat.created })
}
