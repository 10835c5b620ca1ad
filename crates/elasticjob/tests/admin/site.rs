//! A namespace to administrate: Rust members, Java-like ones by raw writes, and an administrator with a clock turned by hand.

use std::{sync::Arc, time::Duration};

use elasticjob::{
    admin::{Admin, JobStatus, ShardStatus},
    coordination::{
        flaw::Flaws,
        member::{
            Author, BusyShards, Claimed, Ended, Ground as Soil, Joining, Member, News, Request, Why,
        },
        process,
        sharding::Dealers,
        tree::{JobTree, Part},
    },
    job::{Fire, Handler, Instance, InstanceId, Job, JobName},
    registry::{Create, Error, Expected, Registry, plant},
    runtime::{Cancel, SystemClock, SystemRandomness},
    schedule::Zone,
    testing::{
        ManualClock,
        conformance::{self, Ground},
    },
};
use jiff::Timestamp;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Site<'g> {
    ground: &'g dyn Ground,
    namespace: &'static str,
    observer: conformance::Member,
}

/// A Rust instance, and what keeps it connected.
pub(crate) struct Node {
    pub(crate) member: Member,
    pub(crate) line: conformance::Member,
}

/// A Java instance, by what it writes.
pub(crate) struct Java {
    pub(crate) id: String,
    pub(crate) line: conformance::Member,
}

impl<'g> Site<'g> {
    /// Each scenario has a namespace of its own, so that many can share one server.
    pub(crate) async fn new(ground: &'g dyn Ground, namespace: &'static str) -> Self {
        Self { ground, namespace, observer: ground.join(namespace, None).await }
    }

    pub(crate) fn registry(&self) -> &dyn Registry {
        &*self.observer.registry
    }

    pub(crate) fn admin(&self) -> Admin {
        Admin::on(Arc::clone(&self.observer.registry)).zone(Zone::utc())
    }

    pub(crate) fn admin_at(&self, now: &str) -> Admin {
        self.admin().clock(Arc::new(ManualClock::at(at(now))))
    }

    /// Another line to the same namespace.
    pub(crate) async fn line(&self) -> conformance::Member {
        self.ground.join(self.namespace, None).await
    }

    pub(crate) fn tree(&self, job: &str) -> JobTree {
        JobTree::new(self.registry().namespace(), &name(job)).unwrap()
    }

    pub(crate) async fn write(&self, path: &elasticjob::registry::Path, data: &str) {
        plant(self.registry(), path).await.unwrap();
        self.registry().set(path, data.to_owned().into(), Expected::Any).await.unwrap();
    }

    pub(crate) async fn delete(&self, path: &elasticjob::registry::Path) {
        self.registry().delete(path, Expected::Any).await.unwrap();
    }

    pub(crate) async fn read(&self, path: &elasticjob::registry::Path) -> Option<String> {
        let node = self.registry().get(path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    /// A Rust instance at 10.0.0.`host`.
    pub(crate) async fn rust(&self, host: u8, job: Job) -> Node {
        let line = self.line().await;
        let id = InstanceId::new([10, 0, 0, host].into(), 100 + u32::from(host), 7);
        let joining = Joining {
            local: job,
            handler: Handler::Code { java_class: None },
            author: Author::Program,
            instance: Instance::new(id).labels("zone=a"),
        };
        let session = line.registry.session().id();
        process::announce(&*line.registry, &joining.instance.id, session).await.unwrap();
        let soil = Soil {
            registry: Arc::clone(&line.registry),
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            dealers: Dealers::default(),
            busy: BusyShards::default(),
            flaws: Flaws::default(),
        };
        Node { member: Member::join(soil, joining).await.unwrap(), line }
    }

    /// A Java instance at 10.0.0.`host` enters a job, as Java writes it; the first one leads.
    pub(crate) async fn java(&self, host: u8, job: &Job) -> Java {
        let line = self.line().await;
        let (tree, id) = (self.tree(job.name.as_str()), format!("10.0.0.{host}@-@4711"));
        let registry = &*line.registry;
        if registry.exists(&tree.config()).await.unwrap().is_none() {
            self.write(&tree.config(), &job.to_yaml()).await;
            self.write(tree.root(), "com.acme.Settle").await;
        }
        for parent in tree.skeleton() {
            plant(registry, &parent).await.unwrap();
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
        Java { id, line }
    }

    /// A Java leader deals: all of these shards to one instance.
    pub(crate) async fn deal(&self, job: &str, shards: &[u32], owner: &str) {
        let tree = self.tree(job);
        for shard in shards {
            self.write(&tree.shard(*shard, Part::Owner), owner).await;
        }
        if self.registry().exists(&tree.necessary()).await.unwrap().is_some() {
            self.delete(&tree.necessary()).await;
        }
    }

    /// Waits until the shards of a job are dealt to members.
    pub(crate) async fn dealt(&self, job: &str) {
        let admin = self.admin();
        eventually("the shards are dealt", async || {
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

    pub(crate) async fn claim(&self, fire: &Fire) -> Claimed {
        let request = Request {
            fire: fire.clone(),
            why: Why::Due,
            patience: PATIENCE,
            cancel: Cancel::new(),
        };
        self.member.claims().claim(request).await.unwrap()
    }

    pub(crate) async fn finish(&self, claimed: &Claimed) {
        let ended = claimed.shards.iter().map(|shard| (shard.item, Ended::Done));
        self.member.claims().release(ended.collect()).await.unwrap();
    }

    /// Waits for news of this kind.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&News) -> bool) -> News {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                match self.member.news().await {
                    Some(news) if is_it(&news) => return news,
                    Some(_) => {}
                    None => panic!("the member has ended"),
                }
            }
        });
        waited.await.expect("it is told")
    }
}

pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so().await {
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

/// A job that is due far in the future only, so that nothing happens by itself.
pub(crate) fn job(shards: u32) -> Job {
    Job::named("settle").unwrap().cron("0 0 2 1 1 ? 2150").unwrap().shards(shards)
}

pub(crate) async fn status(site: &Site<'_>, job: &str) -> JobStatus {
    let listed = site.admin().jobs().await.unwrap();
    let listed = listed.into_iter().find(|summary| summary.name == job).unwrap();
    let details = site.admin().job(&name(job)).await.unwrap();
    assert_eq!(listed.status, details.summary.status, "the list and the page agree");
    listed.status
}

pub(crate) async fn statuses(site: &Site<'_>, job: &str) -> Vec<ShardStatus> {
    let shards = site.admin().shards(&name(job)).await.unwrap();
    shards.into_iter().map(|shard| shard.status).collect()
}
