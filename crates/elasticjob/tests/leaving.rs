//! What a node writes when it leaves its jobs.

#[path = "backends/intercepted_registry.rs"]
mod intercepted_registry;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use elasticjob::{
    job::{Job, Shard},
    node::Node,
    registry::{Committed, Error, Op, Registry, memory::MemoryServer},
    runtime::SystemClock,
};

use self::intercepted_registry::{InterceptedRegistry, Interceptor};

/// Notes the deletions of every write.
#[derive(Debug, Default)]
struct Deletions(Mutex<Vec<Vec<String>>>);

#[async_trait]
impl Interceptor for Arc<Deletions> {
    async fn write(&self, registry: &dyn Registry, ops: Vec<Op>) -> Result<Committed, Error> {
        let deleted = ops.iter().filter(|op| matches!(op, Op::Delete { .. }));
        let paths = deleted.map(|op| op.path().as_str().to_owned()).collect();
        self.0.lock().unwrap().push(paths);
        registry.multi(ops).await
    }
}

/// Otherwise another instance is elected in between, and assigns twice: with the instance that leaves, and without it.
#[tokio::test]
async fn leader_gives_up_leadership_and_instance_in_one_transaction() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = Arc::new(server.join("shop".parse().unwrap()).await.unwrap());
    let deletions = Arc::new(Deletions::default());
    let interceptor = Arc::clone(&deletions);
    let node = Node::on(Arc::new(InterceptedRegistry { registry, interceptor }));
    let job = Job::named("settle").unwrap().cron("0 0 2 1 1 ? 2099").unwrap().shards(2);
    let node = node.job(job, |_: Shard| async { Ok::<(), std::io::Error>(()) });
    let node = node.start().await.unwrap();

    node.stop().await;

    let deletions = deletions.0.lock().unwrap();
    let leader = "/shop/settle/leader/election/instance";
    let together = deletions.iter().find(|paths| paths.iter().any(|path| path == leader));
    let together = together.expect("the leader steps down");
    let is_instance = |path: &String| path.starts_with("/shop/settle/instances/");
    assert!(together.iter().any(is_instance), "{together:?}");
}
