//! Jobs that change while a node runs them: revised by the program, changed or removed in the registry.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use elasticjob::{
    admin::{Admin, Edit},
    coordination::member::JoinError,
    execution::Listener,
    job::{Handler, Job, JobName, Misfire, Overwrite, Shard},
    node::{Node, NodeError, NodeJob, RunningNode},
    registry::{Registry, memory::MemoryServer},
    runtime::SystemClock,
};
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(20);

async fn registry(server: &MemoryServer) -> Arc<dyn Registry> {
    Arc::new(server.join("shop".parse().unwrap()).await.unwrap())
}

fn script(line: &str) -> Job {
    Job::named("backup").unwrap().prop("script.command.line", line).unwrap()
}

fn name() -> JobName {
    "backup".parse().unwrap()
}

async fn stored(registry: &dyn Registry) -> Option<String> {
    let path = registry.namespace().path().join("backup/config").unwrap();
    let node = registry.get(&path).await.unwrap()?;
    let job = Job::read(&name(), &node.data).unwrap();
    job.props.get("script.command.line").map(ToOwned::to_owned)
}

async fn wait_until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("condition within the timeout");
}

async fn running(server: &MemoryServer) -> RunningNode {
    Node::on(registry(server).await).start().await.unwrap()
}

#[tokio::test]
async fn revised_job_is_stored_only_if_it_overwrites() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (observer, node) = (registry(&server).await, running(&server).await);
    node.add(NodeJob::script(script("echo a"))).await.unwrap();

    assert!(node.update(script("echo b")).await.unwrap());
    assert_eq!(
        stored(&*observer).await.as_deref(),
        Some("echo a"),
        "the stored configuration wins"
    );
    let overwriting = script("echo c").overwrite(Overwrite::LocalWins);
    assert!(node.update(overwriting).await.unwrap());
    assert_eq!(stored(&*observer).await.as_deref(), Some("echo c"));

    assert!(!node.update(Job::named("unknown").unwrap()).await.unwrap());
    assert!(!node.has_ended(&name()));
    node.stop().await;
}

#[tokio::test]
async fn revising_a_removed_job_does_not_recreate_it() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (observer, node) = (registry(&server).await, running(&server).await);
    node.add(NodeJob::script(script("echo a"))).await.unwrap();

    Admin::new(Arc::clone(&observer)).remove(&name(), true).await.unwrap();
    wait_until(|| node.has_ended(&name())).await;
    assert!(node.is_ready(), "the removal was requested");

    let overwriting = script("echo b").overwrite(Overwrite::LocalWins);
    assert!(!node.update(overwriting).await.unwrap());
    assert_eq!(stored(&*observer).await, None);
    assert!(node.remove(&name()).await, "the node still knew the job");
    assert!(!node.has_ended(&name()));
    node.stop().await;
}

#[tokio::test]
async fn registry_job_uses_the_stored_configuration_or_fails() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (observer, node) = (registry(&server).await, running(&server).await);
    let stale = || {
        let job = script("echo stale").overwrite(Overwrite::LocalWins);
        NodeJob::script(job).from_registry()
    };

    let absent = node.add(stale()).await.unwrap_err();
    assert!(matches!(absent, NodeError::Join(JoinError::Gone { .. })), "{absent:?}");
    let root = observer.namespace().path().join("backup").unwrap();
    assert!(observer.exists(&root).await.unwrap().is_none(), "nothing was created");

    let admin = Admin::new(Arc::clone(&observer));
    let plan = admin.plan(Edit::new(script("echo a")).handler(Handler::Script)).await.unwrap();
    admin.apply(&plan).await.unwrap();
    node.add(stale()).await.unwrap();
    assert_eq!(stored(&*observer).await.as_deref(), Some("echo a"), "nothing is overwritten");
    node.stop().await;
}

#[tokio::test]
async fn registry_job_removed_during_session_loss_is_not_recreated() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let observer = registry(&server).await;
    let admin = Admin::new(Arc::clone(&observer));
    let edit = || Edit::new(script("echo a")).handler(Handler::Script);
    admin.apply(&admin.plan(edit()).await.unwrap()).await.unwrap();
    let member = server.join("shop".parse().unwrap()).await.unwrap();
    let link = member.link();
    let node = Node::on(Arc::new(member)).start().await.unwrap();
    node.add(NodeJob::script(script("echo a")).from_registry()).await.unwrap();

    link.cut();
    link.expire();
    admin.remove(&name(), true).await.unwrap();
    link.heal();

    wait_until(|| node.has_ended(&name())).await;
    assert_eq!(stored(&*observer).await, None);
    node.stop().await;
}

struct MissedFires(mpsc::UnboundedSender<(String, usize)>);

#[async_trait]
impl Listener for MissedFires {
    fn missed(&self, job: &JobName, fires: usize) {
        let _ = self.0.send((job.to_string(), fires));
    }
}

#[tokio::test]
async fn skipped_fire_is_reported_to_listeners() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let slow = Job::named("slow").unwrap().cron("* * * * * ?").unwrap().misfire(Misfire::Skip);
    let handler = |shard: Shard| async move {
        shard.cancel().cancelled().await;
        Ok::<(), std::io::Error>(())
    };
    let slow = NodeJob::code(slow, handler).listener(Arc::new(MissedFires(sender)));
    let node = Node::on(registry(&server).await).drain(Duration::from_millis(1)).with(slow);
    let node = node.start().await.unwrap();

    let missed = tokio::time::timeout(TIMEOUT, receiver.recv()).await.unwrap().unwrap();

    assert_eq!(missed, ("slow".to_owned(), 1));
    node.stop().await;
}
