//! The combiner on real servers: one lost answer with more than a hundred claims in it.

mod backends;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use backends::Wire;
use elasticjob::{
    coordination::{
        claim::{ClaimCandidate, TransactionBuilder},
        ledger::{LedgerPage, LedgerState, VersionedPage},
        tree::{JobTree, ShardNode},
    },
    job::{Failover, Fire, InstanceId, Monitor},
    registry::{
        Combiner, Committed, Error, Limits, Namespace, Node, Op, Path, Registry, Session, Stat,
        Version, Watch, ensure_path,
    },
    testing::conformance::{TestClient, TestLink, TestServer},
};
use futures_util::future::join_all;
use testbed::Ensemble;
use tinykeeper::server::{Config, Server};
use tokio::{sync::Notify, task::JoinSet};

const SESSION: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_mins(1);
const JOBS: usize = 120;

/// What is done to a multi.
#[derive(Debug)]
enum Fault {
    /// It is sent once the test allows it, so that other units wait meanwhile.
    Hold,
    /// The server executes it, and the connection breaks before the answer.
    LoseAnswer,
}

/// Forwards requests, notes them, and loses the answers that it is told to lose.
#[derive(Debug)]
struct LossyRegistry {
    client: TestClient,
    observer: Arc<dyn Registry>,
    faults: Mutex<VecDeque<Fault>>,
    /// The test allows the held request.
    allowed: Notify,
    requests: Mutex<Vec<String>>,
}

impl LossyRegistry {
    fn inner(&self) -> &dyn Registry {
        &*self.client.registry
    }

    fn note(&self, request: &impl ToString) {
        self.requests.lock().unwrap().push(request.to_string());
    }

    /// Sends a request, and breaks the connection once another client sees that it was executed.
    async fn lose_answer(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        let created = ops.iter().find(|op| matches!(op, Op::Create(_))).unwrap().path().clone();
        let link: &dyn TestLink = &*self.client.link;
        link.lose_answers().await;
        let (answer, ()) = tokio::join!(self.inner().multi(ops), async {
            while self.observer.exists(&created).await.unwrap().is_none() {
                tokio::task::yield_now().await;
            }
            link.cut().await;
            link.heal().await;
        });
        answer
    }
}

#[async_trait]
impl Registry for LossyRegistry {
    fn namespace(&self) -> &Namespace {
        self.inner().namespace()
    }

    fn session(&self) -> Session {
        self.inner().session()
    }

    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.note(&ops.len());
        let fault = self.faults.lock().unwrap().pop_front();
        match fault {
            Some(Fault::LoseAnswer) => return self.lose_answer(ops).await,
            Some(Fault::Hold) => self.allowed.notified().await,
            None => {}
        }
        self.inner().multi(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.note(&"get");
        self.inner().get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.inner().exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.inner().children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.note(&"sync");
        self.inner().sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.inner().watch(prefix).await
    }

    async fn close(&self) {
        self.inner().close().await;
    }
}

/// The tree of a job whose only shard has run before.
async fn prepare(registry: &dyn Registry, number: usize) -> JobTree {
    let tree = JobTree::new(registry.namespace(), &job(number).parse().unwrap()).unwrap();
    for path in [tree.config(), tree.shard(0, ShardNode::Root), tree.ledger_page(0)] {
        ensure_path(registry, &path).await.unwrap();
    }
    tree
}

fn job(number: usize) -> String {
    format!("job-{number}")
}

async fn lost_answer_with_a_hundred_claims_is_settled_with_one_read(server: &dyn TestServer) {
    let (client, observer) = (server.join("lost", None).await, server.join("lost", None).await);
    let session = client.registry.session().id();
    let registry = Arc::new(LossyRegistry {
        client,
        observer: Arc::clone(&observer.registry),
        faults: Mutex::new([Fault::Hold, Fault::LoseAnswer].into()),
        allowed: Notify::new(),
        requests: Mutex::default(),
    });
    let instance: InstanceId = "10.0.0.1@-@1-a".parse().unwrap();
    let trees = join_all((0..JOBS).map(|number| prepare(&*observer.registry, number))).await;
    let combiner = Arc::new(Combiner::new(Arc::clone(&registry) as Arc<dyn Registry>));
    let mut claims = JoinSet::new();
    for (number, tree) in trees.iter().enumerate() {
        let builder = TransactionBuilder {
            tree,
            instance: &instance,
            session,
            config_version: Version(0),
            monitor: Monitor::Executions,
            failover: Failover::Wait,
        };
        let page = VersionedPage { version: Some(Version(0)), ..VersionedPage::default() };
        let due_at = "2026-11-15T06:00:00Z".parse().unwrap();
        let fire = Fire::scheduled(job(number).parse().unwrap(), due_at);
        let claim = builder.claim(&fire, &[ClaimCandidate::new(0, page)]).ops();
        let combiner = Arc::clone(&combiner);
        claims.spawn(async move { (number, combiner.commit_unit(claim).await) });
        tokio::task::yield_now().await;
    }

    // By now the first claim is on its way, and all others wait for it.
    tokio::time::timeout(TIMEOUT, async {
        while registry.requests.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("a claim is sent");
    registry.allowed.notify_one();
    let answers = tokio::time::timeout(TIMEOUT, claims.join_all()).await.expect("answers");

    let batch = (3 * (JOBS - 1)).to_string();
    assert_eq!(*registry.requests.lock().unwrap(), ["3", &batch, "sync", "get"]);
    for (number, answer) in answers {
        let committed = answer.unwrap();
        let running = trees[number].shard(0, ShardNode::Running);
        let running = observer.registry.get(&running).await.unwrap().unwrap();
        assert_eq!(running.stat.created, committed.zxid, "the zxid is the fencing token");
        let page = observer.registry.get(&trees[number].ledger_page(0)).await.unwrap().unwrap();
        assert_eq!(page.stat.version, Version(1), "claimed once");
        let page = LedgerPage::read(&page.data).unwrap();
        assert_eq!((page.state, page.holder), (LedgerState::Running, Some(instance.clone())));
    }
}

#[tokio::test]
async fn lost_answer_with_a_hundred_claims_is_settled_on_tinykeeper() {
    let server = Server::start(Config::in_memory()).await.unwrap();
    let wire = Wire { servers: vec![server.address()], _keep: server, session_timeout: SESSION };
    lost_answer_with_a_hundred_claims_is_settled_with_one_read(&wire).await;
}

#[tokio::test]
#[ignore = "needs a real ZooKeeper: make test"]
async fn lost_answer_with_a_hundred_claims_is_settled_on_an_ensemble() {
    let ensemble = Ensemble::start();
    let wire = Wire { servers: ensemble.addresses(), _keep: ensemble, session_timeout: SESSION };
    lost_answer_with_a_hundred_claims_is_settled_with_one_read(&wire).await;
}
