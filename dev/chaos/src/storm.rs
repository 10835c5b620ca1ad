//! Injects all kinds of faults, at random, from a seed.
//!
//! The seed alone determines the sequence of faults; the timing of the machine determines what they hit.

use std::{
    error::Error,
    fs::File,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use elasticjob::runtime::{Clock, Monotonic, SystemClock};
use jiff::Timestamp;
use rand::{RngExt, SeedableRng, rngs::SmallRng, seq::IndexedRandom};
use testbed::{Ensemble, Postgres, Proxy};

use crate::{
    audit::{Findings, audit, executions},
    cluster::{Cluster, ClusterConfig},
    database::Database,
    event::{Event, EventKind, ExecutionKey, now},
    quiescence::wait_until_quiescent,
    step_job::StepJob,
};

/// Session timeout of the workers.
const SESSION: Duration = Duration::from_secs(3);
/// How long a follower and its leader may be out of contact, in ticks of 200 ms: much longer than a session.
const SYNC_LIMIT: u32 = 45;
/// The longest pause between two rounds of faults.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// The largest acceptable start delay of a fire: covers two rounds of faults in a row, session timeouts and earlier runs.
const MAX_DELAY: Duration = Duration::from_mins(1);

/// The settings of a storm.
#[derive(Debug, Clone)]
pub struct Storm {
    /// The executable of the workers.
    pub program: PathBuf,
    /// The folder of the workers' logs.
    pub logs: PathBuf,
    pub workers: usize,
    pub duration: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone)]
pub struct StormReport {
    pub findings: Findings,
    /// Every fault, in order.
    pub faults: Vec<String>,
}

/// A fault, which ends after a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A worker is killed and later restarted.
    Kill(usize),
    /// A worker is suspended.
    Freeze(usize),
    /// A worker's connections are cut.
    Cut(usize),
    /// A worker receives no answers.
    HoldAnswers(usize),
    /// A worker is stopped gracefully and later restarted.
    Stop(usize),
    /// A server is killed and later restarted.
    KillServer(Role),
    /// A server's disk is full until the server is restarted.
    FillDisk(Role),
    /// The leader is suspended while its followers keep answering pings.
    FreezeLeader,
    /// A follower receives nothing from its leader and keeps answering pings.
    PartitionFollower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Leader,
    Follower,
}

/// Short jobs and long ones, jobs that overrun and jobs that fail, with failover and without; and one that ignores a lost lease, so that the
/// database has stale writes to refuse.
pub fn storm_jobs() -> Vec<StepJob> {
    let ms = Duration::from_millis;
    vec![
        StepJob::new("short", "0/2 * * * * ?", 4, 2, ms(50)),
        StepJob::new("long", "0/7 * * * * ?", 3, 6, ms(500)),
        StepJob::new("overrun", "0/3 * * * * ?", 2, 8, ms(500)).without_failover(),
        StepJob::new("failing", "0/3 * * * * ?", 3, 2, ms(100)).failing(1),
        StepJob::new("plain", "* * * * * ?", 4, 1, ms(50)).without_failover(),
        StepJob::new("stubborn", "0/5 * * * * ?", 3, 6, ms(500)).stubborn(),
    ]
}

impl Storm {
    /// Runs the storm and audits the result. An error means that the audit could not be done; it is not a finding.
    pub async fn run(self) -> Result<StormReport, Box<dyn Error>> {
        let ensemble = Ensemble::builder().sync_limit(SYNC_LIMIT).start_with_links().await;
        let postgres = tokio::task::block_in_place(Postgres::start);
        let database = Database::connect(&postgres.url()).await?;
        database.prepare(&storm_jobs()).await?;
        let cluster = Cluster::new(ClusterConfig {
            program: self.program.clone(),
            logs: self.logs.clone(),
            servers: ensemble.addresses(),
            namespace: "chaos".into(),
            session: SESSION,
            database: Some(postgres.url()),
            jobs: storm_jobs(),
            on_one_host: false,
        })?;
        let mut driver = StormDriver {
            rng: SmallRng::seed_from_u64(self.seed),
            cluster,
            ensemble,
            faults: Vec::new(),
            log: File::create(self.logs.join("faults.log"))?,
        };
        for _ in 0..self.workers {
            driver.cluster.start().await?;
        }
        let observer = driver.cluster.observer().await?;
        let check_quiescence = async |instances: usize, when: &str| {
            let result = wait_until_quiescent(&*observer, &storm_jobs(), instances).await;
            result
                .map_err(|problems| format!("{when}, the cluster is not quiescent: {problems:#?}"))
        };
        check_quiescence(self.workers, "before the storm").await?;
        let from = SystemClock.now();

        let end = SystemClock.monotonic() + self.duration;
        // Whatever the seed: make one worker run without a lease, so that there is a stale write to refuse.
        let worker = driver.worker_running("stubborn").await;
        driver.inject(vec![(Fault::Freeze(worker), SESSION * 2)]).await?;
        driver.inject(vec![(Fault::FillDisk(Role::Leader), SESSION)]).await?;
        while SystemClock.monotonic() < end {
            driver.inject_random().await?;
        }

        let mut violations: Vec<String> = driver.exited_workers()?;
        let to = SystemClock.now();
        violations.extend(check_quiescence(self.workers, "after the storm").await.err());
        // A shard has run all its fires up to now once it has run a later one.
        violations.extend(driver.stalled_shards(to).await);
        for worker in 0..self.workers {
            match driver.cluster.stop(worker).await {
                Ok(status) if status.success() => {}
                Ok(status) => violations.push(format!("worker {worker} failed to stop: {status}")),
                Err(error) => violations.push(format!("worker {worker} failed to stop: {error}")),
            }
        }
        violations.extend(check_quiescence(0, "after all workers stopped").await.err());
        let events = driver.cluster.events().all();
        let mut findings = audit(&storm_jobs(), &events, &database.write_log().await?, from, to);
        findings.violations.extend(violations);
        if findings.max_delay_ms > MAX_DELAY.as_millis() as i64 {
            findings
                .violations
                .push(format!("start delay of {} ms is too long", findings.max_delay_ms));
        }
        Ok(StormReport { findings, faults: driver.faults })
    }
}

/// Injects the faults.
struct StormDriver {
    rng: SmallRng,
    cluster: Cluster,
    ensemble: Ensemble,
    faults: Vec<String>,
    log: File,
}

struct ActiveFault {
    fault: Fault,
    /// The server it hit, if it hit one.
    server: usize,
    until: Monotonic,
}

impl StormDriver {
    /// Injects one or two random faults at once, then pauses.
    async fn inject_random(&mut self) -> Result<(), Box<dyn Error>> {
        let first = match self.rng.random_range(0..3) {
            0 => self.worker_running("long").await,
            1 => self.worker_running("stubborn").await,
            _ => self.rng.random_range(0..self.cluster.len()),
        };
        let second = (first + 1) % self.cluster.len();
        let mut faults = vec![self.random_fault(first)];
        if self.rng.random_bool(0.4) {
            let other = self.random_fault(second);
            let both_on_servers = [faults[0], other].iter().all(|fault| fault.worker().is_none());
            faults.extend((!both_on_servers).then_some(other));
        }
        let faults = faults.into_iter().map(|fault| (fault, self.random_duration())).collect();
        self.inject(faults).await?;
        let pause = MAX_PAUSE.mul_f64(self.rng.random::<f64>());
        SystemClock.sleep_until(SystemClock.monotonic() + pause).await;
        Ok(())
    }

    /// Starts all faults at once and ends each after its duration.
    async fn inject(&mut self, faults: Vec<(Fault, Duration)>) -> Result<(), Box<dyn Error>> {
        let mut active = Vec::new();
        for (fault, duration) in faults {
            let server = self.start(fault).await?;
            let line = format!("{} {fault:?} for {duration:?}", SystemClock.now());
            // Written at once, next to the logs of the workers.
            writeln!(self.log, "{line}")?;
            self.faults.push(line);
            active.push(ActiveFault { fault, server, until: SystemClock.monotonic() + duration });
        }
        active.sort_by_key(|active| active.until);
        for active in active {
            SystemClock.sleep_until(active.until).await;
            self.end(&active)?;
        }
        Ok(())
    }

    /// Waits for a worker that runs a shard of `job`. Returns worker 0 on timeout: the audit reports later that the job did not run.
    async fn worker_running(&self, job: &str) -> usize {
        let busy = |events: &[Event]| {
            let mut running =
                executions(events, &mut Vec::new()).into_values().filter(|execution| {
                    let is_recent = execution.started_at > now() - SESSION.as_nanos() as i64;
                    execution.key.job == job && execution.outcome.is_none() && is_recent
                });
            running.next().map(|execution| execution.worker)
        };
        self.cluster.events().wait_for(busy).await.unwrap_or(0)
    }

    fn random_fault(&mut self, worker: usize) -> Fault {
        let faults = [
            Fault::Kill(worker),
            Fault::Kill(worker),
            Fault::Freeze(worker),
            Fault::Freeze(worker),
            Fault::Cut(worker),
            Fault::HoldAnswers(worker),
            Fault::Stop(worker),
            Fault::KillServer(Role::Leader),
            Fault::KillServer(Role::Follower),
            Fault::FillDisk(Role::Leader),
            Fault::FillDisk(Role::Follower),
            Fault::FreezeLeader,
            Fault::PartitionFollower,
        ];
        *faults.choose(&mut self.rng).unwrap_or(&Fault::Kill(worker))
    }

    /// Either shorter or longer than a session, with equal probability.
    fn random_duration(&mut self) -> Duration {
        let sessions = if self.rng.random_bool(0.5) {
            self.rng.random_range(0.1..0.7)
        } else {
            self.rng.random_range(1.2..2.2)
        };
        SESSION.mul_f64(sessions)
    }

    async fn start(&mut self, fault: Fault) -> io::Result<usize> {
        let mut hit = 0;
        match fault {
            Fault::Kill(worker) => drop(self.cluster.kill(worker).await?),
            Fault::Stop(worker) => drop(self.cluster.stop(worker).await?),
            Fault::Freeze(worker) => {
                if let Some(process) = self.cluster.process(worker) {
                    process.freeze()?;
                }
            }
            Fault::Cut(worker) => self.cluster.proxies(worker).iter().for_each(Proxy::cut),
            Fault::HoldAnswers(worker) => {
                self.cluster.proxies(worker).iter().for_each(Proxy::hold_answers);
            }
            Fault::KillServer(role) => {
                hit = self.server(role);
                tokio::task::block_in_place(|| self.ensemble.server(hit).stop());
            }
            Fault::FillDisk(role) => {
                hit = self.server(role);
                self.ensemble.server(hit).fill_disk();
            }
            Fault::FreezeLeader => {
                hit = self.server(Role::Leader);
                tokio::task::block_in_place(|| self.ensemble.server(hit).freeze());
            }
            Fault::PartitionFollower => {
                hit = self.server(Role::Follower);
                self.ensemble.hold_leader_messages(hit);
            }
        }
        Ok(hit)
    }

    fn end(&mut self, ActiveFault { fault, server, .. }: &ActiveFault) -> io::Result<()> {
        match *fault {
            Fault::Kill(worker) | Fault::Stop(worker) => self.cluster.restart(worker)?,
            Fault::Freeze(worker) => {
                if let Some(process) = self.cluster.process(worker) {
                    process.thaw()?;
                }
            }
            Fault::Cut(worker) => self.cluster.proxies(worker).iter().for_each(Proxy::heal),
            Fault::HoldAnswers(worker) => {
                self.cluster.proxies(worker).iter().for_each(Proxy::release_answers);
            }
            Fault::FillDisk(_) => {
                let server = self.ensemble.server(*server);
                tokio::task::block_in_place(|| server.restart_with_free_disk());
            }
            Fault::KillServer(_) => {
                tokio::task::block_in_place(|| self.ensemble.server(*server).restart());
            }
            Fault::FreezeLeader => {
                tokio::task::block_in_place(|| self.ensemble.server(*server).thaw());
            }
            Fault::PartitionFollower => self.ensemble.release_leader_messages(*server),
        }
        Ok(())
    }

    fn server(&mut self, role: Role) -> usize {
        let leader = tokio::task::block_in_place(|| self.ensemble.leader());
        match role {
            Role::Leader => leader,
            Role::Follower => (leader + self.rng.random_range(1..3)) % 3,
        }
    }

    /// Workers that exited unexpectedly or failed to start.
    fn exited_workers(&mut self) -> io::Result<Vec<String>> {
        let mut exited = Vec::new();
        for worker in 0..self.cluster.len() {
            if let Some(process) = self.cluster.process(worker)
                && let Some(status) = process.exit_status()?
            {
                exited.push(format!("worker {worker} exited unexpectedly: {status}"));
            }
        }
        Ok(exited)
    }

    /// Shards that complete no fire that is due after `then`.
    async fn stalled_shards(&self, then: Timestamp) -> Vec<String> {
        let then = then.as_millisecond();
        let mut stalled = Vec::new();
        for job in storm_jobs() {
            for item in 0..job.shards {
                let is_it =
                    |key: &ExecutionKey| key.job == job.name && key.item == item && key.run > then;
                let ends = |events: &[Event]| {
                    let mut newest_first = events.iter().rev();
                    let is_end = |event: &Event| matches!(&event.kind, EventKind::Outcome(key, _) if is_it(key));
                    newest_first.any(is_end).then_some(())
                };
                if self.cluster.events().wait_for(ends).await.is_none() {
                    stalled.push(format!("{}/{item} stopped running", job.name));
                }
            }
        }
        stalled
    }
}

impl Fault {
    fn worker(self) -> Option<usize> {
        match self {
            Self::Kill(worker)
            | Self::Freeze(worker)
            | Self::Cut(worker)
            | Self::HoldAnswers(worker)
            | Self::Stop(worker) => Some(worker),
            Self::KillServer(_)
            | Self::FillDisk(_)
            | Self::FreezeLeader
            | Self::PartitionFollower => None,
        }
    }
}
