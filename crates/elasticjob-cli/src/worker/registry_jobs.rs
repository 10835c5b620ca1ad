//! Jobs that are defined in the registry and in no file, by `elasticjob job apply` or a console.
//!
//! The namespace is listed when its children change, at most about once a second. New jobs are read; runnable jobs are not read again. Jobs that are
//! refused or of a kind that a worker cannot run are rechecked at longer intervals, since their configuration may have changed.
//!
//! Everyone who can write to the registry chooses how many names there are. So everything that grows with them is bounded: how often they are
//! listed, how many are read at a time, how many are run, and how many refusals are logged. The jobs that run are not affected.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    ops::Bound,
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
/// Jobs of the registry that one worker runs.
const MAX_RUNNABLE: usize = 10_000;
/// More names than this are not listed: the answer would be too long for a connection, which all jobs of the worker need.
const MAX_NAMES: usize = 200_000;
/// Pause after a listing that failed: if its answer was too long for the connection, the next one would be, too.
const FAILED_LISTING_PAUSE: Duration = Duration::from_secs(10);
/// New names that are read after one listing; the others follow after the next.
const MAX_NEW_READS: usize = 5_000;
/// Refused and foreign names that are rechecked after one listing, those first that have waited longest.
const MAX_RECHECKS: usize = 200;
/// For each so many names, a second passes before they are listed again.
const NAMES_PER_SECOND: usize = 10_000;
/// Refusals that are logged, each with its reason. Beyond that, only that there are more.
const MAX_LOGGED_REFUSALS: usize = 100;

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
    /// Not permitted; the reason was logged, or that there are too many.
    Refused {
        /// Hash of the reason, which may quote a long text, so that it is logged only once.
        reason: u64,
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
    /// As listed last.
    names: BTreeSet<JobName>,
    is_listed: bool,
    candidates: BTreeMap<JobName, Candidate>,
    /// Set while there are too many names; this was logged.
    has_too_many: bool,
    /// When the names are listed again.
    list_at: Option<Monotonic>,
    /// The new name that was read last. The next are read first, so that new names before it keep none behind it from being read.
    last_read: Option<JobName>,
    /// Number of runnable candidates.
    runnable: usize,
    /// Refusals that were logged.
    logged_refusals: usize,
}

impl RegistryJobs {
    /// The next refresh lists the namespace.
    pub(super) fn list_again(&mut self) {
        self.is_listed = false;
    }

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
        let now = SystemClock.monotonic();
        if !self.is_listed
            && self.list_at.is_none_or(|list_at| now >= list_at)
            && let Some(names) = self.list(registry, now).await?
        {
            self.list_at = Some(now + Duration::from_secs((names.len() / NAMES_PER_SECOND) as u64));
            self.names = names.iter().filter_map(|name| name.parse().ok()).collect();
            self.is_listed = true;
        }
        let names = std::mem::take(&mut self.names);
        self.candidates.retain(|name, _| names.contains(name) && !is_in_files(name));
        self.runnable = self.runnable().count();
        if self.refused() == 0 {
            self.logged_refusals = 0;
        }
        let due = self.due(&names, now, is_in_files, has_ended);
        self.names = names;
        for batch in due.chunks(MAX_CONCURRENT_READS) {
            let mut reads = JoinSet::new();
            for name in batch {
                reads.spawn(read(Arc::clone(registry), name.clone(), max_shards));
            }
            while let Some(read_result) = reads.join_next().await {
                let Ok((name, found)) = read_result else { continue };
                let is_new = !self.candidates.contains_key(&name);
                let candidate = match found {
                    // No access to this job; the others may still be readable.
                    Err(Error::NotAuthorised { .. }) => {
                        Candidate::Foreign { recheck_at: now + FOREIGN_RECHECK }
                    }
                    found => self.classify(&name, found?, permissions, now),
                };
                if is_new {
                    self.last_read = self.last_read.take().max(Some(name.clone()));
                }
                let is_runnable = matches!(candidate, Candidate::Runnable(_));
                let before = self.candidates.insert(name, candidate);
                if is_runnable && !matches!(before, Some(Candidate::Runnable(_))) {
                    self.runnable += 1;
                }
            }
        }
        Ok(())
    }

    /// The names in the namespace; `None` if there are too many.
    async fn list(
        &mut self,
        registry: &Arc<dyn Registry>,
        now: Monotonic,
    ) -> Result<Option<Vec<String>>, Error> {
        let namespace = registry.namespace().path();
        let count = registry.exists(namespace).await?.map_or(0, |stat| stat.children);
        let has_too_many = count > MAX_NAMES;
        if has_too_many && !self.has_too_many {
            tracing::error!(
                names = count,
                hint = "remove what is no job",
                "too many names in the namespace, new jobs of the registry are not looked for"
            );
        }
        self.has_too_many = has_too_many;
        self.list_at = Some(now + FAILED_LISTING_PAUSE);
        if has_too_many {
            return Ok(None);
        }
        Ok(Some(registry.children(namespace).await?.unwrap_or_default()))
    }

    /// The names to read now: those that ended by themselves, new ones, and some that are due for a recheck.
    fn due(
        &mut self,
        names: &BTreeSet<JobName>,
        now: Monotonic,
        is_in_files: impl Fn(&JobName) -> bool,
        has_ended: impl Fn(&JobName) -> bool,
    ) -> Vec<JobName> {
        let is_new = |name: &&JobName| !is_in_files(name) && !self.candidates.contains_key(*name);
        let first = self.last_read.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let behind = names.range((first, Bound::Unbounded)).filter(is_new).take(MAX_NEW_READS);
        let mut due: Vec<JobName> = behind.cloned().collect();
        if due.len() < MAX_NEW_READS {
            // From the beginning again.
            self.last_read = None;
            let rest = names.iter().filter(is_new).take(MAX_NEW_READS);
            let known: BTreeSet<JobName> = due.iter().cloned().collect();
            let rest = rest.filter(|name| !known.contains(*name));
            due.extend(rest.take(MAX_NEW_READS - known.len()).cloned());
        }
        let mut rechecks = Vec::new();
        for (name, candidate) in &self.candidates {
            match candidate {
                Candidate::Runnable(_) if has_ended(name) => due.push(name.clone()),
                Candidate::Runnable(_) => {}
                Candidate::Refused { recheck_at, .. } | Candidate::Foreign { recheck_at } => {
                    if *recheck_at <= now {
                        rechecks.push((*recheck_at, name));
                    }
                }
            }
        }
        rechecks.sort_unstable();
        due.extend(rechecks.into_iter().take(MAX_RECHECKS).map(|(_, name)| name.clone()));
        due
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
        &mut self,
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
            Ok(()) if self.has_room_for(name) => Ok(*job),
            Ok(()) => Err(format!(
                "this worker runs {MAX_RUNNABLE} jobs of the registry, and no more; hint: remove jobs, or use several namespaces"
            )),
            Err(refusal) => Err(refusal.to_string()),
        });
        let reason = match checked {
            Ok(job) => return Candidate::Runnable(Arc::new(RegistryJob { job, kind, created })),
            Err(reason) => reason,
        };
        let hash = hash(&reason);
        let is_logged = matches!(
            self.candidates.get(name),
            Some(Candidate::Refused { reason: logged, .. }) if *logged == hash
        );
        if !is_logged {
            self.log_refusal(name, &reason);
        }
        let recheck_at =
            now + if permissions.allows_any(&kind) { REFUSED_RECHECK } else { FOREIGN_RECHECK };
        Candidate::Refused { reason: hash, is_invalid, recheck_at }
    }

    /// Whether this worker may run the job, too. A job that it runs already keeps its room.
    fn has_room_for(&self, name: &JobName) -> bool {
        self.get(name).is_some() || self.runnable < MAX_RUNNABLE
    }

    fn log_refusal(&mut self, name: &JobName, reason: &str) {
        if self.logged_refusals < MAX_LOGGED_REFUSALS {
            tracing::warn!(job = %name, reason, "registry job refused");
        } else if self.logged_refusals == MAX_LOGGED_REFUSALS {
            let hint =
                "elasticjob_jobs_refused counts them; they are logged again once none is refused";
            tracing::warn!(hint, "too many registry jobs refused, further ones are not logged");
        }
        self.logged_refusals = self.logged_refusals.saturating_add(1);
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
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
