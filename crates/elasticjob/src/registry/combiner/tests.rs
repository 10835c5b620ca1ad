//! The combiner on a registry in memory whose requests can be held back, lost and refused.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::*;
use crate::{
    registry::{
        OpResult, Version, Zxid,
        memory::{MemoryRegistry, MemoryServer},
    },
    runtime::SystemClock,
};

/// What becomes of a multi.
enum Step {
    Execute,
    /// Executed; the answer is lost.
    LoseAnswer,
    /// Executed; the answer is lost, and another client sets this node.
    LoseAnswerAndSet(Path),
    /// Not executed; the caller cannot tell.
    LoseRequest,
    Fail(Error),
}

/// A registry in memory that notes every request, and takes the next step of the script for every multi.
struct ScriptedRegistry {
    inner: MemoryRegistry,
    limits: Limits,
    /// What was requested: the number of operations of a multi, or the name of another request.
    requests: Mutex<Vec<String>>,
    script: Mutex<VecDeque<Step>>,
    /// Multis are executed while this is true.
    is_open: watch::Sender<bool>,
}

impl ScriptedRegistry {
    fn note(&self, request: &impl ToString) {
        self.requests.lock().unwrap().push(request.to_string());
    }

    fn unknown() -> Error {
        Error::Unknown { endpoint: "test".to_owned() }
    }
}

impl fmt::Debug for ScriptedRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted registry")
    }
}

#[async_trait]
impl Registry for ScriptedRegistry {
    fn namespace(&self) -> &Namespace {
        self.inner.namespace()
    }

    fn session(&self) -> Session {
        self.inner.session()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.note(&ops.len());
        let _ = self.is_open.subscribe().wait_for(|is_open| *is_open).await;
        let step = self.script.lock().unwrap().pop_front();
        match step {
            None | Some(Step::Execute) => self.inner.multi(ops).await,
            Some(Step::LoseRequest) => Err(Self::unknown()),
            Some(Step::Fail(error)) => Err(error),
            Some(Step::LoseAnswer) => {
                self.inner.multi(ops).await.unwrap();
                Err(Self::unknown())
            }
            Some(Step::LoseAnswerAndSet(path)) => {
                self.inner.multi(ops).await.unwrap();
                self.inner.set(&path, "another".into(), ExpectedVersion::Any).await.unwrap();
                Err(Self::unknown())
            }
        }
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.note(&"get");
        self.inner.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.inner.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.inner.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.note(&"sync");
        self.inner.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.inner.watch(prefix).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

/// A combiner, and the scripted registry below it.
struct Fixture {
    combiner: Arc<Combiner>,
    registry: Arc<ScriptedRegistry>,
    callers: JoinSet<(usize, Result<Committed, Error>)>,
}

impl Fixture {
    /// With a node for each of `units` units.
    async fn new(units: usize) -> Self {
        Self::with_limits(units, Limits::ZOOKEEPER).await
    }

    async fn with_limits(units: usize, limits: Limits) -> Self {
        let server = MemoryServer::new(Arc::new(SystemClock));
        let inner = server.join("shop".parse().unwrap()).await.unwrap();
        for unit in 0..units {
            inner.create(Create::persistent(&page(unit), "before")).await.unwrap();
        }
        let registry = Arc::new(ScriptedRegistry {
            inner,
            limits,
            requests: Mutex::default(),
            script: Mutex::default(),
            is_open: watch::Sender::new(true),
        });
        let combiner = Arc::new(Combiner::new(Arc::clone(&registry) as Arc<dyn Registry>));
        Self { combiner, registry, callers: JoinSet::new() }
    }

    fn script(&self, steps: impl IntoIterator<Item = Step>) {
        self.registry.script.lock().unwrap().extend(steps);
    }

    fn hold(&self) {
        self.registry.is_open.send_replace(false);
    }

    fn release(&self) {
        self.registry.is_open.send_replace(true);
    }

    /// Commits a unit. On return it is sent or waits.
    async fn begin(&mut self, number: usize, ops: Vec<Op>) {
        let combiner = Arc::clone(&self.combiner);
        self.callers.spawn(async move { (number, combiner.commit_unit(ops).await) });
        self.settle().await;
    }

    /// Lets every task run until it waits.
    async fn settle(&self) {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// Commits these units while another one is under way, so that they share a request, which takes the first of these steps. Returns their answers.
    async fn combine(
        &mut self,
        units: Vec<Vec<Op>>,
        steps: impl IntoIterator<Item = Step>,
    ) -> Vec<Result<Committed, Error>> {
        self.hold();
        self.begin(usize::MAX, vec![check(0)]).await;
        for (number, ops) in units.into_iter().enumerate() {
            self.begin(number, ops).await;
        }
        self.script([Step::Execute].into_iter().chain(steps));
        self.release();
        let mut answers = self.answers().await;
        answers.remove(&usize::MAX).unwrap().unwrap();
        // The request of the other one.
        self.registry.requests.lock().unwrap().remove(0);
        answers.into_values().collect()
    }

    /// The answers to all units, by number.
    async fn answers(&mut self) -> BTreeMap<usize, Result<Committed, Error>> {
        let mut answers = BTreeMap::new();
        while let Some(answer) = self.callers.join_next().await {
            let (number, answer) = answer.unwrap();
            answers.insert(number, answer);
        }
        answers
    }

    fn requests(&self) -> Vec<String> {
        self.registry.requests.lock().unwrap().clone()
    }

    async fn page(&self, unit: usize) -> Node {
        self.registry.inner.get(&page(unit)).await.unwrap().unwrap()
    }
}

fn page(unit: usize) -> Path {
    format!("/shop/page-{unit}").parse().unwrap()
}

fn running(unit: usize) -> Path {
    page(unit).join("running").unwrap()
}

fn check(unit: usize) -> Op {
    Op::Check { path: page(unit), expected: ExpectedVersion::Any }
}

/// As a claim does: creates a node, and sets another one by version.
fn claim(unit: usize, version: i32) -> Vec<Op> {
    let expected = ExpectedVersion::Version(Version(version));
    let set = Op::Set { path: page(unit), data: format!("claimed {unit}").into(), expected };
    vec![Op::Create(Create::persistent(&running(unit), "")), set]
}

fn claims(units: std::ops::Range<usize>) -> Vec<Vec<Op>> {
    units.map(|unit| claim(unit, 0)).collect()
}

fn zxids(answers: &[Result<Committed, Error>]) -> Vec<Zxid> {
    answers.iter().map(|answer| answer.as_ref().unwrap().zxid).collect()
}

#[tokio::test]
async fn single_unit_is_sent_at_once_and_alone() {
    let mut fixture = Fixture::new(1).await;

    fixture.begin(0, claim(0, 0)).await;
    let answers = fixture.answers().await;

    let expected = [OpResult::Created(running(0)), OpResult::Set(Version(1))];
    assert_eq!(answers[&0].as_ref().unwrap().done, expected);
    assert_eq!(fixture.requests(), ["2"]);
}

#[tokio::test]
async fn units_that_wait_share_a_request_and_each_gets_its_own_results() {
    let mut fixture = Fixture::new(4).await;
    let mut units = claims(0..4);
    units[2].insert(0, check(2));

    let answers = fixture.combine(units, []).await;

    assert_eq!(fixture.requests(), ["9"]);
    for (unit, answer) in answers.iter().enumerate() {
        let mut expected = vec![OpResult::Created(running(unit)), OpResult::Set(Version(1))];
        if unit == 2 {
            expected.insert(0, OpResult::Checked);
        }
        assert_eq!(answer.as_ref().unwrap().done, expected);
    }
    assert_eq!(zxids(&answers), vec![fixture.page(0).await.stat.changed; 4]);
}

#[tokio::test]
async fn refused_unit_gets_its_own_error_and_the_others_are_committed() {
    let mut fixture = Fixture::new(4).await;
    let mut units = claims(0..4);
    units[2] = claim(2, 7);

    let answers = fixture.combine(units, []).await;

    assert_eq!(fixture.requests(), ["8", "6"]);
    let Err(Error::Operation { index: 1, cause }) = &answers[2] else { panic!("{answers:?}") };
    assert!(matches!(&**cause, Error::Conflict { path, .. } if *path == page(2)), "{cause:?}");
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    assert_eq!(fixture.page(2).await.data, "before");
    assert_eq!(fixture.page(3).await.data, "claimed 3");
}

#[tokio::test]
async fn units_are_sent_one_by_one_after_three_refusals() {
    let mut fixture = Fixture::new(9).await;
    let mut units = claims(0..9);
    for unit in [1, 2, 4, 8] {
        units[unit] = claim(unit, 7);
    }

    let answers = fixture.combine(units, []).await;

    let one_by_one = ["2"; 6];
    assert_eq!(fixture.requests()[..3], ["18", "16", "14"]);
    assert_eq!(fixture.requests()[3..], one_by_one);
    for (unit, answer) in answers.iter().enumerate() {
        let is_refused = matches!(answer, Err(Error::Operation { index: 1, .. }));
        assert_eq!(is_refused, [1, 2, 4, 8].contains(&unit), "{unit}: {answer:?}");
        assert_eq!(answer.is_ok(), !is_refused, "{unit}: {answer:?}");
    }
}

#[tokio::test]
async fn units_are_sent_one_by_one_after_an_error_that_names_none() {
    let mut fixture = Fixture::new(3).await;
    let error = Error::Invalid { path: page(0), reason: "no".to_owned() };

    let answers = fixture.combine(claims(0..3), [Step::Fail(error)]).await;

    assert_eq!(fixture.requests(), ["6", "2", "2", "2"]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn overload_and_outage_are_told_to_every_unit_without_another_request() {
    let throttled = || Error::Throttled { path: page(0), reason: "busy".to_owned() };
    let unreachable = || Error::Unreachable { endpoint: "test".to_owned(), source: "cut".into() };
    let errors = [throttled(), unreachable(), Error::SessionExpired, Error::Closed];
    for error in errors {
        let mut fixture = Fixture::new(3).await;
        let kind = std::mem::discriminant(&error);

        let answers = fixture.combine(claims(0..3), [Step::Fail(error)]).await;

        assert_eq!(fixture.requests(), ["6"]);
        for answer in answers {
            assert_eq!(std::mem::discriminant(&answer.unwrap_err()), kind);
        }
    }
}

#[tokio::test]
async fn lost_answer_of_a_committed_batch_is_settled_with_one_read() {
    let mut fixture = Fixture::new(3).await;

    let answers = fixture.combine(claims(0..3), [Step::LoseAnswer]).await;

    assert_eq!(fixture.requests(), ["6", "sync", "get"]);
    assert_eq!(zxids(&answers), vec![fixture.page(0).await.stat.changed; 3]);
    for (unit, answer) in answers.iter().enumerate() {
        let expected = [OpResult::Created(running(unit)), OpResult::Set(Version(1))];
        assert_eq!(answer.as_ref().unwrap().done, expected);
    }
}

#[tokio::test]
async fn lost_batch_that_was_not_committed_is_sent_again_once() {
    let mut fixture = Fixture::new(3).await;
    let answers = fixture.combine(claims(0..3), [Step::LoseRequest]).await;
    assert_eq!(fixture.requests(), ["6", "sync", "get", "6"]);
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");

    let mut fixture = Fixture::new(3).await;
    let steps = [Step::LoseRequest, Step::LoseRequest];
    let answers = fixture.combine(claims(0..3), steps).await;
    assert_eq!(fixture.requests(), ["6", "sync", "get", "6"]);
    let is_unknown = |answer: &Result<_, _>| matches!(answer, Err(Error::Unknown { .. }));
    assert!(answers.iter().all(is_unknown), "{answers:?}");
}

#[tokio::test]
async fn lost_batch_stays_unknown_if_its_witness_has_changed() {
    let mut fixture = Fixture::new(3).await;

    let answers = fixture.combine(claims(0..3), [Step::LoseAnswerAndSet(page(0))]).await;

    assert_eq!(fixture.requests(), ["6", "sync", "get"]);
    let is_unknown = |answer: &Result<_, _>| matches!(answer, Err(Error::Unknown { .. }));
    assert!(answers.iter().all(is_unknown), "{answers:?}");
}

#[tokio::test]
async fn lost_batch_without_a_witness_stays_unknown() {
    let mut fixture = Fixture::new(2).await;
    let mark = |unit| vec![check(unit), Op::Create(Create::persistent(&running(unit), ""))];

    let answers = fixture.combine(vec![mark(0), mark(1)], [Step::LoseAnswer]).await;

    assert_eq!(fixture.requests(), ["4"]);
    assert!(matches!(answers[0], Err(Error::Unknown { .. })), "{answers:?}");
}

#[tokio::test]
async fn lost_batch_stays_unknown_once_its_session_has_ended() {
    let mut fixture = Fixture::new(2).await;
    let link = fixture.registry.inner.link();
    fixture.hold();
    fixture.begin(0, claim(0, 0)).await;
    fixture.script([Step::LoseRequest]);

    link.cut();
    link.expire();
    fixture.release();
    fixture.settle().await;
    link.heal();
    let answers = fixture.answers().await;

    assert!(matches!(answers[&0], Err(Error::Unknown { .. })), "{answers:?}");
    assert_eq!(fixture.requests(), ["2"]);
}

#[tokio::test(start_paused = true)]
async fn lost_batch_waits_for_the_connection_but_not_for_ever() {
    for (outage, is_settled) in [(Duration::from_secs(4), true), (Duration::from_secs(6), false)] {
        let mut fixture = Fixture::new(1).await;
        let link = fixture.registry.inner.link();
        link.cut_after_next_request();
        fixture.begin(0, claim(0, 0)).await;

        let (answers, ()) = tokio::join!(fixture.answers(), async {
            tokio::time::sleep(outage).await;
            link.heal();
        });

        assert_eq!(answers[&0].is_ok(), is_settled, "{answers:?}");
    }
}

#[tokio::test]
async fn batch_stays_within_the_limits_of_combiner_and_registry() {
    let mut fixture = Fixture::new(300).await;
    let answers = fixture.combine(claims(0..300), []).await;
    assert_eq!(fixture.requests(), ["512", "88"]);
    assert!(answers.iter().all(Result::is_ok));

    let mut fixture = Fixture::with_limits(5, Limits { operations: 5, ..Limits::ZOOKEEPER }).await;
    fixture.combine(claims(0..5), []).await;
    assert_eq!(fixture.requests(), ["4", "4", "2"]);

    let mut fixture = Fixture::new(3).await;
    let mut units = claims(0..3);
    for (unit, ops) in units.iter_mut().enumerate() {
        let data = Bytes::from(vec![b'x'; 60 << 10]);
        ops.push(Op::Create(Create::persistent(&page(unit).join("large").unwrap(), data)));
    }
    fixture.combine(units, []).await;
    assert_eq!(fixture.requests(), ["6", "3"]);
}

#[tokio::test]
async fn full_batches_are_under_way_together_and_others_wait() {
    let limits = Limits { operations: 4, ..Limits::ZOOKEEPER };
    let mut fixture = Fixture::with_limits(20, limits).await;
    fixture.hold();
    for unit in 0..20 {
        fixture.begin(unit, claim(unit, 0)).await;
    }

    assert_eq!(fixture.requests(), ["2", "4", "4", "4"], "the first alone, then full batches");
    fixture.release();
    let answers = fixture.answers().await;

    assert!(answers.values().all(Result::is_ok), "{answers:?}");
    assert_eq!(fixture.requests().len(), 11);
}

#[tokio::test]
async fn request_contains_units_of_one_session_only() {
    let mut fixture = Fixture::new(4).await;
    let (now, before) = (fixture.registry.session().id(), SessionId(7));
    let ephemeral = |unit, session| {
        vec![check(unit), Op::Create(Create::ephemeral(&running(unit), "", session))]
    };
    let units = vec![ephemeral(0, now), ephemeral(1, before), claim(2, 0), ephemeral(3, now)];

    let answers = fixture.combine(units, []).await;

    // The lanes of both sessions were idle, so their first units were sent at once.
    assert_eq!(fixture.requests().len(), 4, "{:?}", fixture.requests());
    assert!(matches!(answers[1], Err(Error::SessionExpired)), "{answers:?}");
    for unit in [0, 2, 3] {
        assert!(answers[unit].is_ok(), "{unit}: {answers:?}");
    }
}

#[tokio::test]
async fn unit_is_not_sent_once_its_caller_has_gone() {
    let mut fixture = Fixture::new(2).await;
    fixture.hold();
    fixture.begin(0, vec![check(0)]).await;
    fixture.begin(1, claim(1, 0)).await;

    fixture.callers.abort_all();
    fixture.settle().await;
    fixture.release();
    fixture.settle().await;

    assert_eq!(fixture.requests(), ["1"]);
    assert_eq!(fixture.page(1).await.data, "before");
}

#[tokio::test]
async fn other_requests_pass_while_units_wait() {
    let mut fixture = Fixture::new(2).await;
    fixture.hold();
    fixture.begin(0, claim(0, 0)).await;
    fixture.begin(1, claim(1, 0)).await;

    let node = fixture.combiner.get(&page(1)).await.unwrap().unwrap();

    assert_eq!(node.data, "before");
    assert_eq!(fixture.requests(), ["2", "get"]);
}
