//! Everything that can go wrong, at random, from a seed.
//!
//! What goes wrong is decided by the seed alone; when exactly it hits what, by the machine.

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
    cluster::{Cluster, Plan},
    database::Database,
    peace::settles,
    said::{Key, Said, What, now},
    task::Task,
};

/// How long a worker's session lasts.
const SESSION: Duration = Duration::from_secs(3);
/// How long a follower and its leader may hear nothing of each other, in ticks of 200 ms: much longer than a session.
const SYNC_LIMIT: u32 = 45;
/// How long no two faults in a row leave the cluster alone, at most.
const CALM: Duration = Duration::from_secs(2);

/// How late the last of all shards that were due may be: two faults in a row, sessions that end, runs in the way.
const LATE: Duration = Duration::from_mins(1);

/// A run of it.
#[derive(Debug, Clone)]
pub struct Storm {
    /// The program the workers are.
    pub program: PathBuf,
    /// Where they log.
    pub logs: PathBuf,
    /// How many of them.
    pub workers: usize,
    /// For how long.
    pub lasts: Duration,
    /// What it is derived from.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Aftermath {
    /// Whether anything was lost or ran twice.
    pub findings: Findings,
    /// Every fault, in order.
    pub faults: Vec<String>,
}

/// Something that goes wrong, for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A worker is killed and started again.
    Kill(usize),
    /// A worker stands still.
    Freeze(usize),
    /// A worker is cut off.
    Cut(usize),
    /// A worker hears no answers.
    Deafen(usize),
    /// A worker is asked to stop and started again.
    Stop(usize),
    /// A server is killed and started again.
    KillServer(Role),
    /// A server's disk is full, until it is started again.
    FillDisk(Role),
    /// The leader stands still, and its followers go on answering pings.
    FreezeLeader,
    /// A follower hears nothing of its leader and goes on answering pings.
    PartFollower,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Leader,
    Follower,
}

/// Short runs and long ones, ones that overrun and ones that fail, with failover and without; and one that does not give up when it
/// should, so that the database has something to refuse.
pub fn tasks() -> Vec<Task> {
    let ms = Duration::from_millis;
    vec![
        Task::new("short", "0/2 * * * * ?", 4, 2, ms(50)),
        Task::new("long", "0/7 * * * * ?", 3, 6, ms(500)),
        Task::new("overrun", "0/3 * * * * ?", 2, 8, ms(500)).without_failover(),
        Task::new("failing", "0/3 * * * * ?", 3, 2, ms(100)).failing(1),
        Task::new("plain", "* * * * * ?", 4, 1, ms(50)).without_failover(),
        Task::new("stubborn", "0/5 * * * * ?", 3, 6, ms(500)).stubborn(),
    ]
}

impl Storm {
    /// Raises it, and looks at what is left. An error is not a finding: it could not be looked at.
    pub async fn run(self) -> Result<Aftermath, Box<dyn Error>> {
        let ensemble = Ensemble::builder().sync_limit(SYNC_LIMIT).start_with_links().await;
        let postgres = tokio::task::block_in_place(Postgres::start);
        let database = Database::connect(&postgres.url()).await?;
        database.prepare(&tasks()).await?;
        let cluster = Cluster::new(Plan {
            program: self.program.clone(),
            logs: self.logs.clone(),
            servers: ensemble.addresses(),
            namespace: "chaos".into(),
            session: SESSION,
            database: Some(postgres.url()),
            tasks: tasks(),
            on_one_host: false,
        })?;
        let mut weather = Weather {
            dice: SmallRng::seed_from_u64(self.seed),
            cluster,
            ensemble,
            faults: Vec::new(),
            log: File::create(self.logs.join("faults.log"))?,
        };
        for _ in 0..self.workers {
            weather.cluster.start().await?;
        }
        let observer = weather.cluster.observer().await?;
        let settled = async |instances: usize, when: &str| {
            let settled = settles(&*observer, &tasks(), instances).await;
            settled.map_err(|wrong| format!("{when} the cluster does not settle: {wrong:#?}"))
        };
        settled(self.workers, "at first").await?;
        let from = SystemClock.now();

        let end = SystemClock.monotonic() + self.lasts;
        // Somebody goes on without a lease, so that there is a stale write to refuse, whatever the seed.
        let worker = weather.busy_with("stubborn").await;
        weather.go_wrong(vec![(Fault::Freeze(worker), SESSION * 2)]).await?;
        weather.go_wrong(vec![(Fault::FillDisk(Role::Leader), SESSION)]).await?;
        while SystemClock.monotonic() < end {
            weather.round().await?;
        }

        let mut wrong: Vec<String> = weather.ended()?;
        let to = SystemClock.now();
        wrong.extend(settled(self.workers, "afterwards").await.err());
        // What was due until now has run when something of each shard has run that was due later.
        wrong.extend(weather.silent_after(to).await);
        for worker in 0..self.workers {
            match weather.cluster.stop(worker).await {
                Ok(ended) if ended.success() => {}
                Ok(ended) => wrong.push(format!("worker {worker} was asked to stop: {ended}")),
                Err(error) => wrong.push(format!("worker {worker} was asked to stop: {error}")),
            }
        }
        wrong.extend(settled(0, "when all have left").await.err());
        let said = weather.cluster.heard().all();
        let mut findings = audit(&tasks(), &said, &database.book().await?, from, to);
        findings.wrong.extend(wrong);
        if findings.latest_ms > LATE.as_millis() as i64 {
            findings.wrong.push(format!("{} ms late: nothing takes that long", findings.latest_ms));
        }
        Ok(Aftermath { findings, faults: weather.faults })
    }
}

struct Weather {
    dice: SmallRng,
    cluster: Cluster,
    ensemble: Ensemble,
    faults: Vec<String>,
    log: File,
}

/// A fault that is going on.
struct Ongoing {
    fault: Fault,
    /// Which server it hit.
    server: usize,
    until: Monotonic,
}

impl Weather {
    /// One or two faults at once, and a moment without.
    async fn round(&mut self) -> Result<(), Box<dyn Error>> {
        let first = match self.dice.random_range(0..3) {
            0 => self.busy_with("long").await,
            1 => self.busy_with("stubborn").await,
            _ => self.dice.random_range(0..self.cluster.len()),
        };
        let second = (first + 1) % self.cluster.len();
        let mut faults = vec![self.any(first)];
        if self.dice.random_bool(0.4) {
            let other = self.any(second);
            let both_on_servers = [faults[0], other].iter().all(|fault| fault.worker().is_none());
            faults.extend((!both_on_servers).then_some(other));
        }
        let faults = faults.into_iter().map(|fault| (fault, self.length())).collect();
        self.go_wrong(faults).await?;
        let calm = CALM.mul_f64(self.dice.random::<f64>());
        SystemClock.sleep_until(SystemClock.monotonic() + calm).await;
        Ok(())
    }

    /// All of this begins at once, and ends when it is time.
    async fn go_wrong(&mut self, faults: Vec<(Fault, Duration)>) -> Result<(), Box<dyn Error>> {
        let mut ongoing = Vec::new();
        for (fault, lasts) in faults {
            let server = self.begin(fault).await?;
            let line = format!("{} {fault:?} for {lasts:?}", SystemClock.now());
            // Beside the logs of the workers, as it happens.
            writeln!(self.log, "{line}")?;
            self.faults.push(line);
            ongoing.push(Ongoing { fault, server, until: SystemClock.monotonic() + lasts });
        }
        ongoing.sort_by_key(|ongoing| ongoing.until);
        for ongoing in ongoing {
            SystemClock.sleep_until(ongoing.until).await;
            self.end(&ongoing)?;
        }
        Ok(())
    }

    /// A worker that runs a shard of this job, as soon as there is one; if nobody ever does, that is found out later.
    async fn busy_with(&self, job: &str) -> usize {
        let busy = |said: &[Said]| {
            let mut running = executions(said, &mut Vec::new()).into_values().filter(|execution| {
                let is_recent = execution.started_at > now() - SESSION.as_nanos() as i64;
                execution.key.job == job && execution.outcome.is_none() && is_recent
            });
            running.next().map(|execution| execution.worker)
        };
        self.cluster.heard().wait(busy).await.unwrap_or(0)
    }

    fn any(&mut self, worker: usize) -> Fault {
        let faults = [
            Fault::Kill(worker),
            Fault::Kill(worker),
            Fault::Freeze(worker),
            Fault::Freeze(worker),
            Fault::Cut(worker),
            Fault::Deafen(worker),
            Fault::Stop(worker),
            Fault::KillServer(Role::Leader),
            Fault::KillServer(Role::Follower),
            Fault::FillDisk(Role::Leader),
            Fault::FillDisk(Role::Follower),
            Fault::FreezeLeader,
            Fault::PartFollower,
        ];
        *faults.choose(&mut self.dice).unwrap_or(&Fault::Kill(worker))
    }

    /// Shorter than a session or longer, each time the one or the other.
    fn length(&mut self) -> Duration {
        let sessions = if self.dice.random_bool(0.5) {
            self.dice.random_range(0.1..0.7)
        } else {
            self.dice.random_range(1.2..2.2)
        };
        SESSION.mul_f64(sessions)
    }

    async fn begin(&mut self, fault: Fault) -> io::Result<usize> {
        let mut hit = 0;
        match fault {
            Fault::Kill(worker) => drop(self.cluster.kill(worker).await?),
            Fault::Stop(worker) => drop(self.cluster.stop(worker).await?),
            Fault::Freeze(worker) => {
                if let Some(process) = self.cluster.process(worker) {
                    process.freeze()?;
                }
            }
            Fault::Cut(worker) => self.cluster.lines(worker).iter().for_each(Proxy::cut),
            Fault::Deafen(worker) => {
                self.cluster.lines(worker).iter().for_each(Proxy::hold_answers);
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
            Fault::PartFollower => {
                hit = self.server(Role::Follower);
                self.ensemble.deafen(hit);
            }
        }
        Ok(hit)
    }

    fn end(&mut self, Ongoing { fault, server, .. }: &Ongoing) -> io::Result<()> {
        match *fault {
            Fault::Kill(worker) | Fault::Stop(worker) => self.cluster.restart(worker)?,
            Fault::Freeze(worker) => {
                if let Some(process) = self.cluster.process(worker) {
                    process.thaw()?;
                }
            }
            Fault::Cut(worker) => self.cluster.lines(worker).iter().for_each(Proxy::heal),
            Fault::Deafen(worker) => {
                self.cluster.lines(worker).iter().for_each(Proxy::release_answers);
            }
            Fault::FillDisk(_) => {
                tokio::task::block_in_place(|| self.ensemble.server(*server).make_room());
            }
            Fault::KillServer(_) => {
                tokio::task::block_in_place(|| self.ensemble.server(*server).restart());
            }
            Fault::FreezeLeader => {
                tokio::task::block_in_place(|| self.ensemble.server(*server).thaw());
            }
            Fault::PartFollower => self.ensemble.undeafen(*server),
        }
        Ok(())
    }

    fn server(&mut self, role: Role) -> usize {
        let leader = tokio::task::block_in_place(|| self.ensemble.leader());
        match role {
            Role::Leader => leader,
            Role::Follower => (leader + self.dice.random_range(1..3)) % 3,
        }
    }

    /// Workers that ended though nobody asked them to, or that could not start.
    fn ended(&mut self) -> io::Result<Vec<String>> {
        let mut ended = Vec::new();
        for worker in 0..self.cluster.len() {
            if let Some(process) = self.cluster.process(worker)
                && let Some(status) = process.has_ended()?
            {
                ended.push(format!("worker {worker} ended by itself: {status}"));
            }
        }
        Ok(ended)
    }

    /// Shards of which nothing ends that is due after `then`.
    async fn silent_after(&self, then: Timestamp) -> Vec<String> {
        let then = then.as_millisecond();
        let mut silent = Vec::new();
        for task in tasks() {
            for item in 0..task.shards {
                let is_it = |key: &Key| key.job == task.name && key.item == item && key.run > then;
                let ends = |said: &[Said]| {
                    let mut newest_first = said.iter().rev();
                    let is_end =
                        |said: &Said| matches!(&said.what, What::Outcome(key, _) if is_it(key));
                    newest_first.any(is_end).then_some(())
                };
                if self.cluster.heard().wait(ends).await.is_none() {
                    silent.push(format!("{}/{item} does not run any more", task.name));
                }
            }
        }
        silent
    }
}

impl Fault {
    fn worker(self) -> Option<usize> {
        match self {
            Self::Kill(worker)
            | Self::Freeze(worker)
            | Self::Cut(worker)
            | Self::Deafen(worker)
            | Self::Stop(worker) => Some(worker),
            Self::KillServer(_) | Self::FillDisk(_) | Self::FreezeLeader | Self::PartFollower => {
                None
            }
        }
    }
}
