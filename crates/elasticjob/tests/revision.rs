//! Jobs that change while a node runs them: what the program says anew, what the registry alone says, and what is left out.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use elasticjob::{
    admin::{Admin, Edit},
    coordination::member::JoinError,
    execution::Listener,
    job::{Handler, Job, JobName, Misfire, Overwrite, Shard},
    node::{Node, NodeError, NodeJob, Running},
    registry::{Registry, memory::MemoryServer},
    runtime::SystemClock,
};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(20);

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

async fn until(is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes so");
}

async fn running(server: &MemoryServer) -> Running {
    Node::on(registry(server).await).start().await.unwrap()
}

#[tokio::test]
async fn what_is_said_anew_is_stored_only_where_it_overwrites() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (look, node) = (registry(&server).await, running(&server).await);
    node.add(NodeJob::script(script("echo a"))).await.unwrap();

    assert!(node.revise(script("echo b")).await.unwrap());
    assert_eq!(stored(&*look).await.as_deref(), Some("echo a"), "what is stored counts");
    let loud = script("echo c").if_stored_differs(Overwrite::LocalWins);
    assert!(node.revise(loud).await.unwrap());
    assert_eq!(stored(&*look).await.as_deref(), Some("echo c"));

    assert!(!node.revise(Job::named("nobody").unwrap()).await.unwrap());
    assert!(!node.has_ended(&name()));
    node.stop().await;
}

#[tokio::test]
async fn a_job_that_was_removed_is_not_brought_back_by_saying_something_else() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (look, node) = (registry(&server).await, running(&server).await);
    node.add(NodeJob::script(script("echo a"))).await.unwrap();

    Admin::on(Arc::clone(&look)).remove(&name(), true).await.unwrap();
    until(|| node.has_ended(&name())).await;
    assert!(node.is_ready(), "somebody wanted it so");

    let loud = script("echo b").if_stored_differs(Overwrite::LocalWins);
    assert!(!node.revise(loud).await.unwrap());
    assert_eq!(stored(&*look).await, None);
    assert!(node.remove(&name()).await, "it had kept its place");
    assert!(!node.has_ended(&name()));
    node.stop().await;
}

#[tokio::test]
async fn a_job_of_the_registry_is_what_is_stored_and_nothing_if_nothing_is() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (look, node) = (registry(&server).await, running(&server).await);
    let stale = || {
        let job = script("echo stale").if_stored_differs(Overwrite::LocalWins);
        NodeJob::script(job).from_registry()
    };

    let absent = node.add(stale()).await.unwrap_err();
    assert!(matches!(absent, NodeError::Join(JoinError::Gone { .. })), "{absent:?}");
    let root = look.namespace().path().join("backup").unwrap();
    assert!(look.exists(&root).await.unwrap().is_none(), "nothing was made of it");

    let admin = Admin::on(Arc::clone(&look));
    let plan = admin.plan(Edit::of(script("echo a")).handler(Handler::Script)).await.unwrap();
    admin.apply(&plan).await.unwrap();
    node.add(stale()).await.unwrap();
    assert_eq!(stored(&*look).await.as_deref(), Some("echo a"), "nothing is overwritten");
    node.stop().await;
}

#[tokio::test]
async fn a_job_of_the_registry_that_is_removed_while_its_session_ends_is_not_brought_back() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let look = registry(&server).await;
    let admin = Admin::on(Arc::clone(&look));
    let edit = || Edit::of(script("echo a")).handler(Handler::Script);
    admin.apply(&admin.plan(edit()).await.unwrap()).await.unwrap();
    let theirs = server.join("shop".parse().unwrap()).await.unwrap();
    let link = theirs.link();
    let node = Node::on(Arc::new(theirs)).start().await.unwrap();
    node.add(NodeJob::script(script("echo a")).from_registry()).await.unwrap();

    link.cut();
    link.expire();
    admin.remove(&name(), true).await.unwrap();
    link.heal();

    until(|| node.has_ended(&name())).await;
    assert_eq!(stored(&*look).await, None);
    node.stop().await;
}

struct Counting(mpsc::UnboundedSender<(String, usize)>);

#[async_trait]
impl Listener for Counting {
    fn missed(&self, job: &JobName, fires: usize) {
        let _ = self.0.send((job.to_string(), fires));
    }
}

#[tokio::test]
async fn a_fire_that_is_left_out_is_told_to_listeners() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let (tell, mut told) = mpsc::unbounded_channel();
    let slow = Job::named("slow").unwrap().cron("* * * * * ?").unwrap().if_late(Misfire::Skip);
    let handler = |shard: Shard| async move {
        shard.cancel().cancelled().await;
        Ok::<(), std::io::Error>(())
    };
    let slow = NodeJob::code(slow, handler).listener(Arc::new(Counting(tell)));
    let node = Node::on(registry(&server).await).drain(Duration::from_millis(1)).with(slow);
    let node = node.start().await.unwrap();

    let missed = tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap();

    assert_eq!(missed, ("slow".to_owned(), 1));
    node.stop().await;
}
