//! What a console that follows a registry watches and reads there.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use elasticjob::{
    admin::{
        Admin,
        mirror::{Change, Mirror},
    },
    coordination::tree::JobTree,
    job::{Job, JobName},
    registry::{
        Committed, Create, Error, ExpectedVersion, Limits, Namespace, Node, Op, Path, Registry,
        Session, Stat, Watch, ensure_path, memory::MemoryServer,
    },
    runtime::{Clock, SystemClock, Tasks},
};
use tokio::{sync::broadcast, time::timeout};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Remembers the paths that were read and watched.
struct RecordingRegistry {
    registry: Arc<dyn Registry>,
    paths: Paths,
}

#[derive(Clone, Default)]
struct Paths {
    read: Arc<Mutex<Vec<Path>>>,
    watched: Arc<Mutex<Vec<Path>>>,
}

impl Paths {
    fn watched(&self) -> Vec<Path> {
        self.watched.lock().unwrap().clone()
    }

    fn read_below(&self, prefix: &Path) -> usize {
        let read = self.read.lock().unwrap();
        read.iter().filter(|path| path.as_str().starts_with(prefix.as_str())).count()
    }
}

impl fmt::Debug for RecordingRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.registry.fmt(f)
    }
}

#[async_trait]
impl Registry for RecordingRegistry {
    fn namespace(&self) -> &Namespace {
        self.registry.namespace()
    }

    fn session(&self) -> Session {
        self.registry.session()
    }

    fn limits(&self) -> Limits {
        self.registry.limits()
    }

    async fn multi(&self, ops: Vec<Op>) -> Result<Committed, Error> {
        self.registry.multi(ops).await
    }

    async fn get(&self, path: &Path) -> Result<Option<Node>, Error> {
        self.paths.read.lock().unwrap().push(path.clone());
        self.registry.get(path).await
    }

    async fn exists(&self, path: &Path) -> Result<Option<Stat>, Error> {
        self.paths.read.lock().unwrap().push(path.clone());
        self.registry.exists(path).await
    }

    async fn children(&self, path: &Path) -> Result<Option<Vec<String>>, Error> {
        self.paths.read.lock().unwrap().push(path.clone());
        self.registry.children(path).await
    }

    async fn sync(&self) -> Result<(), Error> {
        self.registry.sync().await
    }

    async fn watch(&self, prefix: &Path) -> Result<Watch, Error> {
        self.paths.watched.lock().unwrap().push(prefix.clone());
        self.registry.watch(prefix).await
    }

    async fn close(&self) {
        self.registry.close().await;
    }
}

async fn next_shards(changes: &mut broadcast::Receiver<Change>) -> String {
    let next = async {
        loop {
            if let Change::Shards(job) = changes.recv().await.unwrap() {
                return job;
            }
        }
    };
    timeout(TIMEOUT, next).await.expect("shards change within the timeout")
}

#[tokio::test]
async fn console_watches_only_the_ledgers_of_jobs_whose_shards_it_shows() {
    let server = MemoryServer::new(Arc::new(SystemClock));
    let namespace: Namespace = "shop".parse().unwrap();
    let writer = server.join(namespace.clone()).await.unwrap();
    let names: Vec<JobName> = (0..50).map(|n| format!("job-{n}").parse().unwrap()).collect();
    let tree = |name: &JobName| JobTree::new(&namespace, name).unwrap();
    for name in &names {
        let root = tree(name);
        ensure_path(&writer, &root.config()).await.unwrap();
        let yaml = Job::named(name.as_str()).unwrap().to_yaml();
        writer.set(&root.config(), yaml.into(), ExpectedVersion::Any).await.unwrap();
        ensure_path(&writer, root.ledger()).await.unwrap();
    }
    let paths = Paths::default();
    let registry = Arc::new(server.join(namespace.clone()).await.unwrap());
    let admin = Admin::new(Arc::new(RecordingRegistry { registry, paths: paths.clone() }));
    let mirror = Arc::new(Mirror::default());
    let mut changes = mirror.subscribe();
    let mut tasks = Tasks::new();
    let followed = Arc::clone(&mirror);
    tasks.spawn(async move { followed.follow(&admin).await.unwrap() });
    let all = async { while !matches!(changes.recv().await.unwrap(), Change::All) {} };
    timeout(TIMEOUT, all).await.expect("the mirror is loaded within the timeout");

    assert_eq!(mirror.read(|snapshot| snapshot.jobs.len()), names.len());
    assert_eq!(paths.watched(), [namespace.path().clone()]);
    let ledgers = tree(&names[0]).ledger().parent().unwrap();
    assert_eq!(paths.read_below(&ledgers), 0, "a list shows nothing of a ledger");

    mirror.follow_ledger(&names[7], SystemClock.monotonic());
    // A watch begins with a snapshot, which counts as a change.
    assert_eq!(next_shards(&mut changes).await, names[7].as_str());
    for name in [&names[3], &names[7]] {
        writer.create(Create::persistent(&tree(name).ledger_page(0), "")).await.unwrap();
    }

    assert_eq!(next_shards(&mut changes).await, names[7].as_str());
    assert_eq!(paths.watched(), [namespace.path().clone(), tree(&names[7]).ledger().clone()]);
}
