//! Leading: being elected, assigning the shards, stepping down.
//!
//! If no instance leads, the first of the enabled instances stands for election; the others do so only if there is no leader after a while, so that
//! a change of the leader does not cost requests of every instance. While a Java instance is a member, all stand at once, as Java instances do.
//!
//! The leader assigns shards whenever instances, servers or the number of shards are not those of its last assignment, or `necessary` asks
//! for it. It creates `processing` first; from then on no instance starts anything. What it sees after that write decides; the transaction
//! that assigns checks that the instance still exists, that there is a leader, and that the configuration is the same. If the view changed meanwhile, it assigns again; if
//! that happens again and again, it waits in between, because the tree may refuse for ever. Shards beyond the shard count are deleted in transactions
//! of their own, so that one that cannot be deleted stops no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::Arc,
    time::Duration,
};

use futures_util::FutureExt;

use super::{
    assignment::Assignment, context::Context, mirror::Mirror, refusals::Refusals,
    sole_entry::AssignedFor,
};
use crate::{
    coordination::{
        latch,
        sharding::{available_instances, plan},
        tree::{JobTree, ShardNode, TreeNode},
        view::CachedNode,
    },
    job::{InstanceId, Resharding},
    registry::{Create, Error, ExpectedVersion, Op, Path, Registry, SessionId},
    runtime::Monotonic,
};

/// How long a candidate queues for leadership before it looks again whether a leader is still needed.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the other candidates leave the first one the time to become the leader.
const CANDIDATE_DELAY: Duration = Duration::from_secs(1);
/// How long the leader's instance may be absent: Java deletes and re-creates its instance node whenever it reconnects.
const ABSENT_LEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an instance that no longer leads may take to end an assignment that it has begun.
const FOREIGN_ASSIGNMENT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Leadership {
    /// What our last assignment is for.
    assigned_for: Option<AssignedFor>,
    /// Shards that were to move and still ran.
    moves_later: BTreeSet<u32>,
    is_electing: bool,
    /// While no instance leads: when we stand for election.
    elects_at: Option<Monotonic>,
    /// We have created `processing` and do not know that it is gone.
    is_assigning: bool,
    /// While we lead: when the assignment of another instance has taken too long.
    unblocks_at: Option<Monotonic>,
    /// A leader that is not an instance of the job, and when it may be deposed.
    absent_leader: Option<(String, Monotonic)>,
    /// Shards beyond the shard count that we could not delete.
    undeletable: BTreeSet<u32>,
    /// Assignments that were refused.
    refusals: Refusals,
    /// After too many refusals: when we may assign again.
    assigns_at: Option<Monotonic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderDuty {
    /// An assignment does not end, and every instance waits for it.
    Unblock,
    /// The leader has left the job, its process lives, and its node stayed behind.
    Depose,
    Elect,
    StepDown,
    Assign,
}

impl Leadership {
    /// `assigned_for`: the assignment that was made in joining.
    pub(super) fn new(assigned_for: Option<AssignedFor>) -> Self {
        Self { assigned_for, ..Self::default() }
    }

    /// Only the leader assigns. Another instance's assignment is one that it began when it led, and may never end: a Java leader whose job is
    /// shut down in the middle of it leaves `processing` behind for as long as its process lives. Without `processing`, whatever it still
    /// writes is refused.
    pub(super) fn observe(&mut self, assignment: &Assignment<'_>, now: Monotonic) {
        let is_foreign = assignment.view.processing
            && !self.is_assigning
            && assignment.is_leader() == Some(true);
        self.unblocks_at =
            is_foreign.then(|| self.unblocks_at.unwrap_or(now + FOREIGN_ASSIGNMENT_TIMEOUT));
        self.assigns_at.take_if(|at| now >= *at);
        self.elects_at =
            if assignment.view.leader.is_some() || assignment.is_enabled() != Some(true) {
                None
            } else if is_first_candidate(assignment) {
                Some(now)
            } else {
                Some(self.elects_at.unwrap_or(now + CANDIDATE_DELAY))
            };
        if let Some(absent) = absent_leader(assignment) {
            let since = self.absent_leader.take().filter(|(id, _)| id == absent);
            let at = since.map_or(now + ABSENT_LEADER_TIMEOUT, |(_, at)| at);
            self.absent_leader = Some((absent.to_owned(), at));
        } else {
            self.absent_leader = None;
        }
    }

    /// Most urgent first. Pure.
    pub(super) fn duties(&self, assignment: &Assignment<'_>, now: Monotonic) -> Vec<LeaderDuty> {
        let mut duties = Vec::new();
        let is_overdue = self.unblocks_at.is_some_and(|at| now >= at);
        if assignment.view.processing && (self.is_assigning || is_overdue) {
            duties.push(LeaderDuty::Unblock);
        }
        let (Some(is_enabled), Some(is_leader)) = (assignment.is_enabled(), assignment.is_leader())
        else {
            return duties;
        };
        if is_enabled && self.absent_leader.as_ref().is_some_and(|(_, at)| now >= *at) {
            duties.push(LeaderDuty::Depose);
        }
        let may_elect = !self.is_electing && self.elects_at.is_none_or(|at| now >= at);
        if assignment.view.leader.is_none() && is_enabled && may_elect {
            duties.push(LeaderDuty::Elect);
        }
        if is_leader && !is_enabled {
            duties.push(LeaderDuty::StepDown);
        } else if is_leader && self.assigns_at.is_none() && self.should_assign(assignment) {
            duties.push(LeaderDuty::Assign);
        }
        duties
    }

    pub(super) fn next_duty_at(&self) -> Option<Monotonic> {
        let deposes_at = self.absent_leader.as_ref().map(|(_, at)| *at);
        let elects_at = self.elects_at.filter(|_| !self.is_electing);
        [self.unblocks_at, self.assigns_at, deposes_at, elects_at].into_iter().flatten().min()
    }

    fn should_assign(&self, assignment: &Assignment<'_>) -> bool {
        let Assignment { view, job, .. } = assignment;
        let Some(candidates) = available_instances(view) else { return false };
        if candidates.is_empty() {
            return false;
        }
        let total = job.shards.get();
        let is_complete = assignment.is_complete();
        if job.resharding == Resharding::Static && is_complete {
            return false;
        }
        let present: BTreeSet<String> =
            candidates.into_iter().map(|candidate| candidate.id).collect();
        let is_for_these = self
            .assigned_for
            .as_ref()
            .is_some_and(|(instances, count)| *instances == present && *count == total);
        let can_move = self
            .moves_later
            .iter()
            .any(|shard| view.shards.get(shard).is_some_and(|shard| shard.running.is_none()));
        let has_surplus = view
            .shards
            .range(total..)
            .any(|(number, shard)| shard.running.is_none() && !self.undeletable.contains(number));
        view.necessary
            || !is_for_these
            || !is_complete
            || can_move
            || assignment.has_absent_owners()
            || has_surplus
    }

    /// Begins an election: the returned future queues in the latch that Java instances use, and has to be polled elsewhere, because
    /// it waits for others. [`election_ended`](Self::election_ended) has to follow it.
    pub(super) fn elect(&mut self, context: &Context) -> impl Future<Output = ()> + Send + 'static {
        self.is_electing = true;
        let registry = Arc::clone(&context.registry);
        let (tree, own_id) = (context.tree.clone(), context.own_id.clone());
        let (session, ticket) = (context.session.id(), context.randomness.bits());
        async move {
            if let Err(error) = run_election(&*registry, &tree, &own_id, session, ticket).await {
                tracing::warn!(instance = %own_id, %error, "election failed");
            }
        }
    }

    pub(super) fn election_ended(&mut self) {
        self.is_electing = false;
    }

    /// Assigns the shards; `false` if that has to wait until another assignment has ended.
    pub(super) async fn assign(&mut self, mirror: &mut Mirror) -> Result<bool, Error> {
        if mirror.view().processing {
            return Ok(false);
        }
        let instance = Op::Check {
            path: mirror.tree().instance(mirror.own_id()),
            expected: ExpectedVersion::Any,
        };
        self.is_assigning = true;
        match mirror.write(begin_assignment(mirror, instance.clone())).await {
            Ok(_) => {}
            Err(error) if error.is_refusal() => {
                self.is_assigning = false;
                self.note_refusal(mirror, &error);
                return mirror.refresh().await.map(|()| true);
            }
            Err(error) => return Err(error),
        }
        // From here on no instance starts anything, and everything committed before is visible.
        mirror.refresh().await?;
        let leader = mirror.view().leader.clone();
        let now_ms = mirror.context().clock.now().as_millisecond();
        let planned = plan(mirror.view(), mirror.job(), &mirror.context().strategies, now_ms)
            .filter(|_| mirror.assignment().is_leader() == Some(true));
        let Some(planned) = planned else {
            self.unblock(mirror).await?;
            return Ok(false);
        };
        let leads = Op::Check { path: mirror.tree().leader(), expected: ExpectedVersion::Any };
        // The shard count: a shard beyond it may be one of the job again.
        let config = mirror.view().config.as_ref().and_then(CachedNode::document);
        let config = Op::Check {
            path: mirror.tree().config(),
            expected: config
                .map_or(ExpectedVersion::Any, |config| ExpectedVersion::Version(config.version)),
        };
        let conditions = [instance, leads, config];
        let written = match self.remove_surplus(mirror, &conditions, planned.removals).await {
            Ok(()) => write_assignment(mirror, &conditions, &planned.ops).await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => {
                self.is_assigning = false;
                self.refusals = Refusals::default();
                tracing::info!(job = %mirror.job().name, instances = planned.instances.len(), shards = planned.owners.len(), "shards assigned");
                self.assigned_for = Some((planned.instances, mirror.job().shards.get()));
                self.moves_later = planned.deferred;
            }
            Err(error) if error.is_refusal() => {
                // The next plan leaves out a shard whose owner may not be changed.
                if let Error::Operation { cause, .. } = &error
                    && let Error::NotAuthorised { path } = &**cause
                {
                    mirror.record_denied(path);
                }
                self.note_refusal(mirror, &error);
                self.unblock(mirror).await?;
            }
            Err(error) => return Err(error),
        }
        mirror.refresh().await?;
        if mirror.view().leader != leader {
            self.request_assignment(mirror).await?;
        }
        Ok(true)
    }

    /// The tree changed during an assignment, or will always refuse it. The first refusals are followed by another assignment at once, later ones
    /// after a growing delay.
    fn note_refusal(&mut self, mirror: &Mirror, error: &Error) {
        let job = &mirror.job().name;
        let delay = self.refusals.note(mirror.now());
        self.assigns_at = self.refusals.retry_at(mirror.now());
        let Some(delay) = delay else {
            tracing::debug!(%job, %error, "tree changed during the assignment, assigning again");
            return;
        };
        tracing::warn!(%job, refusals = self.refusals.count(), ?delay, %error, "assignment refused, waiting before the next one");
    }

    /// Deletes shards beyond the shard count, if we still lead. A shard that cannot be deleted is reported and stays: it must not stop the others.
    async fn remove_surplus(
        &mut self,
        mirror: &Mirror,
        conditions: &[Op],
        mut removals: BTreeMap<u32, Vec<Op>>,
    ) -> Result<(), Error> {
        let total = mirror.job().shards.get();
        if self.assigned_for.as_ref().is_none_or(|(_, count)| *count != total) {
            self.undeletable.clear();
        }
        removals.retain(|shard, _| !self.undeletable.contains(shard));
        let all: Vec<Op> = removals.values().flatten().cloned().collect();
        let mut is_refused = false;
        for batch in mirror.context().registry.limits().batches(conditions, &all) {
            match mirror.write(conditions.iter().chain(batch).cloned().collect()).await {
                Ok(_) => {}
                // Not one of the conditions: there are nodes below one of these shards that we do not know.
                Err(Error::Operation { index, .. }) if index >= conditions.len() => {
                    is_refused = true;
                }
                Err(error) => return Err(error),
            }
        }
        if !is_refused {
            return Ok(());
        }
        for (shard, ops) in removals {
            match remove_shard(mirror, conditions, shard, ops).await {
                Ok(()) => {}
                Err(error) if is_lasting(&error, conditions.len()) => {
                    let path = mirror.tree().shard(shard, ShardNode::Root);
                    tracing::warn!(job = %mirror.job().name, shard, %path, %error, hint = "delete this node and all below it", "shard beyond the shard count cannot be deleted");
                    self.undeletable.insert(shard);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Another instance leads by now and may have assigned before us: it has to assign again.
    async fn request_assignment(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        self.assigned_for = None;
        let flag = Op::Create(Create::persistent(&mirror.tree().necessary(), ""));
        match mirror.write(vec![flag]).await {
            Ok(_) | Err(Error::Operation { .. }) => {}
            Err(error) => return Err(error),
        }
        mirror.refresh().await
    }

    /// Deletes `processing`: our own after an answer was lost, when every instance waits for us, or that of an instance that no longer leads.
    pub(super) async fn unblock(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if !self.is_assigning {
            tracing::warn!(job = %mirror.job().name, "an instance that does not lead began an assignment and did not end it, assigning again");
        }
        let path = mirror.tree().processing();
        match mirror.context().registry.delete(&path, ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => self.is_assigning = false,
            Err(error) => return Err(error),
        }
        mirror.refresh().await
    }

    /// Before leadership is given up for good: ends an assignment that got no answer.
    pub(super) async fn end_assignment(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        if self.is_assigning && mirror.view().processing {
            self.unblock(mirror).await?;
        }
        Ok(())
    }

    /// Deletes the node of a leader that is not an instance of the job: it assigns nothing, and no other instance would be elected.
    pub(super) async fn depose(&mut self, mirror: &mut Mirror) -> Result<(), Error> {
        let known = self.absent_leader.take();
        // What we see may be old. If another instance is elected after this, it is elected once more.
        mirror.sync().await?;
        mirror.refresh().await?;
        let absent = absent_leader(&mirror.assignment());
        let Some((leader, _)) = known.filter(|(id, _)| absent == Some(id.as_str())) else {
            return Ok(());
        };
        tracing::warn!(job = %mirror.job().name, leader, "leader is not an instance of the job, electing another one");
        let path = mirror.tree().leader();
        match mirror.context().registry.delete(&path, ExpectedVersion::Any).await {
            Ok(_) | Err(Error::NotFound { .. }) => mirror.refresh().await,
            Err(error) => Err(error),
        }
    }

    pub(super) async fn step_down(&self, mirror: &mut Mirror) -> Result<(), Error> {
        if mirror.assignment().is_leader() == Some(true) {
            let leader = mirror.tree().leader();
            match mirror.context().registry.delete(&leader, ExpectedVersion::Any).await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        mirror.refresh().await
    }
}

/// The leader, if it is another instance and not one of the job.
fn absent_leader<'a>(assignment: &Assignment<'a>) -> Option<&'a str> {
    let view = assignment.view;
    let leader = view.leader.as_ref().filter(|_| view.is_current())?.text()?;
    let is_absent = !view.instances.contains_key(leader) && leader != assignment.own_id.as_str();
    is_absent.then_some(leader)
}

/// Creates `necessary` together with `processing`: Java looks at `necessary` only, and waits while it exists.
fn begin_assignment(mirror: &Mirror, instance: Op) -> Vec<Op> {
    let mut ops = vec![instance];
    if !mirror.view().necessary {
        ops.push(Op::Create(Create::persistent(&mirror.tree().necessary(), "")));
    }
    let session = mirror.context().session.id();
    ops.push(Op::Create(Create::ephemeral(&mirror.tree().processing(), "", session)));
    ops
}

/// Writes the new owners. A job of many thousands of shards takes several requests; no instance starts anything before the last of them,
/// which deletes `processing`, and a leader that comes after begins anew.
async fn write_assignment(mirror: &Mirror, conditions: &[Op], changes: &[Op]) -> Result<(), Error> {
    let delete = |path| Op::Delete { path, expected: ExpectedVersion::Any };
    let mut end = Vec::new();
    if mirror.view().necessary {
        end.push(delete(mirror.tree().necessary()));
    }
    end.push(delete(mirror.tree().processing()));
    // The end goes with the last batch, so every batch leaves room for it.
    let others: Vec<Op> = conditions.iter().chain(&end).cloned().collect();
    let mut batches = mirror.context().registry.limits().batches(&others, changes).peekable();
    loop {
        let batch = batches.next().unwrap_or_default();
        let is_last = batches.peek().is_none();
        let end = if is_last { &end[..] } else { &[] };
        mirror.write(conditions.iter().chain(batch).chain(end).cloned().collect()).await?;
        if is_last {
            return Ok(());
        }
    }
}

/// Whether the registry refuses to delete a shard for a reason of that shard: not because a condition failed, nor because of the connection.
fn is_lasting(error: &Error, conditions: usize) -> bool {
    match error {
        error if error.is_temporary() => false,
        Error::Operation { index, .. } => *index >= conditions,
        Error::SessionExpired | Error::Closed => false,
        error => !error.is_outage(),
    }
}

/// Deletes a shard beyond the shard count with everything that other programs put below it, as Java does.
///
/// Nodes that the protocol does not define are deleted one by one, after the conditions were checked. The others go in a transaction that checks them,
/// so that a former leader deletes no mark of a shard that exists again.
async fn remove_shard(
    mirror: &Mirror,
    conditions: &[Op],
    shard: u32,
    ops: Vec<Op>,
) -> Result<(), Error> {
    mirror.write(conditions.to_vec()).await?;
    let registry = &*mirror.context().registry;
    let root = mirror.tree().shard(shard, ShardNode::Root);
    let running = mirror.tree().shard(shard, ShardNode::Running);
    let children = registry.children(&root).await?.unwrap_or_default();
    let children: Vec<Path> = children.iter().filter_map(|name| root.join(name).ok()).collect();
    if children.contains(&running) {
        // It started meanwhile. A later assignment deletes it, once it has ended.
        return Ok(());
    }
    for child in children {
        let is_unknown = mirror.tree().node_at(&child) == Some(TreeNode::Other);
        for path in subtree(registry, &child).await?.into_iter().rev() {
            if path == child && !is_unknown {
                continue;
            }
            match registry.delete(&path, ExpectedVersion::Any).await {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    match mirror.write(conditions.iter().cloned().chain(ops).collect()).await {
        Ok(_) => Ok(()),
        // It was deleted, at least in part, with an earlier batch.
        Err(Error::Operation { index, cause })
            if index >= conditions.len() && matches!(*cause, Error::NotFound { .. }) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A node and all nodes below it, parents before their children.
async fn subtree(registry: &dyn Registry, root: &Path) -> Result<Vec<Path>, Error> {
    let mut found = vec![root.clone()];
    let mut next = 0;
    while let Some(path) = found.get(next).cloned() {
        next += 1;
        let children = registry.children(&path).await?.unwrap_or_default();
        found.extend(children.iter().filter_map(|name| path.join(name).ok()));
    }
    Ok(found)
}

/// Queues for the latch and becomes the leader, unless there is one.
async fn run_election(
    registry: &dyn Registry,
    tree: &JobTree,
    own_id: &InstanceId,
    session: SessionId,
    ticket: u128,
) -> Result<(), Error> {
    let turn = latch::acquire(registry, &tree.election_latch(), ticket, ELECTION_TIMEOUT).await?;
    let Some(turn) = turn else { return Ok(()) };
    let ops = vec![
        turn.check(),
        Op::Check { path: tree.instance(own_id), expected: ExpectedVersion::Any },
        Op::Create(Create::ephemeral(&tree.leader(), own_id.to_string(), session)),
    ];
    let elected = AssertUnwindSafe(registry.multi(ops)).catch_unwind().await;
    // Even after a panic: an entry that stayed would block every entry behind it until the session ends.
    turn.release(registry).await;
    match elected.unwrap_or_else(|payload| resume_unwind(payload)) {
        Ok(_) => {
            tracing::info!(instance = %own_id, "elected leader");
            Ok(())
        }
        // Another instance leads, or ours has left.
        Err(Error::Operation { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether we are the first of the instances that may lead, or cannot tell, or Java instances decide who leads.
fn is_first_candidate(assignment: &Assignment<'_>) -> bool {
    let Some(candidates) = available_instances(assignment.view) else { return true };
    let first = candidates.iter().map(|candidate| candidate.id.as_str()).min();
    first.is_none_or(|id| id == assignment.own_id.as_str()) || assignment.has_java_members()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::member::test_view::{JAVA, OTHER, TestView, US, at};

    fn duties(leadership: &Leadership, test: &TestView) -> Vec<LeaderDuty> {
        leadership.duties(&test.assignment(), at(0))
    }

    /// We lead, and have assigned both shards.
    fn leading() -> (Leadership, TestView) {
        let test = TestView::new(2, &[US, OTHER]).owners(&[US, OTHER]).with(JobTree::leader, US);
        let instances = [US, OTHER].map(str::to_owned).into();
        (Leadership { assigned_for: Some((instances, 2)), ..Leadership::default() }, test)
    }

    #[test]
    fn instance_is_a_candidate_if_no_instance_leads_and_it_is_enabled() {
        let test = TestView::new(1, &[US]);
        let mut leadership = Leadership::default();
        assert_eq!(duties(&leadership, &test), [LeaderDuty::Elect]);

        leadership.is_electing = true;
        assert_eq!(duties(&leadership, &test), []);
        leadership.election_ended();
        let disabled = test.with(|tree| tree.server("10.0.0.1"), "DISABLED");
        assert_eq!(duties(&leadership, &disabled), []);
    }

    #[test]
    fn first_candidate_stands_for_election_at_once_and_the_others_later() {
        let mut leadership = Leadership::default();
        let first = TestView::new(1, &[US, OTHER]);
        leadership.observe(&first.assignment(), at(3));
        assert_eq!(leadership.duties(&first.assignment(), at(3)), [LeaderDuty::Elect]);

        let second = TestView::new(1, &[US, "10.0.0.0@-@9-z"]);
        let mut leadership = Leadership::default();
        leadership.observe(&second.assignment(), at(3));
        leadership.observe(&second.assignment(), at(4));
        assert_eq!(leadership.next_duty_at(), Some(at(4)));
        assert_eq!(leadership.duties(&second.assignment(), at(3)), []);
        assert_eq!(leadership.duties(&second.assignment(), at(4)), [LeaderDuty::Elect]);
    }

    #[test]
    fn every_instance_stands_for_election_while_java_is_a_member() {
        let test = TestView::new(1, &[US, "10.0.0.0@-@9-z", JAVA]);
        let mut leadership = Leadership::default();
        leadership.observe(&test.assignment(), at(3));

        assert_eq!(leadership.duties(&test.assignment(), at(3)), [LeaderDuty::Elect]);
    }

    #[test]
    fn leader_steps_down_once_its_server_is_disabled() {
        let (leadership, test) = leading();
        let test = test.with(|tree| tree.server("10.0.0.1"), "DISABLED");

        assert_eq!(duties(&leadership, &test), [LeaderDuty::StepDown]);
    }

    #[test]
    fn leader_assigns_if_anything_differs_from_its_last_assignment() {
        let (leadership, test) = leading();
        assert_eq!(duties(&leadership, &test), []);

        let changed = [
            leading().1.with(JobTree::necessary, ""),
            leading().1.without(|tree| tree.instance(OTHER)),
            leading().1.job(|job| job.shards(3)),
            leading().1.part(2, ShardNode::Root, ""),
        ];
        for test in changed {
            assert_eq!(duties(&leadership, &test), [LeaderDuty::Assign]);
        }
        assert_eq!(duties(&Leadership::default(), &test), [LeaderDuty::Assign], "a new leader");
    }

    #[test]
    fn shard_that_was_to_move_is_reassigned_once_its_run_has_ended() {
        let (leadership, test) = leading();
        let leadership = Leadership { moves_later: BTreeSet::from([0]), ..leadership };
        let running = test.part(0, ShardNode::Running, US);
        assert_eq!(duties(&leadership, &running), []);

        let ended = running.without(|tree| tree.shard(0, ShardNode::Running));
        assert_eq!(duties(&leadership, &ended), [LeaderDuty::Assign]);
    }

    #[test]
    fn static_sharding_is_never_reassigned() {
        let (leadership, test) = leading();
        let mut test = test.with(JobTree::necessary, "").without(|tree| tree.instance(OTHER));
        test.job.resharding = Resharding::Static;

        assert_eq!(duties(&leadership, &test), []);
    }

    #[test]
    fn own_assignment_without_an_answer_is_ended_at_once() {
        let (leadership, test) = leading();
        let mut leadership = Leadership { is_assigning: true, ..leadership };
        let test = test.with(JobTree::processing, "");
        leadership.observe(&test.assignment(), at(0));

        assert_eq!(duties(&leadership, &test), [LeaderDuty::Unblock]);
    }

    #[test]
    fn assignment_of_a_former_leader_is_ended_after_a_timeout() {
        let (mut leadership, test) = leading();
        let test = test.with(JobTree::processing, "");
        leadership.observe(&test.assignment(), at(5));
        leadership.observe(&test.assignment(), at(14));

        assert_eq!(leadership.next_duty_at(), Some(at(15)));
        assert_eq!(leadership.duties(&test.assignment(), at(14)), []);
        assert_eq!(leadership.duties(&test.assignment(), at(15)), [LeaderDuty::Unblock]);
        leadership.observe(&leading().1.assignment(), at(15));
        assert_eq!(leadership.next_duty_at(), None);
    }

    #[test]
    fn leader_without_an_instance_is_deposed_after_a_timeout() {
        let test = || TestView::new(1, &[US]).with(JobTree::leader, OTHER);
        let mut leadership = Leadership::default();
        leadership.observe(&test().assignment(), at(3));
        leadership.observe(&test().assignment(), at(7));

        assert_eq!(leadership.next_duty_at(), Some(at(8)));
        assert_eq!(leadership.duties(&test().assignment(), at(7)), []);
        assert_eq!(leadership.duties(&test().assignment(), at(8)), [LeaderDuty::Depose]);
        // As Java does when it reconnects.
        let back = test().with(|tree| tree.instance(OTHER), "");
        leadership.observe(&back.assignment(), at(8));
        assert_eq!(leadership.next_duty_at(), None);
    }

    #[test]
    fn undeletable_shard_is_no_reason_to_assign() {
        let (leadership, test) = leading();
        let test = test.part(2, ShardNode::Root, "");
        let leadership = Leadership { undeletable: BTreeSet::from([2]), ..leadership };

        assert_eq!(duties(&leadership, &test), []);
    }

    #[test]
    fn refused_assignment_waits_before_the_next_one() {
        let (mut leadership, test) = leading();
        let test = test.with(JobTree::necessary, "");
        leadership.assigns_at = Some(at(5));
        assert_eq!(leadership.duties(&test.assignment(), at(4)), []);
        assert_eq!(leadership.next_duty_at(), Some(at(5)));
        leadership.observe(&test.assignment(), at(5));
        assert_eq!(leadership.duties(&test.assignment(), at(5)), [LeaderDuty::Assign]);
    }
}
