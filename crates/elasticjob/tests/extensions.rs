//! Alert channels and executors that a program brings, through a node on the memory registry.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use elasticjob::{
    Job, Node, Shard,
    execution::BoxError,
    extension::{AlertChannel, Notice, RuntimeExecutor},
    job::ThreadPool,
    registry::{Registry, memory::MemoryServer},
    runtime::SystemClock,
};
use tokio::sync::mpsc;

const TIMEOUT: Duration = Duration::from_secs(20);

async fn registry() -> Arc<dyn Registry> {
    let server = MemoryServer::new(Arc::new(SystemClock));
    Arc::new(server.join("shop".parse().unwrap()).await.unwrap())
}

fn job() -> Job {
    Job::named("settle").unwrap().cron("* * * * * ?").unwrap()
}

async fn next<T>(receiver: &mut mpsc::UnboundedReceiver<T>) -> T {
    tokio::time::timeout(TIMEOUT, receiver.recv()).await.expect("in time").expect("open")
}

struct Pager(mpsc::UnboundedSender<Notice>);

#[async_trait]
impl AlertChannel for Pager {
    async fn deliver(&self, notice: &Notice) -> Result<(), BoxError> {
        Ok(self.0.send(notice.clone())?)
    }
}

#[tokio::test]
async fn failure_is_sent_through_the_alert_channel_that_the_job_names() {
    let (sender, mut notices) = mpsc::unbounded_channel();
    let mut job = job();
    job.error_handler_type = Some("pager".into());
    let node = Node::on(registry().await)
        .alert_channel("PAGER", Arc::new(Pager(sender)))
        .job(job, |_: Shard| async { Err::<(), _>("no such order") })
        .start()
        .await
        .unwrap();

    let notice = next(&mut notices).await;
    node.stop().await;

    assert_eq!((notice.job.as_str(), notice.shard), ("settle", Some(0)));
    assert!(notice.message.contains("no such order"), "{notice:?}");
}

#[test]
fn shard_runs_on_the_executor_that_the_job_names() {
    let reports = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("reports")
        .enable_all()
        .build()
        .unwrap();
    let executor = Arc::new(RuntimeExecutor::new(reports.handle().clone(), 1));
    let own = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    let thread = own.block_on(async {
        let (sender, mut threads) = mpsc::unbounded_channel();
        let handler = move |_: Shard| {
            let sender = sender.clone();
            async move { sender.send(std::thread::current().name().map(ToOwned::to_owned)) }
        };
        let node = Node::on(registry().await)
            .executor("REPORTS", executor)
            .job(job().threads(&ThreadPool::from("reports")), handler)
            .start()
            .await
            .unwrap();
        let thread = next(&mut threads).await;
        node.stop().await;
        thread
    });

    assert_eq!(thread.as_deref(), Some("reports"));
}
