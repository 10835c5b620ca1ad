//! Jobs that stand in the registry and in no file: `elasticjob job apply` put them there, or a console.
//!
//! The namespace is looked at about once a second; a job that is new is read, one that is known is not. What this worker may not run, and
//! what is nothing for it, is looked at again now and then: it may have become something else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    job::{Job, JobName},
    registry::{Error, Registry, Zxid},
    runtime::{Clock, Monotonic, SystemClock},
};
use tokio::task::JoinSet;

use super::rights::Rights;
use elasticjob_jobfile::Kind;

/// When something that may not run here is looked at again: it may have become something that may.
const REFUSED_AGAIN: Duration = Duration::from_secs(10);
/// The same for what never may as it is: a Java class, a Rust handler, a kind that this worker has no right to.
const FOREIGN_AGAIN: Duration = Duration::from_mins(1);
/// How many jobs are read at once.
const AT_ONCE: usize = 64;

/// A job as the registry has it.
#[derive(Debug, Clone)]
pub(super) struct Defined {
    pub(super) job: Job,
    pub(super) kind: Kind,
    /// Which one it is: one of the same name that is made later is another.
    pub(super) created: Zxid,
}

/// What is known of one name in the namespace.
enum Known {
    /// It may run here.
    Ours(Arc<Defined>),
    /// It may not, and that was said.
    Refused { why: String, again: Monotonic },
    /// It is a Java class, a Rust program's, or no job.
    Foreign { again: Monotonic },
}

/// What stands in the namespace.
#[derive(Default)]
pub(super) struct Registered {
    known: BTreeMap<JobName, Known>,
}

impl Registered {
    /// Looks once. `is_filed` says which names are the files', `has_ended` which jobs ended on their own and have to be looked at.
    pub(super) async fn look(
        &mut self,
        registry: &Arc<dyn Registry>,
        rights: &Rights,
        is_filed: impl Fn(&JobName) -> bool,
        has_ended: impl Fn(&JobName) -> bool,
    ) -> Result<(), Error> {
        let names = registry.children(registry.namespace().path()).await?.unwrap_or_default();
        let names: BTreeSet<JobName> = names.iter().filter_map(|name| name.parse().ok()).collect();
        self.known.retain(|name, _| names.contains(name) && !is_filed(name));
        let now = SystemClock.monotonic();
        let due = names.into_iter().filter(|name| {
            !is_filed(name)
                && match self.known.get(name) {
                    None => true,
                    Some(Known::Ours(_)) => has_ended(name),
                    Some(Known::Refused { again, .. } | Known::Foreign { again }) => *again <= now,
                }
        });
        let due: Vec<JobName> = due.collect();
        for batch in due.chunks(AT_ONCE) {
            let mut looks = JoinSet::new();
            for name in batch {
                looks.spawn(read(Arc::clone(registry), name.clone()));
            }
            while let Some(looked) = looks.join_next().await {
                let Ok((name, found)) = looked else { continue };
                let known = match found {
                    // It is somebody else's; the others are not.
                    Err(Error::NotAuthorised { .. }) => {
                        Known::Foreign { again: now + FOREIGN_AGAIN }
                    }
                    found => self.judge(&name, found?, rights, now),
                };
                self.known.insert(name, known);
            }
        }
        Ok(())
    }

    /// Those that may run here.
    pub(super) fn ours(&self) -> impl Iterator<Item = (&JobName, &Arc<Defined>)> {
        self.known.iter().filter_map(|(name, known)| match known {
            Known::Ours(defined) => Some((name, defined)),
            Known::Refused { .. } | Known::Foreign { .. } => None,
        })
    }

    /// This one.
    pub(super) fn get(&self, name: &JobName) -> Option<&Arc<Defined>> {
        match self.known.get(name) {
            Some(Known::Ours(defined)) => Some(defined),
            _ => None,
        }
    }

    /// How many are not run because this worker has no right to.
    pub(super) fn refused(&self) -> usize {
        self.known.values().filter(|known| matches!(known, Known::Refused { .. })).count()
    }

    fn judge(&self, name: &JobName, found: Found, rights: &Rights, now: Monotonic) -> Known {
        let (kind, read, created) = match found {
            Found::Foreign => return Known::Foreign { again: now + FOREIGN_AGAIN },
            Found::Job { kind, read, created } => (kind, read, created),
        };
        let judged = read.and_then(|job| match rights.may(&kind, &job) {
            Ok(()) => Ok(*job),
            Err(refusal) => Err(refusal.to_string()),
        });
        let why = match judged {
            Ok(job) => return Known::Ours(Arc::new(Defined { job, kind, created })),
            Err(why) => why,
        };
        let is_told =
            matches!(self.known.get(name), Some(Known::Refused { why: told, .. }) if *told == why);
        if !is_told {
            tracing::warn!(job = %name, why, "a job of the registry is not run here");
        }
        let again = now + if rights.has(&kind) { REFUSED_AGAIN } else { FOREIGN_AGAIN };
        Known::Refused { why, again }
    }
}

/// What stands under a name.
enum Found {
    Foreign,
    Job { kind: Kind, read: Result<Box<Job>, String>, created: Zxid },
}

async fn read(registry: Arc<dyn Registry>, name: JobName) -> (JobName, Result<Found, Error>) {
    let found = look_at(&*registry, &name).await;
    (name, found)
}

async fn look_at(registry: &dyn Registry, name: &JobName) -> Result<Found, Error> {
    let Ok(root) = registry.namespace().path().join(name.as_str()) else {
        return Ok(Found::Foreign);
    };
    let Ok(config) = root.join("config") else { return Ok(Found::Foreign) };
    let Some(node) = registry.get(&root).await? else { return Ok(Found::Foreign) };
    let kind = match String::from_utf8_lossy(&node.data).trim() {
        script if script.eq_ignore_ascii_case("SCRIPT") => Kind::Script,
        http if http.eq_ignore_ascii_case("HTTP") => Kind::Http,
        _ => return Ok(Found::Foreign),
    };
    // Without a configuration it is what is left of one that is being removed.
    let Some(node) = registry.get(&config).await? else { return Ok(Found::Foreign) };
    let read = Job::read(name, &node.data).map(Box::new).map_err(|error| error.to_string());
    Ok(Found::Job { kind, read, created: node.stat.created })
}
