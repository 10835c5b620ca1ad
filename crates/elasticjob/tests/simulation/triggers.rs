//! Triggers and cancellations by operators during all faults, and their account at the end: every shard of every accepted trigger ran or was
//! reported, once.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use elasticjob::{
    admin::Admin,
    coordination::{
        ledger::{LedgerPage, LedgerState},
        trigger::{ShardEntry, Trigger, TriggerRequest},
    },
    job::{JobName, Misfire, Outcome, RunId, RunReason, ShardSelection},
    registry::Registry,
    runtime::Clock,
};

use super::{
    rng::Rng,
    schedule::Action,
    world::{World, lock, tree_of},
};

/// So many triggers and cancellations are kept for each job, so that older ones may be removed.
const KEPT: usize = 100;

/// So many triggers of a job may be open at a time.
const MAX_OPEN: usize = 2;

/// Has its own random numbers, so that everything else stays the same.
pub(super) fn rng_of(seed: u64) -> Rng {
    Rng::new(seed ^ 0x7472_6967_6765_7221)
}

impl World {
    pub(super) fn schedule_triggers(&mut self) {
        let pause = Duration::from_millis(self.trigger_rng.between(7_000, 30_000));
        self.schedule.add(self.time.monotonic() + pause, Action::TriggerOrCancel);
    }

    fn admin(&self) -> Admin {
        let registry = Arc::clone(&self.observer) as Arc<dyn Registry>;
        Admin::new(registry)
            .clock(Arc::new(self.time))
            .randomness(Arc::new(self.trigger_rng.fork()))
    }

    /// An operator triggers a job, or cancels a run.
    pub(super) async fn trigger_or_cancel(&mut self) {
        if self.is_fault_free.load(Ordering::Relaxed) {
            return;
        }
        self.schedule_triggers();
        let number = self.trigger_rng.between(0, self.plans.len() as u64 - 1) as usize;
        let name = lock(&self.plans[number]).job.name.clone();
        let known = self.accepted_of(number);
        if self.trigger_rng.percent(30) {
            self.cancel(number, &name, known.last()).await;
            return;
        }
        // More would still run when the cluster has to be idle.
        if self.count_open(number, &known).await >= MAX_OPEN {
            return;
        }
        let expires_in = self.trigger_rng.percent(20).then_some(Duration::from_secs(20));
        let parameter = self.trigger_rng.percent(30).then(|| format!("trigger {}", known.len()));
        let first = self.trigger_rng.percent(15).then(|| ShardSelection::only([0]).ok()).flatten();
        let shards = first.unwrap_or(ShardSelection::All);
        let request = TriggerRequest { expires_in, parameter, shards, ..TriggerRequest::default() };
        // The run that it starts may delay a fire.
        self.oracle.set_disturbed(true);
        match self.admin().trigger(&name, request).await {
            Ok(accepted) => {
                self.oracle.log(format_args!("job{number} is triggered: {}", accepted.run));
                self.accepted.push((number, accepted.run));
            }
            Err(error) => self.oracle.log(format_args!("job{number} is not triggered: {error}")),
        }
    }

    /// Cancels the last trigger, or whatever runs. Sometimes one of the instances that run it dies before it can know.
    async fn cancel(&mut self, number: usize, name: &JobName, last: Option<&RunId>) {
        let running = self.running(number).await;
        let run = last.filter(|_| self.trigger_rng.percent(50));
        let cancelled = match run {
            Some(run) => self.admin().cancel_run(name, run, &ShardSelection::All).await,
            None => self.admin().cancel(name, &ShardSelection::All).await,
        };
        let cancelled = match cancelled {
            Ok(cancelled) => cancelled,
            Err(error) => {
                return self.oracle.log(format_args!("job{number} is not cancelled: {error}"));
            }
        };
        self.oracle.log(format_args!("job{number} is cancelled, {run:?}: {cancelled:?}"));
        self.cancelled_jobs.insert(number);
        let now = self.time.elapsed();
        for shard in cancelled.requested.values().flatten() {
            if let Some(run) = run.or(running.get(shard)) {
                self.cancelled.push((number, *shard, run.clone(), now));
            }
        }
        let slot_of = |id: &String| {
            let address = id.split('@').next()?;
            address.rsplit('.').next()?.parse::<usize>().ok()?.checked_sub(1)
        };
        let slot = cancelled.requested.keys().find_map(slot_of);
        if let Some(node) = slot.and_then(|slot| self.slots.get(slot)?.node)
            && self.trigger_rng.percent(40)
            && let Some(connection) = self.connections.get(&node)
        {
            self.oracle.log(format_args!("n{node} is killed before it knows"));
            connection.kill();
            self.remove_process(node);
        }
    }

    /// The runs of the shards that run, by the ledger.
    async fn running(&self, number: usize) -> BTreeMap<u32, RunId> {
        let (tree, total) =
            (tree_of(&self.plans[number]), lock(&self.plans[number]).job.shards.get());
        let mut running = BTreeMap::new();
        for shard in 0..total {
            let node = self.observer.get(&tree.ledger_page(shard)).await.ok().flatten();
            let page = node.and_then(|node| LedgerPage::read(&node.data).ok()).unwrap_or_default();
            let is_over = matches!(page.state, LedgerState::Done | LedgerState::Failed);
            running.extend(page.run.filter(|_| !is_over).map(|run| (shard, run)));
        }
        running
    }

    async fn count_open(&self, number: usize, runs: &[RunId]) -> usize {
        let tree = tree_of(&self.plans[number]);
        let mut open = 0;
        for run in runs {
            let node = self.observer.get(&tree.accepted_trigger(run)).await.ok().flatten();
            let trigger = node.and_then(|node| Trigger::read(&node.data).ok());
            open += usize::from(trigger.is_some_and(|trigger| trigger.ended_at.is_none()));
        }
        open
    }

    fn accepted_of(&self, number: usize) -> Vec<RunId> {
        let of_job = self.accepted.iter().filter(|(of, _)| *of == number);
        of_job.map(|(_, run)| run.clone()).collect()
    }

    /// Triggers a run of every job that can compensate the fire which this run may delay.
    pub(super) async fn trigger_jobs(&mut self) {
        for (number, plan) in self.plans.clone().iter().enumerate() {
            let (name, can_compensate) = {
                let plan = lock(plan);
                let can_compensate =
                    plan.every >= 30 && plan.job.misfire == Misfire::RunOnce && !plan.has_java;
                (plan.job.name.clone(), can_compensate)
            };
            if !can_compensate {
                continue;
            }
            match self.admin().trigger(&name, TriggerRequest::default()).await {
                Ok(accepted) => {
                    self.final_triggers.push((number, accepted.run.clone()));
                    self.accepted.push((number, accepted.run));
                }
                Err(error) => self
                    .oracle
                    .report_violation(format_args!("{name} cannot be triggered: {error}")),
            }
        }
    }

    /// No execution of a cancelled run goes on untold.
    pub(super) fn check_cancellations(&self) {
        for (number, shard, run, at) in &self.cancelled {
            let job = lock(&self.plans[*number]).job.name.to_string();
            for started in self.oracle.uncancelled(&(job.clone(), *shard), run, *at) {
                self.oracle.report_violation(format_args!(
                    "{job}/{shard} of {run} was cancelled at {at:?}; the execution that started at {started:?} was not"
                ));
            }
        }
    }

    /// At rest no trigger is open: those of operators, and those that instances stored because Java triggered them.
    pub(super) async fn check_closed_triggers(&self) {
        for plan in &self.plans {
            let tree = tree_of(plan);
            for name in self.children(&tree.accepted_triggers()).await {
                let path = tree.accepted_trigger(&name);
                let node = self.observer.get(&path).await.ok().flatten();
                let trigger = node.and_then(|node| Trigger::read(&node.data).ok());
                if trigger.is_some_and(|trigger| trigger.ended_at.is_none()) {
                    self.oracle.report_violation(format_args!("{path} is still open"));
                }
            }
        }
    }

    /// Every shard of every accepted trigger has an outcome and ran, or has a reason and did not, and no shard ran twice because of the trigger.
    pub(super) async fn check_accepted_triggers(&self) {
        for (number, run) in &self.accepted {
            let tree = tree_of(&self.plans[*number]);
            let job = lock(&self.plans[*number]).job.name.to_string();
            let path = tree.accepted_trigger(run);
            let Some(node) = self.observer.get(&path).await.ok().flatten() else {
                let left = self.children(&tree.accepted_triggers()).await.len();
                let was_day_ahead = self.oracle.lock().was_registry_clock_wrong;
                // Of a job with Java instances only, nothing is stored.
                let is_delegated = lock(&self.plans[*number]).has_java;
                if left < KEPT && !was_day_ahead && !is_delegated {
                    self.oracle.report_violation(format_args!("trigger {run} of {job} vanished"));
                }
                continue;
            };
            let Ok(trigger) = Trigger::read(&node.data) else {
                self.oracle.report_violation(format_args!("trigger {run} of {job} is unreadable"));
                continue;
            };
            for shard in trigger.shards.iter() {
                let entry = self.observer.get(&tree.trigger_entry(run, shard)).await.ok().flatten();
                let entry = entry.and_then(|node| ShardEntry::read(&node.data).ok());
                let (mut ran, mut triggered, mut has_parameter) = (0, 0, true);
                for execution in &self.oracle.lock().executions {
                    if execution.key == (job.clone(), shard) && execution.run == *run {
                        ran += 1;
                        triggered += usize::from(execution.reason == RunReason::Trigger);
                        let given = trigger.parameter.as_ref();
                        has_parameter &= given.is_none_or(|given| *given == execution.parameter);
                    }
                }
                if !has_parameter {
                    self.oracle.report_violation(format_args!(
                        "{job}/{shard} ran without the parameter of trigger {run}"
                    ));
                }
                let is_right = match &entry {
                    None | Some(ShardEntry::Claimed { .. }) => false,
                    Some(ShardEntry::Skipped(_)) => ran == 0,
                    // Its instance died, perhaps before it started.
                    Some(ShardEntry::Ended { outcome: Outcome::Lost, owner, .. }) => {
                        triggered <= 1 && (ran > 0 || !self.exists(&tree.instance(owner)).await)
                    }
                    // Cancelled between its claim and its start.
                    Some(ShardEntry::Ended { outcome: Outcome::Cancelled, .. }) => {
                        triggered <= 1 && (ran > 0 || self.cancelled_jobs.contains(number))
                    }
                    Some(ShardEntry::Ended { .. }) => ran > 0 && triggered <= 1,
                };
                if !is_right {
                    self.oracle.report_violation(format_args!("{job}/{shard} ran {ran} times, {triggered} of them first, for trigger {run}: {entry:?}"));
                }
            }
        }
    }
}
