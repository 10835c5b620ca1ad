//! What ZooKeeper itself can do: the same transactions, already combined, sent without waiting for each answer; and the same work through the
//! combiner.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    coordination::tree::JobTree,
    registry::{Combiner, Op, Registry, Version, ZooKeeperSettings, zookeeper},
};
use futures_util::{StreamExt, future::try_join_all, stream};
use testbed::ZooKeeper;
use tokio::task::JoinSet;

use super::{JOBS_PER_SESSION, units};
use crate::{BoxError, stopwatch::Stopwatch};

/// Batches of each session that are under way at once: enough to keep the server busy.
const WINDOW: usize = 8;
/// How often each job claims and releases while the sustained rate is measured.
const REPEATS: usize = 10;

/// Jobs that exist only as their nodes, spread over sessions.
pub(crate) struct Ceiling {
    sessions: Vec<(Arc<dyn Registry>, Vec<JobTree>)>,
}

/// How long claims and releases of all jobs took.
pub(crate) struct Times {
    pub(super) claims: Duration,
    pub(super) releases: Duration,
}

impl Times {
    pub(crate) fn whole(&self) -> Duration {
        self.claims + self.releases
    }
}

impl Ceiling {
    pub(crate) async fn prepare(server: &ZooKeeper, jobs: usize) -> Result<Self, BoxError> {
        let mut sessions = Vec::new();
        for first in (0..jobs).step_by(JOBS_PER_SESSION) {
            let numbers = first..jobs.min(first + JOBS_PER_SESSION);
            let settings = ZooKeeperSettings::new([server.address().into()], "ceiling".parse()?);
            let registry: Arc<dyn Registry> =
                Arc::new(zookeeper::ZooKeeper::connect(&settings).await?);
            let trees = numbers.map(|number| units::tree(&*registry, number));
            let trees: Vec<JobTree> = trees.collect::<Result<_, _>>()?;
            units::create(&*registry, &trees).await?;
            sessions.push((registry, trees));
        }
        Ok(Self { sessions })
    }

    /// Claims all jobs and releases them, in full batches.
    pub(crate) async fn measure(&self) -> Result<Times, BoxError> {
        let mut prepared = Vec::new();
        for (registry, trees) in &self.sessions {
            let (mut claims, mut releases) = (Vec::new(), Vec::new());
            let session = registry.session().id();
            let versions = units::versions(&**registry, trees).await?;
            for (tree, version) in trees.iter().zip(versions) {
                claims.push(units::claim(tree, session, version));
                releases.push(units::release(tree, next(version)));
            }
            let (claims, releases) = (combine(claims), combine(releases));
            prepared.push((registry, claims, releases));
        }
        let stopwatch = Stopwatch::start();
        let claiming: Vec<_> =
            prepared.iter().map(|(registry, claims, _)| send(&***registry, claims)).collect();
        try_join_all(claiming).await?;
        let claims = stopwatch.elapsed();
        let releasing: Vec<_> =
            prepared.iter().map(|(registry, _, releases)| send(&***registry, releases)).collect();
        try_join_all(releasing).await?;
        Ok(Times { claims, releases: stopwatch.elapsed().saturating_sub(claims) })
    }

    /// Claims and releases all jobs again and again, in full batches without a pause. Returns the operations per second.
    pub(crate) async fn sustained(&self) -> Result<f64, BoxError> {
        let mut prepared = Vec::new();
        for (registry, trees) in &self.sessions {
            let session = registry.session().id();
            let mut versions = units::versions(&**registry, trees).await?;
            let mut batches = Vec::new();
            for _ in 0..REPEATS {
                let jobs = || trees.iter().zip(&versions);
                let claims = jobs().map(|(tree, version)| units::claim(tree, session, *version));
                batches.extend(combine(claims.collect()));
                let releases = jobs().map(|(tree, version)| units::release(tree, next(*version)));
                batches.extend(combine(releases.collect()));
                for version in &mut versions {
                    *version = next(next(*version));
                }
            }
            prepared.push((registry, batches));
        }
        let operations = prepared.iter().flat_map(|(_, batches)| batches).map(Vec::len).sum();
        let stopwatch = Stopwatch::start();
        let sending = prepared.iter().map(|(registry, batches)| send(&***registry, batches));
        try_join_all(sending).await?;
        Ok(stopwatch.rate(operations))
    }

    /// Claims and releases every job again and again through the combiner. Returns the operations per second.
    pub(super) async fn combined(&self) -> Result<f64, BoxError> {
        let mut jobs = JoinSet::new();
        let mut versions = Vec::new();
        for (registry, trees) in &self.sessions {
            versions.extend(units::versions(&**registry, trees).await?);
        }
        let mut versions = versions.into_iter();
        let stopwatch = Stopwatch::start();
        for (registry, trees) in &self.sessions {
            let combiner = Arc::new(Combiner::new(Arc::clone(registry)));
            let session = registry.session().id();
            for (tree, mut version) in trees.iter().cloned().zip(versions.by_ref()) {
                let combiner = Arc::clone(&combiner);
                jobs.spawn(async move {
                    let mut operations = 0;
                    for _ in 0..REPEATS {
                        let claim = units::claim(&tree, session, version);
                        let release = units::release(&tree, next(version));
                        version = next(next(version));
                        operations += claim.len() + release.len();
                        combiner.commit_unit(claim).await?;
                        combiner.commit_unit(release).await?;
                    }
                    Ok::<usize, BoxError>(operations)
                });
            }
        }
        let mut operations = 0;
        while let Some(job) = jobs.join_next().await {
            operations += job??;
        }
        Ok(stopwatch.rate(operations))
    }
}

/// Puts units together into full batches.
fn combine(units: Vec<Vec<Op>>) -> Vec<Vec<Op>> {
    let mut batches: Vec<Vec<Op>> = Vec::new();
    for unit in units {
        match batches.last_mut() {
            Some(batch) if units::BATCH.fitting(batch, &unit) == unit.len() => batch.extend(unit),
            _ => batches.push(unit),
        }
    }
    batches
}

async fn send(registry: &dyn Registry, batches: &[Vec<Op>]) -> Result<(), BoxError> {
    let requests: Vec<_> = batches.iter().map(|batch| registry.multi(batch.clone())).collect();
    let mut answers = stream::iter(requests).buffered(WINDOW);
    while let Some(answer) = answers.next().await {
        answer?;
    }
    Ok(())
}

fn next(Version(version): Version) -> Version {
    Version(version + 1)
}
