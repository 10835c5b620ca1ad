//! What a worker should run, and what is done until it does.
//!
//! ```text
//!   files ─────┐ what is wanted        what runs ──▶ join | say something else | leave (and prune)
//!              ├──────────────▶ compare ──▲             │
//!   registry ──┘                          └─────────────┘ one thing at a time for each job
//! ```
//!
//! Nothing is decided by an edge: whenever something has changed, or something that was begun has come to its end, what is wanted is compared with
//! what runs. A job of the files comes before one of the same name in the registry.
//!
//! A job that has vanished from the files is left: what runs of it may finish, and it stays in the registry, for others and, if the rights of
//! this worker allow it, for this one. With `--prune` it is removed from the registry, too, by the last one that leaves it: never while somebody is a
//! member.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    admin::{Admin, AdminError},
    execution::Listener,
    job::JobName,
    node::{JoinError, NodeError, NodeJob, Running},
    registry::{self, Zxid},
    runtime::{Clock, Monotonic, SystemClock},
};
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

use super::{
    defined::{Defined, Registered},
    files::Files,
    metrics::Metrics,
    rights::Rights,
};
use crate::error::Error;
use elasticjob_jobfile::{Entry, Kind};

/// How often files and registry are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long after a job could not be joined it is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// How jobs become work of this worker.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) rights: Rights,
    pub(super) metrics: Arc<Metrics>,
    /// Jobs that vanish from the files are removed from the registry.
    pub(super) prune: bool,
}

impl Terms {
    /// A job of a file.
    pub(super) fn filed(&self, entry: &Entry) -> Option<NodeJob> {
        self.hire(entry.job.clone(), &entry.kind)
    }

    fn hire(&self, job: elasticjob::Job, kind: &Kind) -> Option<NodeJob> {
        let job = match kind {
            Kind::Script => NodeJob::script(job),
            Kind::Http => NodeJob::http(job),
            Kind::Java(_) => return None,
        };
        let metrics = Arc::clone(&self.metrics) as Arc<dyn Listener>;
        Some(job.only_if(self.rights.permit(kind)).listener(metrics))
    }
}

/// A job as it should run.
#[derive(Debug, Clone)]
enum Wanted {
    Filed(Arc<Entry>),
    Defined(Arc<Defined>),
}

/// How one wanted job is to another that runs.
#[derive(Debug, PartialEq, Eq)]
enum Change {
    Same,
    /// The same job, which the file describes otherwise.
    Revised,
    Another,
}

impl Wanted {
    fn kind(&self) -> &Kind {
        match self {
            Self::Filed(entry) => &entry.kind,
            Self::Defined(defined) => &defined.kind,
        }
    }

    fn change_to(&self, new: &Self) -> Change {
        match (self, new) {
            (Self::Filed(old), Self::Filed(new)) if old.kind == new.kind => {
                if old.job == new.job {
                    Change::Same
                } else {
                    Change::Revised
                }
            }
            // What it says is the registry's own business: the member follows it.
            (Self::Defined(old), Self::Defined(new))
                if (&old.kind, old.created) == (&new.kind, new.created) =>
            {
                Change::Same
            }
            _ => Change::Another,
        }
    }
}

/// How a job stands here.
enum Place {
    /// Something is being done about it.
    Busy,
    /// It is joined; if what it is could not be settled with the registry, that is tried again.
    Runs { wanted: Wanted, again: Option<Monotonic> },
    /// It could not be joined.
    Failed { wanted: Wanted, again: Monotonic },
}

/// What was done.
enum Done {
    Joined {
        wanted: Wanted,
        failed: Option<NodeError>,
    },
    Revised {
        wanted: Wanted,
        failed: Option<NodeError>,
    },
    /// It stays in the registry, although it was to be removed: this one.
    Left {
        kept: Option<Zxid>,
    },
}

/// What a worker should run, and what it runs.
pub(super) struct Crew {
    running: Arc<Running>,
    terms: Terms,
    files: Option<Files>,
    /// Whether it was said that the files are wrong.
    is_wrong: bool,
    described: BTreeMap<JobName, Arc<Entry>>,
    registered: Registered,
    /// Jobs that this worker wanted to be gone, and others still run: it does not join them again.
    pruned: BTreeMap<JobName, Zxid>,
    places: BTreeMap<JobName, Place>,
    /// What went wrong with a job, as it was said last.
    told: BTreeMap<JobName, String>,
    doing: JoinSet<(JobName, Done)>,
}

impl Crew {
    /// Of a node that runs these jobs of the files already.
    pub(super) fn new(
        running: Arc<Running>,
        terms: Terms,
        files: Option<Files>,
        entries: Vec<Entry>,
    ) -> Self {
        let described: BTreeMap<JobName, Arc<Entry>> =
            entries.into_iter().map(|entry| (entry.job.name.clone(), Arc::new(entry))).collect();
        let places = described
            .iter()
            .map(|(name, entry)| {
                let wanted = Wanted::Filed(Arc::clone(entry));
                (name.clone(), Place::Runs { wanted, again: None })
            })
            .collect();
        Self {
            running,
            terms,
            files,
            is_wrong: false,
            described,
            registered: Registered::default(),
            pruned: BTreeMap::new(),
            places,
            told: BTreeMap::new(),
            doing: JoinSet::new(),
        }
    }

    /// Keeps the node as it should be, until `stop`. What was begun then is still to be [finished](Crew::finish).
    pub(super) async fn run(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return,
                Some(done) = self.doing.join_next() => {
                    if let Ok((name, done)) = done {
                        self.note(name, done);
                    }
                }
                // Nothing is lost when it is dropped half way: everything is looked at again.
                () = async {
                    ticks.tick().await;
                    look(&mut self.files, &mut self.is_wrong, &mut self.described, &self.terms.rights).await;
                    let (running, described) = (&self.running, &self.described);
                    let looked = self.registered.look(
                        running.registry(),
                        &self.terms.rights,
                        |name| described.contains_key(name),
                        |name| running.has_ended(name),
                    );
                    // An outage is told by those who have something to do.
                    if let Err(error) = looked.await {
                        tracing::debug!(%error, "cannot look for jobs in the registry");
                    }
                } => {}
            }
            self.compare();
        }
    }

    /// Waits for what was begun.
    pub(super) async fn finish(mut self) {
        while self.doing.join_next().await.is_some() {}
    }

    /// Begins what has to be done so that what runs is what is wanted.
    fn compare(&mut self) {
        self.terms.metrics.refuses(self.registered.refused());
        let now = SystemClock.monotonic();
        let names = self.described.keys().chain(self.places.keys());
        let names = names.chain(self.registered.ours().map(|(name, _)| name));
        let names: BTreeSet<JobName> = names.cloned().collect();
        for name in names {
            let wanted = self.wanted(&name);
            match (self.places.get(&name), wanted) {
                (Some(Place::Busy), _) | (None, None) => {}
                (None, Some(wanted)) => self.join(name, wanted),
                (Some(Place::Runs { wanted: Wanted::Filed(_), .. }), new)
                    if self.terms.prune && !matches!(new, Some(Wanted::Filed(_))) =>
                {
                    self.leave(name, true);
                }
                (Some(Place::Runs { .. }), None) => self.leave(name, false),
                (Some(Place::Runs { wanted: old, again }), Some(new)) => {
                    match old.change_to(&new) {
                        Change::Same if again.is_none_or(|again| again > now) => {}
                        Change::Same => self.revise(name, new),
                        Change::Revised if !self.running.has_ended(&name) => self.revise(name, new),
                        // It is joined when it is left.
                        Change::Revised | Change::Another => self.leave(name, false),
                    }
                }
                (Some(Place::Failed { .. }), None) => {
                    self.places.remove(&name);
                    self.told.remove(&name);
                }
                (Some(Place::Failed { wanted: old, again }), Some(new)) => {
                    if *again <= now || old.change_to(&new) != Change::Same {
                        self.join(name, new);
                    }
                }
            }
        }
    }

    fn wanted(&self, name: &JobName) -> Option<Wanted> {
        if let Some(entry) = self.described.get(name) {
            return Some(Wanted::Filed(Arc::clone(entry)));
        }
        let defined = self.registered.get(name)?;
        let is_pruned = self.pruned.get(name).is_some_and(|created| *created == defined.created);
        (!is_pruned).then(|| Wanted::Defined(Arc::clone(defined)))
    }

    fn join(&mut self, name: JobName, wanted: Wanted) {
        let job = match &wanted {
            Wanted::Filed(entry) => self.terms.filed(entry),
            Wanted::Defined(defined) => {
                let job = self.terms.hire(defined.job.clone(), &defined.kind);
                job.map(NodeJob::from_registry)
            }
        };
        let Some(job) = job else { return };
        self.places.insert(name.clone(), Place::Busy);
        self.terms.metrics.add(&name);
        let running = Arc::clone(&self.running);
        self.doing.spawn(async move {
            let failed = running.add(job).await.err();
            (name, Done::Joined { wanted, failed })
        });
    }

    fn revise(&mut self, name: JobName, wanted: Wanted) {
        let Wanted::Filed(entry) = &wanted else { return };
        let (running, job) = (Arc::clone(&self.running), entry.job.clone());
        self.places.insert(name.clone(), Place::Busy);
        self.doing.spawn(async move {
            let failed = running.revise(job).await.err();
            (name, Done::Revised { wanted, failed })
        });
    }

    fn leave(&mut self, name: JobName, prune: bool) {
        let running = Arc::clone(&self.running);
        self.places.insert(name.clone(), Place::Busy);
        tracing::info!(job = %name, "the job is left: what runs of it may finish");
        self.doing.spawn(async move {
            running.remove(&name).await;
            let kept = if prune { prune_away(&running, &name).await } else { None };
            (name, Done::Left { kept })
        });
    }

    fn note(&mut self, name: JobName, done: Done) {
        match done {
            Done::Joined { wanted, failed: None } => {
                let from = match &wanted {
                    Wanted::Filed(_) => "the files",
                    Wanted::Defined(_) => "the registry",
                };
                tracing::info!(job = %name, kind = %wanted.kind(), from, "the job is joined");
                self.told.remove(&name);
                self.places.insert(name, Place::Runs { wanted, again: None });
            }
            Done::Joined { failed: Some(failed), .. } if is_gone(&failed) => {
                // It was removed before we came: the next look does not find it.
                self.terms.metrics.remove(&name);
                self.places.remove(&name);
            }
            Done::Joined { wanted, failed: Some(failed) } => {
                self.terms.metrics.remove(&name);
                self.tell(&name, failed, "cannot be joined");
                let again = SystemClock.monotonic() + AGAIN;
                self.places.insert(name, Place::Failed { wanted, again });
            }
            Done::Revised { wanted, failed } => {
                let mut again = None;
                match failed {
                    None => {
                        tracing::info!(job = %name, "the job is described otherwise");
                        self.told.remove(&name);
                    }
                    // The member hears of that by itself.
                    Some(failed) if is_gone(&failed) => {}
                    Some(failed) => {
                        self.tell(&name, failed, "runs as it did");
                        again = Some(SystemClock.monotonic() + AGAIN);
                    }
                }
                self.places.insert(name, Place::Runs { wanted, again });
            }
            Done::Left { kept } => {
                tracing::info!(job = %name, "the job has been left");
                self.terms.metrics.remove(&name);
                self.told.remove(&name);
                self.places.remove(&name);
                if let Some(kept) = kept {
                    self.pruned.insert(name, kept);
                }
            }
        }
    }

    /// Says what went wrong with a job, once.
    fn tell(&mut self, name: &JobName, failed: NodeError, so: &str) {
        let error = Error::from(failed).line();
        if self.told.get(name) != Some(&error) {
            tracing::error!(job = %name, error, so, "what is wanted of the job does not work; it is tried again");
            self.told.insert(name.clone(), error);
        }
    }
}

/// Looks at the files; says once that they are wrong, and once that they are not any more.
async fn look(
    files: &mut Option<Files>,
    is_wrong: &mut bool,
    described: &mut BTreeMap<JobName, Arc<Entry>>,
    rights: &Rights,
) {
    let Some(files) = files else { return };
    match files.look().await {
        None => {}
        Some(Ok(entries)) => {
            if *is_wrong {
                tracing::info!("the files are good again");
            }
            *is_wrong = false;
            tracing::info!(jobs = entries.len(), "the files have changed");
            rights.files_say(&entries);
            *described = entries
                .into_iter()
                .map(|entry| (entry.job.name.clone(), Arc::new(entry)))
                .collect();
        }
        Some(Err(error)) => {
            *is_wrong = true;
            tracing::error!(
                error = error.line(),
                "the files cannot be used: what they said before goes on"
            );
        }
    }
}

fn is_gone(error: &NodeError) -> bool {
    match error {
        NodeError::Join(JoinError::Gone { .. }) => true,
        NodeError::Join(JoinError::Registry {
            source: registry::Error::Member { cause, .. },
            ..
        }) => matches!(**cause, registry::Error::Absent { .. }),
        _ => false,
    }
}

/// Removes a job that this worker has left, unless others are members. If they are: which one it is that stays.
async fn prune_away(running: &Running, name: &JobName) -> Option<Zxid> {
    let registry = running.registry();
    let config = registry.namespace().path().join(format!("{name}/config")).ok()?;
    let created = registry.exists(&config).await.ok().flatten().map(|stat| stat.created);
    match Admin::on(Arc::clone(registry)).remove(name, false).await {
        Ok(removed) => {
            tracing::info!(job = %name, nodes = removed.nodes, "the job is removed from the registry");
            None
        }
        Err(AdminError::NotFound { .. }) => None,
        Err(AdminError::Refused { problem, .. }) => {
            tracing::info!(job = %name, problem, "the job stays in the registry: others run it");
            created
        }
        Err(error) => {
            let error = Error::from(error).line();
            tracing::error!(job = %name, error, "the job could not be removed from the registry; hint: elasticjob job remove");
            created
        }
    }
}
