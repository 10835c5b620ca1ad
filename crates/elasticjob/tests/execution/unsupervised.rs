//! The warning of a program that runs scripts without a supervisor.

use std::{
    io,
    sync::{Arc, Mutex},
};

use elasticjob::{
    execution::Supervisor,
    node::Node,
    registry::{Registry, memory::MemoryServer},
    runtime::SystemClock,
};

use crate::fixture;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log lines about supervisors when a node with two script jobs starts.
async fn supervisor_lines(prepare: impl FnOnce(Node) -> Node) -> Vec<String> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry: Arc<dyn Registry> = Arc::new(server.join("shop".parse().unwrap()).await.unwrap());
    let (mut one, mut other) = (fixture::job(&[]), fixture::job(&[]));
    (one.name, other.name) = ("one".parse().unwrap(), "other".parse().unwrap());

    let node = prepare(Node::on(registry).script(one).script(other));
    node.start().await.unwrap().stop().await;

    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    log.lines().filter(|line| line.contains("supervisor")).map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn missing_supervisor_is_logged_once_with_hint() {
    let lines = supervisor_lines(|node| node).await;

    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("elasticjob::execution::supervise_if_requested()"), "{lines:?}");
    assert!(lines[0].contains("Node::supervisor"), "{lines:?}");
}

#[tokio::test]
async fn nothing_is_logged_with_supervisor() {
    let lines =
        supervisor_lines(|node| node.supervisor(Supervisor::program("/proc/self/exe"))).await;

    assert_eq!(lines, [""; 0]);
}
