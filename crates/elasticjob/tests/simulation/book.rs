//! What happened, and whether it was allowed to.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::{
    line::Shared,
    process::{Life, TrueTime},
};
use elasticjob::{
    coordination::ledger::{Page, State},
    job::{InstanceId, LeaseLoss, Reason, RunId, Shard},
    registry::{Op, SessionId},
};

/// A shard of a job.
pub(super) type Place = (String, u32);

/// More requests than this are a loop that never waits.
const REQUESTS: u64 = 100_000;
/// How long something that was lost may wait to be taken over while nothing is wrong: as long as the longest run, and a bit.
pub(super) const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// How long a claim may have been gone before what runs under it has to have ended.
const STOPPED_WITHIN: Duration = Duration::from_secs(3);

/// Everything that happened.
pub(super) struct Book {
    time: TrueTime,
    inner: Mutex<Inner>,
    /// Told at the first violation.
    pub(super) broken: Notify,
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) timeline: Vec<(Duration, String)>,
    pub(super) violations: Vec<String>,
    pub(super) executions: Vec<Execution>,
    shards: BTreeMap<Place, Track>,
    /// The session of every instance there ever was.
    sessions: BTreeMap<String, SessionId>,
    ended_sessions: BTreeSet<SessionId>,
    /// Jobs whose shards are dealt right now, or are about to be.
    blocked: BTreeMap<(String, String), Option<SessionId>>,
    /// What Java instances run.
    java: BTreeSet<Place>,
    pub(super) requests: u64,
    /// Since when nothing is wrong anywhere.
    pub(super) calm_since: Option<Duration>,
    /// When nothing was wrong, from until.
    pub(super) calm: Vec<(Duration, Duration)>,
}

/// What is known of a shard from what was committed.
#[derive(Default)]
struct Track {
    page: Page,
    owner: Option<String>,
    /// The owner when it was last claimed.
    owner_at_claim: Option<String>,
    /// Shards were being dealt when it was last claimed, and still are.
    is_blocked: bool,
    /// Runs that were written down as ended.
    ended: BTreeSet<String>,
    /// Somebody died with it in hand, then, and nobody has run it since.
    death: Option<Duration>,
    /// The job has taken over what is lost for as long as whoever had it last.
    is_promised: bool,
    /// Java, which writes down nothing, began to run it then.
    java_began: Option<Duration>,
    /// `running` was taken away under whoever had it, then.
    robbed: Option<Duration>,
    highest_token: i64,
}

/// A handler that ran.
pub(super) struct Execution {
    pub(super) node: usize,
    pub(super) place: Place,
    pub(super) run: RunId,
    pub(super) due_at: Timestamp,
    pub(super) reason: Reason,
    session: SessionId,
    policy: LeaseLoss,
    line: Arc<Shared>,
    pub(super) begun: Duration,
    pub(super) ended: Option<(Duration, &'static str)>,
}

/// What a job promised when a shard began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) policy: LeaseLoss,
    pub(super) takes_over: bool,
    pub(super) wanders: bool,
    pub(super) has_java: bool,
}

impl Book {
    pub(super) fn new(time: TrueTime) -> Self {
        Self { time, inner: Mutex::default(), broken: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, what: fmt::Arguments<'_>) {
        self.lock().timeline.push((self.time.elapsed(), what.to_string()));
    }

    /// A promise was broken.
    pub(super) fn violated(&self, what: fmt::Arguments<'_>) {
        let mut inner = self.lock();
        inner.timeline.push((self.time.elapsed(), format!("VIOLATION: {what}")));
        inner.violations.push(what.to_string());
        self.broken.notify_one();
    }

    pub(super) fn count_request(&self) {
        let mut inner = self.lock();
        inner.requests += 1;
        let is_much = inner.requests == REQUESTS;
        drop(inner);
        if is_much {
            self.violated(format_args!("{REQUESTS} requests: somebody asks without ever waiting"));
        }
    }

    /// Whether something is wrong somewhere, as of now.
    pub(super) fn disturbed(&self, is_disturbed: bool) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        match (inner.calm_since, is_disturbed) {
            (Some(since), true) => {
                inner.calm.push((since, now));
                inner.calm_since = None;
            }
            (None, false) => inner.calm_since = Some(now),
            _ => {}
        }
    }

    /// A multi was carried out.
    pub(super) fn committed(&self, node: usize, session: SessionId, ops: &[Op]) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        for op in ops {
            let path = op.path().as_str();
            let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
            match (parts.as_slice(), op) {
                (["sim", _, "instances", id], Op::Create(_)) => {
                    inner.sessions.insert((*id).to_owned(), session);
                }
                (["sim", job, "leader", "sharding", flag], Op::Create(create)) => {
                    let flag = ((*job).to_owned(), (*flag).to_owned());
                    inner.blocked.insert(flag, create.kind.session());
                }
                (["sim", job, "leader", "sharding", flag], Op::Delete { .. }) => {
                    inner.blocked.remove(&((*job).to_owned(), (*flag).to_owned()));
                }
                (["sim", job, "sharding", shard, part], op) => {
                    let Ok(shard) = shard.parse() else { continue };
                    let track = inner.shards.entry(((*job).to_owned(), shard)).or_default();
                    match (*part, op) {
                        ("instance", Op::Create(create)) => {
                            track.owner = Some(String::from_utf8_lossy(&create.data).into_owned());
                        }
                        ("instance", Op::Set { data, .. }) => {
                            track.owner = Some(String::from_utf8_lossy(data).into_owned());
                        }
                        ("instance", Op::Delete { .. }) => track.owner = None,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        inner.unblock();
        let mut wrong = Vec::new();
        for op in ops {
            let (path, data) = match op {
                Op::Create(create) => (&create.path, &create.data),
                Op::Set { path, data, .. } => (path, data),
                _ => continue,
            };
            let Some(rest) = path.as_str().strip_prefix("/sim~ledger/") else { continue };
            let Some((job, shard)) = rest.split_once('/') else { continue };
            let (Ok(shard), Ok(page)) = (shard.parse::<u32>(), Page::read(data)) else { continue };
            wrong.extend(inner.turn(now, node, session, &(job.to_owned(), shard), page));
        }
        drop(inner);
        for wrong in wrong {
            self.violated(format_args!("{wrong}"));
        }
    }

    /// The server ended a session: whoever had it is dead, and what it held is lost.
    pub(super) fn session_ended(&self, session: SessionId) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        let Inner { shards, sessions, ended_sessions, timeline, blocked, .. } = &mut *inner;
        ended_sessions.insert(session);
        blocked.retain(|_, of| *of != Some(session));

        for ((job, shard), track) in shards {
            let owner = track.page.owner.as_ref().filter(|_| track.page.state == State::Running);
            if owner.is_some_and(|owner| sessions.get(owner.as_str()) == Some(&session)) {
                track.death = Some(now);
                timeline.push((now, format!("{job}/{shard} was in hand when its instance died")));
            }
        }
        inner.unblock();
    }

    /// From now on nobody takes over what is lost of this job, nor what was lost before.
    pub(super) fn takes_nothing_over(&self, job: &str) {
        for ((of, _), track) in &mut self.lock().shards {
            track.is_promised &= of != job;
        }
    }

    /// A Java instance runs a shard.
    pub(super) fn java_begins(&self, id: &InstanceId, place: &Place) {
        self.tell(format_args!("{id} begins {}/{}", place.0, place.1));
        let mut inner = self.lock();
        inner.java.insert(place.clone());
        let track = inner.shards.entry(place.clone()).or_default();
        track.java_began = Some(self.time.elapsed());
        track.death = None;
    }

    pub(super) fn java_ended(&self, place: &Place) {
        self.tell(format_args!("Java ends {}/{}", place.0, place.1));
        self.lock().java.remove(place);
    }

    /// A Java instance had this shard in hand and is dead.
    pub(super) fn java_died(&self, place: &Place) {
        let now = self.time.elapsed();
        self.lock().shards.entry(place.clone()).or_default().death = Some(now);
    }

    /// Somebody took `running` away.
    pub(super) fn robbed(&self, place: &Place) {
        self.tell(format_args!("Java takes `running` of {}/{} away", place.0, place.1));
        let now = self.time.elapsed();
        self.lock().shards.entry(place.clone()).or_default().robbed = Some(now);
    }

    /// A process is gone, and everything in it.
    pub(super) fn process_gone(&self, node: usize) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        for execution in &mut inner.executions {
            if execution.node == node && execution.ended.is_none() {
                execution.ended = Some((now, "crashed"));
            }
        }
    }

    /// A handler begins; says as which execution it is known.
    pub(super) fn begins(&self, line: &Arc<Shared>, shard: &Shard, terms: Terms) -> usize {
        let now = self.time.elapsed();
        let place = (shard.job.to_string(), shard.item);
        let node = line.node;
        let name = format!(
            "{}/{} {} #{} {:?}",
            place.0,
            place.1,
            brief(&shard.run, &self.time),
            shard.attempt.number,
            shard.attempt.reason
        );
        let mut inner = self.lock();
        inner.timeline.push((now, format!("n{node} begins {name} token {}", shard.token.get())));
        // The session in which it was claimed, which need not be the one its process has now.
        let claimed_by = inner.sessions.get(shard.task.instance.as_str()).copied();
        let session = claimed_by.unwrap_or_else(|| line.session_id());
        let wrong = inner.judge_begin(now, line, session, shard, terms, &name);
        let execution = Execution {
            node,
            place,
            run: shard.run.clone(),
            due_at: shard.due_at,
            reason: shard.attempt.reason,
            session,
            policy: terms.policy,
            line: Arc::clone(line),
            begun: now,
            ended: None,
        };
        inner.executions.push(execution);
        let number = inner.executions.len() - 1;
        drop(inner);
        for wrong in wrong {
            self.violated(format_args!("{wrong}"));
        }
        number
    }

    /// A handler is polled.
    pub(super) fn polled(&self, number: usize) {
        let now = self.time.elapsed();
        let inner = self.lock();
        let execution = &inner.executions[number];
        // As with a beginning: whoever died at this very instant does nothing more on a real machine.
        if execution.line.process.life() == Life::Gone {
            return;
        }
        let name = format!(
            "{}/{} {}",
            execution.place.0,
            execution.place.1,
            brief(&execution.run, &self.time)
        );
        let is_late =
            execution.policy == LeaseLoss::Cancel && !execution.line.believes_in(execution.session);
        let robbed = inner.shards.get(&execution.place).and_then(|track| track.robbed);
        let is_robbed = execution.policy == LeaseLoss::Cancel
            && robbed.is_some_and(|then| {
                then >= execution.begun
                    && now > then + STOPPED_WITHIN
                    && inner.calm_since.is_some_and(|since| now > since + STOPPED_WITHIN)
            });
        let node = execution.node;
        drop(inner);
        if is_late {
            self.violated(format_args!("n{node} goes on with {name} after its lease has ended"));
        }
        if is_robbed {
            self.violated(format_args!(
                "n{node} goes on with {name} although its claim was taken away"
            ));
        }
    }

    pub(super) fn ended(&self, number: usize, how: &'static str) {
        let now = self.time.elapsed();
        let mut inner = self.lock();
        let execution = &mut inner.executions[number];
        if execution.ended.is_some() {
            return;
        }
        execution.ended = Some((now, how));
        let told = format!(
            "n{} {how} {}/{} {}",
            execution.node,
            execution.place.0,
            execution.place.1,
            brief(&execution.run, &self.time)
        );
        inner.timeline.push((now, told));
    }
}

impl Inner {
    /// A page was written.
    fn turn(
        &mut self,
        now: Duration,
        node: usize,
        session: SessionId,
        place: &Place,
        page: Page,
    ) -> Vec<String> {
        let is_blocked = self.blocked.keys().any(|(job, _)| *job == place.0);
        let mut wrong = Vec::new();
        let Self { shards, sessions, ended_sessions, timeline, .. } = self;
        let track = shards.entry(place.clone()).or_default();
        let name = format!("{}/{}", place.0, place.1);
        let holder = track.page.owner.as_ref().filter(|_| track.page.state == State::Running);
        // Whoever takes back a claim of its own writes what was there before.
        let other = holder.filter(|holder| {
            let of = sessions.get(holder.as_str());
            of.is_some_and(|of| !ended_sessions.contains(of) && *of != session)
        });
        match page.state {
            State::Running => {
                if let Some(other) = other {
                    wrong.push(format!("n{node} claims {name}, which {other} holds"));
                }
                track.owner_at_claim = track.owner.clone();
                track.is_blocked = is_blocked;
                track.robbed = None;
            }
            State::Done | State::Failed => {
                if let Some(run) = &page.run {
                    track.ended.insert(run.to_string());
                }
            }
            State::Lost => {
                if let Some(other) = other {
                    wrong.push(format!("n{node} buries {name}, which {other} holds and lives"));
                }
            }
            State::Fresh => {}
        }
        let run = page.run.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string);
        timeline
            .push((now, format!("n{node} writes {name} {:?} {run} #{}", page.state, page.attempt)));
        track.page = page;
        wrong
    }

    /// Where nobody deals any more, claims count.
    fn unblock(&mut self) {
        let Self { shards, blocked, .. } = self;
        for ((job, _), track) in shards {
            track.is_blocked &= blocked.keys().any(|(blocked, _)| blocked == job);
        }
    }

    fn judge_begin(
        &mut self,
        now: Duration,
        line: &Arc<Shared>,
        session: SessionId,
        shard: &Shard,
        terms: Terms,
        name: &str,
    ) -> Vec<String> {
        let node = line.node;
        let place = (shard.job.to_string(), shard.item);
        let mut wrong = Vec::new();
        // A task that was on its way when its process died at this very instant: on a real machine it is gone.
        if line.process.life() == Life::Gone {
            return wrong;
        }
        let mut say = |what: String| wrong.push(format!("n{node} begins {name}: {what}"));
        let is_believed = line.believes_in(session);
        let is_retry = shard.attempt.reason == Reason::Retry;
        if terms.policy != LeaseLoss::Continue && !is_believed {
            say("it has no lease".into());
        }
        for other in
            self.executions.iter().filter(|other| other.place == place && other.ended.is_none())
        {
            if other.node == node {
                say("this process runs it already".into());
            } else if other.line.process.life() != Life::Gone
                && is_believed
                && other.line.believes_in(other.session)
            {
                say(format!("n{} runs it with a valid lease", other.node));
            }
        }
        if self.java.contains(&place) && is_believed {
            say("a Java instance runs it".into());
        }
        let calm_since = self.calm_since;
        let track = self.shards.entry(place.clone()).or_default();
        let token = shard.token.get();
        if token < track.highest_token || (token == track.highest_token && !is_retry) {
            say(format!("token {token} does not grow, {} was given before", track.highest_token));
        }
        track.highest_token = track.highest_token.max(token);
        if track.ended.contains(&shard.run.to_string()) && !is_retry {
            say("this run of it is written down as ended".into());
        }
        let is_held = track.page.state == State::Running
            && track.page.owner.as_ref() == Some(&shard.task.instance)
            && track.page.run.as_ref() == Some(&shard.run);
        if is_believed && !is_held {
            say("it is not claimed".into());
        }
        let is_regular =
            matches!(shard.attempt.reason, Reason::Due | Reason::Misfire | Reason::CatchUp);
        let me = Some(shard.task.instance.as_str());
        let is_owner = track.owner_at_claim.as_deref() == me || track.owner.as_deref() == me;
        if is_regular && is_believed && !terms.wanders && !is_owner {
            say(format!("it belonged to {:?} when it was claimed", track.owner_at_claim));
        }
        if is_regular && is_believed && track.is_blocked {
            say("shards were being dealt when it was claimed, and still are".into());
        }
        // Whoever came after Java ran it cannot know that it did.
        let could_know = track.java_began.is_none_or(|then| line.connected_since() < then);
        if shard.attempt.reason == Reason::Failover && track.death.is_none() && could_know {
            say("nobody died with it in hand since it last ran".into());
        }
        // What goes on without its claim, as the job allows, makes up for nothing.
        let death = if is_held { track.death.take() } else { None };
        let was_promised = std::mem::replace(&mut track.is_promised, terms.takes_over);
        if let Some(death) = death.filter(|_| was_promised && !terms.has_java) {
            let waited = calm_since.map(|since| now.saturating_sub(since.max(death)));
            if waited.is_some_and(|waited| waited > TAKEN_WITHIN) {
                say(format!(
                    "its instance died {} s ago, and nobody took it over though nothing was wrong",
                    now.saturating_sub(death).as_secs()
                ));
            }
        }
        wrong
    }
}

/// A run as a person reads it.
fn brief(run: &RunId, time: &TrueTime) -> String {
    match run.due_at() {
        Some(due_at) => format!("@{}", time.since_epoch(due_at).as_secs()),
        None => format!("!{}", &run.to_string()[..8]),
    }
}
