//! `elasticjob run --observe`: what happens in a namespace, without taking part in it.
//!
//! ```text
//!   registry ── watch ──▶ what changed ──▶ marks of a shard: told as they come and go
//!                              │
//!                              └──▶ who and what a job is: read anew, and what is not as it was is told
//!   clock ──▶ what is due
//! ```
//!
//! It joins nothing and writes nothing: it has a session, without a single node, and asks. So it can run beside Java instances and show that
//! it sees what they do: whom shards are dealt to, when jobs are due, what runs, is missed and is taken over. Java tells of a run only where the job
//! has `monitorExecution`.

mod seen;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    admin::{Admin, AdminError, Change, Edit},
    job::{Handler, JobName},
    registry::{Event, Path, Registry, RegistryUrl},
    runtime::{Clock, SystemClock},
};
use jiff::Timestamp;

use self::seen::{Chapter, Mark, Note};
use crate::{
    error::Error,
    worker::{Stop, patiently},
};
use elasticjob_jobfile::{Entry, Kind};

/// Longer than this nobody sleeps without looking at the clock: it may be set.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

/// Looks on.
pub(crate) struct Observer {
    /// Where the instances meet.
    pub(crate) registry: RegistryUrl,
    /// Which jobs are looked at; all of them if there are none.
    pub(crate) entries: Vec<Entry>,
    /// How long the registry may be away at the start.
    pub(crate) patience: Duration,
}

impl Observer {
    /// Tells what happens, until the process is asked to stop.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let mut stop = Stop::new()?;
        let url = &self.registry;
        let registry = tokio::select! {
            registry = patiently(url, self.patience, async || {
                Ok(elasticjob::registry::visit(url).await?)
            }) => registry?,
            () = stop.asked() => return Ok(()),
        };
        let admin = Admin::on(Arc::clone(&registry));
        self.compare(&admin).await;
        let only = self.entries.iter().map(|entry| entry.job.name.clone()).collect();
        let mut watching = Watching { admin, only, jobs: BTreeMap::new() };
        let looked = tokio::select! {
            looked = watching.go_on(&*registry) => looked,
            () = stop.asked() => Ok(()),
        };
        tracing::info!("nobody looks on any more");
        registry.close().await;
        looked
    }

    /// Says what the files say otherwise than the registry: what would have to be settled if they ran here.
    async fn compare(&self, admin: &Admin) {
        for Entry { job, kind, place } in &self.entries {
            let handler = match kind {
                Kind::Script => Handler::Script,
                Kind::Http => Handler::Http,
                Kind::Java(class) => Handler::Code { java_class: Some(class.clone()) },
            };
            match admin.plan(Edit::of(job.clone()).handler(handler)).await {
                Ok(plan) => match plan.change {
                    Change::New => {
                        tracing::warn!(job = %job.name, %place, "the files have a job that is not in the registry");
                    }
                    Change::Changed(differences) => {
                        for difference in differences {
                            tracing::warn!(job = %job.name, %difference, "the stored configuration counts, and the files say otherwise");
                        }
                    }
                    Change::Same => {}
                },
                Err(error) => {
                    let error = Error::from(error).line();
                    tracing::warn!(job = %job.name, error, "the files and the registry do not agree");
                }
            }
        }
    }
}

/// What is known of the jobs of a namespace.
struct Watching {
    admin: Admin,
    only: BTreeSet<JobName>,
    jobs: BTreeMap<JobName, Chapter>,
}

impl Watching {
    async fn go_on(&mut self, registry: &dyn Registry) -> Result<(), Error> {
        let namespace = registry.namespace().path().clone();
        let mut watch = registry.watch(&namespace).await?;
        tracing::info!(%namespace, "looking on; nothing is joined, nothing is written");
        loop {
            let event = tokio::select! {
                event = watch.next() => match event {
                    Some(event) => Some(event),
                    None => return Ok(()),
                },
                () = self.due() => None,
            };
            let more = std::iter::from_fn(|| watch.try_next());
            let changed: BTreeSet<JobName> = event
                .into_iter()
                .chain(more)
                .filter_map(|event| self.hear(&event, &namespace))
                .collect();
            for job in changed {
                // One that cannot be looked at now shows itself by its next change.
                if let Err(error) = self.look(&job).await {
                    tracing::debug!(%job, %error, "cannot look at the job");
                }
            }
        }
    }

    /// Tells what an event says by itself; which job has to be looked at because of it.
    fn hear(&mut self, event: &Event, namespace: &Path) -> Option<JobName> {
        let (path, is_there, is_news) = match event {
            Event::InitApply { path, .. } => (path, true, false),
            Event::Apply { path } => (path, true, true),
            Event::Delete { path } => (path, false, true),
            Event::Init => {
                // What ended meanwhile is not told any more.
                self.jobs.values_mut().for_each(Chapter::forget_marks);
                return None;
            }
            Event::InitDone => return None,
        };
        let (name, rest) = match path.below(namespace)?.split_once('/') {
            Some((name, rest)) => (name, rest),
            None => (path.below(namespace)?, ""),
        };
        let name: JobName = name.parse().ok()?;
        if !self.only.is_empty() && !self.only.contains(&name) {
            return None;
        }
        match Mark::at(rest) {
            Some(mark) => {
                let chapter = self.jobs.entry(name.clone()).or_default();
                if let Some(note) = chapter.mark(mark, is_there, is_news) {
                    tell(&name, &note);
                }
                None
            }
            None => seen::matters(rest).then_some(name),
        }
    }

    async fn look(&mut self, job: &JobName) -> Result<(), AdminError> {
        let details = match self.admin.job(job).await {
            Ok(details) => details,
            Err(AdminError::NotFound { .. }) => {
                if self.jobs.remove(job).is_some_and(|chapter| chapter.is_known()) {
                    tell(job, &Note::new("the job is removed"));
                }
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let shards = self.admin.shards(job).await?;
        let chapter = self.jobs.entry(job.clone()).or_default();
        for note in chapter.look(&details, &shards) {
            tell(job, &note);
        }
        Ok(())
    }

    /// Waits until something is due, and tells it.
    async fn due(&mut self) {
        let now = SystemClock.now();
        let next = self.jobs.values().filter_map(Chapter::next_fire).min();
        let sleep = next.map_or(LONGEST_SLEEP, |next| {
            Duration::try_from(next.duration_since(now)).unwrap_or_default().min(LONGEST_SLEEP)
        });
        SystemClock.sleep_until(SystemClock.monotonic() + sleep).await;
        let now: Timestamp = SystemClock.now();
        for (job, chapter) in &mut self.jobs {
            if let Some(note) = chapter.due(now) {
                tell(job, &note);
            }
        }
    }
}

fn tell(job: &JobName, note: &Note) {
    tracing::info!(
        %job,
        shard = note.shard,
        instance = note.instance.as_deref(),
        detail = note.detail.as_deref(),
        "{}",
        note.message
    );
}
