//! A periodic second look at everything.
//!
//! Whatever was missed — a notification, a death that no instance saw, what a Java instance left behind — is derived again from the tree.
//! Nothing of a live instance is touched.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{assignment::Assignment, context::Context, mirror::Mirror};
use crate::{
    coordination::{
        flaw::Flaw,
        server_status::{StoredStatus, stored_data},
        view::{CachedNode, View},
    },
    job::{Failover, InstanceId, Resharding},
    registry::{Error, ExpectedVersion, Op, Path, Version},
    runtime::Monotonic,
};

/// Time between two passes, about.
const INTERVAL: Duration = Duration::from_mins(1);
/// The same while a holder of shards is absent and not dead.
const SHORT_INTERVAL: Duration = Duration::from_secs(5);
/// How long a server without an instance is kept.
const SERVER_RETENTION: Duration = Duration::from_mins(10);
/// How long we go without a shard before we make a Java leader assign again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Janitor {
    next_pass: Option<Monotonic>,
    /// The number of changes the mirror had seen at the last full pass.
    passed_at_change: Option<u64>,
    /// Servers without an instance, each with since when.
    abandoned: BTreeMap<String, Monotonic>,
    /// Since when we have had no shard although there are enough for us.
    idle_since: Option<Monotonic>,
    /// When the mirror was last reloaded.
    reloaded_at: Option<Monotonic>,
}

impl Janitor {
    pub(super) fn is_due(&self, now: Monotonic) -> bool {
        self.next_pass.is_some_and(|at| now >= at)
    }

    pub(super) fn next_duty_at(&self) -> Option<Monotonic> {
        self.next_pass
    }

    /// Sets the time of the next pass, different for every instance. `has_undecided`: a holder of shards is absent and not dead.
    pub(super) fn schedule(&mut self, context: &Context, has_undecided: bool) {
        let now = context.clock.monotonic();
        let interval = if has_undecided { SHORT_INTERVAL } else { INTERVAL };
        let interval = interval.mul_f64(0.8 + 0.4 * context.randomness.fraction());
        self.next_pass = Some(now + interval);
        self.reloaded_at.get_or_insert(now);
    }

    /// Begins a pass: schedules the next one, and reloads the mirror if that is due. `false` if there is nothing more to do, because the
    /// tree has not changed since the last pass and time alone makes no difference.
    pub(super) async fn begin_pass(
        &mut self,
        mirror: &mut Mirror,
        has_undecided: bool,
    ) -> Result<bool, Error> {
        let now = mirror.now();
        self.schedule(mirror.context(), has_undecided);
        if mirror.context().flaws.has(Flaw::NoJanitor) {
            return Ok(false);
        }
        mirror.retry_denied();
        self.reload(mirror, now).await?;
        mirror.refresh().await?;
        let depends_on_time =
            has_undecided || !self.abandoned.is_empty() || self.idle_since.is_some();
        let is_unchanged =
            self.passed_at_change.replace(mirror.changes()) == Some(mirror.changes());
        Ok(!is_unchanged || depends_on_time)
    }

    /// Removes what is left over.
    pub(super) async fn clean_up(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let now = mirror.now();
        for path in leftovers(&mirror.assignment()) {
            let op = Op::Delete { path, expected: ExpectedVersion::Any };
            match mirror.write(vec![op]).await {
                Ok(_) | Err(Error::Operation { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if mirror.assignment().is_leader() == Some(true) {
            self.remove_abandoned_servers(mirror, now).await?;
        } else {
            self.abandoned.clear();
        }
        self.nudge_java_leader(mirror, now).await?;
        mirror.refresh().await
    }

    /// Reloads the mirror as often as the job says, whatever the watch has delivered.
    async fn reload(&mut self, mirror: &mut Mirror, now: Monotonic) -> Result<(), Error> {
        let Some(interval) = mirror.job().reconcile.interval() else { return Ok(()) };
        if self.reloaded_at.is_some_and(|last| now < last + interval) {
            return Ok(());
        }
        self.reloaded_at = Some(now);
        mirror.reload().await
    }

    /// By version: an instance that joins meanwhile may have written its status. An instance that joined before checks that its server exists, and
    /// creates it again.
    async fn remove_abandoned_servers(
        &mut self,
        mirror: &mut Mirror,
        now: Monotonic,
    ) -> Result<(), Error> {
        for (address, version) in self.abandoned_servers(mirror.view(), now) {
            let path = mirror.tree().server(&address);
            let expected = ExpectedVersion::Version(version);
            match mirror.context().registry.delete(&path, expected).await {
                Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) if error.is_denial() => {
                    tracing::warn!(job = %mirror.job().name, address, %error, "abandoned server cannot be removed");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Servers that have had no instance for long enough: pods have new addresses every time. A disabled server stays, because an operator
    /// disabled it on purpose. Pure, but for what it remembers.
    fn abandoned_servers(&mut self, view: &View, now: Monotonic) -> Vec<(String, Version)> {
        let in_use = servers_in_use(view);
        self.abandoned
            .retain(|address, _| view.servers.contains_key(address) && !in_use.contains(address));
        let mut expired = Vec::new();
        for (address, status) in &view.servers {
            let is_enabled = matches!(
                StoredStatus::of(status),
                Some(StoredStatus::Enabled | StoredStatus::Empty)
            );
            let version = status.document().filter(|_| is_enabled).map(|document| document.version);
            let Some(version) = version.filter(|_| !in_use.contains(address)) else { continue };
            let since = *self.abandoned.entry(address.clone()).or_insert(now);
            if now >= since + SERVER_RETENTION {
                expired.push((address.clone(), version));
            }
        }
        expired
    }

    /// A Java leader that took its list of instances before we joined never looks at us again, unless our server changes.
    async fn nudge_java_leader(&mut self, mirror: &Mirror, now: Monotonic) -> Result<(), Error> {
        if !is_overlooked(&mirror.assignment()) {
            self.idle_since = None;
            return Ok(());
        }
        let since = *self.idle_since.get_or_insert(now);
        if now < since + IDLE_TIMEOUT {
            return Ok(());
        }
        self.idle_since = None;
        let path = mirror.tree().server(mirror.own_id().server());
        let data = stored_data(true).into();
        match mirror.context().registry.set(&path, data, ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) if error.is_denial() => {
                tracing::warn!(job = %mirror.job().name, %error, "own server cannot be written");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Nodes that no instance will ever act on: triggers of absent instances and, if we lead, flags of shards that must not be taken over. Pure.
fn leftovers(assignment: &Assignment<'_>) -> Vec<Path> {
    let Assignment { view, job, .. } = assignment;
    let tree = view.tree();
    let triggers = view.triggers.iter().filter(|id| !view.instances.contains_key(*id));
    let mut leftovers: Vec<Path> = triggers.map(|id| tree.trigger(id)).collect();
    if assignment.is_leader() == Some(true) {
        let is_off = job.failover == Failover::Wait;
        let flags = view.failover_items.iter();
        let flags = flags.filter(|shard| is_off || **shard >= job.shards.get());
        leftovers.extend(flags.map(|shard| tree.failover_item(*shard)));
    }
    leftovers
}

fn servers_in_use(view: &View) -> BTreeSet<String> {
    let ids = view.instances.keys().filter_map(|id| id.parse::<InstanceId>().ok());
    ids.map(|id| id.server().to_owned()).collect()
}

/// Whether a Java leader has assigned us nothing although another instance has two shards. Pure.
fn is_overlooked(assignment: &Assignment<'_>) -> bool {
    let Assignment { view, job, own_id } = assignment;
    let leader = view.leader.as_ref().and_then(CachedNode::text);
    let is_java =
        leader.and_then(|id| id.parse::<InstanceId>().ok()).is_some_and(|id| id.is_java());
    let owners: Vec<&str> = view
        .shards
        .range(..job.shards.get())
        .filter_map(|(_, shard)| shard.owner.as_ref().and_then(CachedNode::text))
        .collect();
    let has_two = owners.iter().any(|id| owners.iter().filter(|other| *other == id).count() > 1);
    is_java
        && assignment.is_settled()
        && assignment.is_enabled() == Some(true)
        && job.resharding != Resharding::Static
        && has_two
        && !owners.contains(&own_id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{
        member::test_view::{JAVA, OTHER, TestView, US, at},
        tree::JobTree,
    };

    fn names(test: &TestView) -> Vec<String> {
        leftovers(&test.assignment()).iter().map(|path| path.name().to_owned()).collect()
    }

    #[test]
    fn triggers_of_absent_instances_are_left_over() {
        let test = TestView::new(1, &[US])
            .with(|tree| tree.trigger(US), "")
            .with(|tree| tree.trigger(OTHER), "");

        assert_eq!(names(&test), [OTHER]);
    }

    #[test]
    fn flags_that_no_instance_may_act_on_are_left_over_for_the_leader() {
        let test = TestView::new(1, &[US])
            .job(|job| job.failover(Failover::TakeOver))
            .with(|tree| tree.failover_item(0), "")
            .with(|tree| tree.failover_item(7), "");
        assert!(names(&test).is_empty());

        let leading = test.with(JobTree::leader, US);
        assert_eq!(names(&leading), ["7"], "there is no such shard");
        let off = leading.job(|job| job.failover(Failover::Wait));
        assert_eq!(names(&off), ["0", "7"]);
    }

    #[test]
    fn enabled_server_without_an_instance_is_removed_after_the_retention() {
        let test = TestView::new(1, &[US])
            .with(|tree| tree.server("10.0.0.7"), "")
            .with(|tree| tree.server("10.0.0.8"), "ENABLED")
            .with(|tree| tree.server("10.0.0.9"), "DISABLED");
        let mut janitor = Janitor::default();

        assert!(janitor.abandoned_servers(&test.view, at(0)).is_empty());
        assert!(janitor.abandoned_servers(&test.view, at(599)).is_empty());
        let abandoned = janitor.abandoned_servers(&test.view, at(600));
        let addresses: Vec<String> = abandoned.into_iter().map(|(address, _)| address).collect();
        assert_eq!(addresses, ["10.0.0.7", "10.0.0.8"]);
    }

    #[test]
    fn instance_is_overlooked_if_a_java_leader_gives_two_shards_to_another() {
        let test = TestView::new(2, &[US, OTHER, JAVA]).owners(&[OTHER, OTHER]);
        assert!(!is_overlooked(&test.assignment()), "no instance leads");

        let test = test.with(JobTree::leader, JAVA);
        assert!(is_overlooked(&test.assignment()));
        assert!(!is_overlooked(&test.owners(&[US, OTHER]).assignment()));
    }
}
