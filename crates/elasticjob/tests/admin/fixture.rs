//! A namespace for tests of `Admin`: Rust instances, Java instances imitated by raw writes, and an `Admin` with a manual clock.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    admin::{Admin, JobStatus, ShardStatus},
    coordination::{
        flaw::Flaws,
        member::{
            BusyShards, ClaimRequest, ClaimScope, JobSource, JoinRequest, Member, MemberEvent,
            MemberResources, Release, ShardClaim,
        },
        process,
        sharding::CustomStrategies,
        tree::{JobTree, ShardNode},
    },
    job::{Fire, Handler, Instance, InstanceId, Job, JobName, Outcome, ShardLimit},
    registry::{Create, Error, ExpectedVersion, Registry, ensure_path},
    runtime::{CancelToken, SystemClock, SystemRandomness},
    schedule::Zone,
    testing::{
        ManualClock,
        conformance::{self, TestServer},
    },
};
use jiff::Timestamp;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) struct Fixture<'g> {
    ground: &'g dyn TestServer,
    namespace: &'static str,
    observer: conformance::TestClient,
}

/// A Rust instance and its connection.
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) connection: conformance::TestClient,
}

/// A Java instance, imitated by its writes.
pub(crate) struct Java {
    pub(crate) id: String,
    pub(crate) connection: conformance::TestClient,
}

impl<'g> Fixture<'g> {
    /// Each scenario uses its own namespace, so that many can share one server.
    pub(crate) async fn new(ground: &'g dyn TestServer, namespace: &'static str) -> Self {
        Self { ground, namespace, observer: ground.join(namespace, None).await }
    }

    pub(crate) fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.observer.registry)).zone(Zone::utc())
    }

    pub(crate) fn admin_at(&self, now: &str) -> Admin {
        self.admin().clock(Arc::new(ManualClock::at(at(now))))
    }

    /// Opens another connection to the same namespace.
    pub(crate) async fn connect(&self) -> conformance::TestClient {
        self.ground.join(self.namespace, None).await
    }

    pub(crate) fn tree(&self, job: &str) -> JobTree {
        JobTree::new(self.registry().namespace(), &name(job)).unwrap()
    }

    pub(crate) async fn write(&self, path: &elasticjob::registry::Path, data: &str) {
        ensure_path(self.registry(), path).await.unwrap();
        self.registry().set(path, data.to_owned().into(), ExpectedVersion::Any).await.unwrap();
    }

    pub(crate) async fn delete(&self, path: &elasticjob::registry::Path) {
        self.registry().delete(path, ExpectedVersion::Any).await.unwrap();
    }

    pub(crate) async fn read(&self, path: &elasticjob::registry::Path) -> Option<String> {
        let node = self.registry().get(path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    /// Lets a Rust instance at 10.0.0.`host` join a job.
    pub(crate) async fn rust(&self, host: u8, job: Job) -> Node {
        let connection = self.connect().await;
        let id = InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7);
        let joining = JoinRequest {
            local: job,
            handler: Handler::Code { java_class: None },
            author: JobSource::Program,
            instance: Instance::new(id).labels("zone=a"),
        };
        let session = connection.registry.session().id();
        process::register(&*connection.registry, &joining.instance.id, session).await.unwrap();
        let member_ground = MemberResources {
            registry: Arc::clone(&connection.registry),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            strategies: CustomStrategies::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
            shard_limit: ShardLimit::default(),
        };
        Node { member: Member::join(member_ground, joining).await.unwrap(), connection }
    }

    /// Lets a Java instance at 10.0.0.`host` join a job, with the writes Java makes; the first one becomes the leader.
    pub(crate) async fn java(&self, host: u8, job: &Job) -> Java {
        let connection = self.connect().await;
        let (tree, id) = (self.tree(job.name.as_str()), format!("10.0.0.{host}@-@4711"));
        let registry = &*connection.registry;
        if registry.exists(&tree.config()).await.unwrap().is_none() {
            self.write(&tree.config(), &job.to_yaml()).await;
            self.write(tree.root(), "com.acme.Settle").await;
        }
        for parent in tree.skeleton() {
            ensure_path(registry, &parent).await.unwrap();
        }
        let session = registry.session().id();
        match registry.create(Create::ephemeral(&tree.leader(), id.clone(), session)).await {
            Ok(_) => self.write(&tree.necessary(), "").await,
            Err(Error::Exists { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        self.write(&tree.server(format!("10.0.0.{host}")), "ENABLED").await;
        let document = format!("jobInstanceId: {id}\nserverIp: 10.0.0.{host}\n");
        registry.create(Create::ephemeral(&tree.instance(&id), document, session)).await.unwrap();
        Java { id, connection }
    }

    /// Assigns these shards to one instance, as a Java leader does.
    pub(crate) async fn assign(&self, job: &str, shards: &[u32], owner: &str) {
        let tree = self.tree(job);
        for shard in shards {
            self.write(&tree.shard(*shard, ShardNode::Owner), owner).await;
        }
        if self.registry().exists(&tree.necessary()).await.unwrap().is_some() {
            self.delete(&tree.necessary()).await;
        }
    }

    /// Waits until all shards of a job are assigned to registered instances.
    pub(crate) async fn wait_assigned(&self, job: &str) {
        let admin = self.admin();
        eventually("the shards are assigned", async || {
            let shards = admin.shards(&name(job)).await.unwrap();
            !shards.is_empty() && shards.iter().all(|shard| shard.is_owner_online)
        })
        .await;
    }
}

impl Node {
    pub(crate) fn id(&self) -> String {
        self.member.id().to_string()
    }

    pub(crate) async fn claim(&self, fire: &Fire) -> ShardClaim {
        let request = ClaimRequest {
            fire: fire.clone(),
            scope: ClaimScope::Scheduled,
            max_wait: TIMEOUT,
            cancel: CancelToken::new(),
        };
        self.member.claims().claim(request).await.unwrap()
    }

    pub(crate) async fn finish(&self, claimed: &ShardClaim) {
        let ended =
            claimed.shards.iter().map(|shard| (shard.item, Release::Ended(Outcome::Succeeded)));
        self.member.claims().release(ended.collect()).await.unwrap();
    }

    /// Waits for news that match.
    pub(crate) async fn wait_for_news(
        &mut self,
        matches: impl Fn(&MemberEvent) -> bool,
    ) -> MemberEvent {
        let waited = tokio::time::timeout(TIMEOUT, async {
            loop {
                match self.member.next_event().await {
                    Some(news) if matches(&news) => return news,
                    Some(_) => {}
                    None => panic!("the member has ended"),
                }
            }
        });
        waited.await.expect("matching news")
    }
}

pub(crate) async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(TIMEOUT, async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

pub(crate) fn name(job: &str) -> JobName {
    job.parse().unwrap()
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A job that is due only in the far future, so that it never runs by itself.
pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0 0 2 1 1 ? 2150").unwrap().shards(shards)
}

pub(crate) async fn status(fixture: &Fixture<'_>, job: &str) -> JobStatus {
    let listed = fixture.admin().jobs().await.unwrap();
    let listed = listed.into_iter().find(|summary| summary.name == job).unwrap();
    let details = fixture.admin().job(&name(job)).await.unwrap();
    assert_eq!(listed.status, details.summary.status, "list and details agree");
    listed.status
}

pub(crate) async fn statuses(fixture: &Fixture<'_>, job: &str) -> Vec<ShardStatus> {
    let shards = fixture.admin().shards(&name(job)).await.unwrap();
    shards.into_iter().map(|shard| shard.status).collect()
}
