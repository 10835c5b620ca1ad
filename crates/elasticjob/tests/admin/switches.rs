//! Enabling, disabling and shutting down jobs, servers and shards.

use elasticjob::{
    admin::{ConfigUpdate, JobStatus, LedgerState, ShardStatus},
    coordination::{floor::Floor, member::MemberEvent},
    job::{Fire, Job},
    testing::conformance::TestServer,
};

use crate::fixture::{Fixture, at, job, name, status, statuses};
use elasticjob::admin::AdminError;

pub(crate) async fn disabled_job_stays_disabled_on_later_servers(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "disabled-job").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let _one = fixture.rust(1, job(2)).await;
    fixture.wait_assigned("settle").await;

    let switched = admin.disable(&settle).await.unwrap();
    assert_eq!(
        (switched.servers, switched.config),
        (vec!["10.0.0.1".to_owned()], ConfigUpdate::Written)
    );
    let _two = fixture.rust(2, job(2)).await;
    assert_eq!(fixture.read(&tree.server("10.0.0.2")).await.as_deref(), Some("DISABLED"));
    assert_eq!(status(&fixture, "settle").await, JobStatus::Disabled);
    let again = admin.disable(&settle).await.unwrap();
    assert_eq!((again.servers, again.config), (vec![], ConfigUpdate::Unchanged));
    let switched = admin.enable(&settle).await.unwrap();

    assert_eq!(switched.servers, ["10.0.0.1", "10.0.0.2"]);
    fixture.wait_assigned("settle").await;
    assert_eq!(status(&fixture, "settle").await, JobStatus::Ok);
    assert!(fixture.read(&tree.config()).await.unwrap().contains("disabled: false"));
    fixture.write(&tree.config(), "cron: [").await;
    let switched = admin.disable(&settle).await.unwrap();
    assert!(
        matches!(switched.config, ConfigUpdate::Unreadable { .. }) && switched.servers.len() == 2,
        "{switched:?}"
    );
    assert_eq!(fixture.read(&tree.config()).await.as_deref(), Some("cron: ["), "it is not changed");
}

pub(crate) async fn server_is_switched_per_job_and_removed_once_it_has_no_instance(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "switched-server").await;
    let (admin, settle) = (fixture.admin(), name("settle"));
    let other = Job::named("other").unwrap();
    let (one, two) = (fixture.java(1, &job(1)).await, fixture.java(1, &other).await);
    let other_server = fixture.java(2, &other).await;

    assert_eq!(admin.disable_server("10.0.0.1", Some(&settle)).await.unwrap(), ["settle"]);
    let server = admin.server("10.0.0.1").await.unwrap();
    assert_eq!(
        (server.summary.jobs.as_slice(), server.summary.disabled),
        (&["other".to_owned(), "settle".to_owned()][..], 1)
    );
    assert_eq!(server.summary.instances, [&*one.id], "an instance of two jobs is listed once");
    assert_eq!(admin.disable_server("10.0.0.1", None).await.unwrap(), ["other"]);
    assert_eq!(admin.enable_server("10.0.0.1", None).await.unwrap(), ["other", "settle"]);
    let all = admin.servers().await.unwrap();
    let all: Vec<(&str, usize)> =
        all.iter().map(|server| (server.address.as_str(), server.disabled)).collect();
    assert_eq!(all, [("10.0.0.1", 0), ("10.0.0.2", 0)]);

    let refused = admin.remove_server("10.0.0.1", None).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. }) && refused.to_string().contains(&one.id),
        "{refused}"
    );
    let shut_down = admin.shutdown_server("10.0.0.1", None).await.unwrap();
    assert_eq!(shut_down.into_keys().collect::<Vec<_>>(), ["other", "settle"]);
    assert_eq!(admin.remove_server("10.0.0.1", None).await.unwrap(), ["other", "settle"]);
    assert!(matches!(admin.server("10.0.0.1").await.unwrap_err(), AdminError::NotFound { .. }));
    assert_eq!(admin.job(&name("other")).await.unwrap().instances[0].id, other_server.id);
    drop((one, two));
}

pub(crate) async fn shard_status_disabled_precedes_all_others(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "disabled-shard").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    fixture.write(&tree.config(), &job(2).to_yaml()).await;

    assert!(admin.disable_shard(&settle, 1).await.unwrap(), "before any instance joined");
    assert!(!admin.disable_shard(&settle, 1).await.unwrap());
    let node = fixture.rust(1, job(2)).await;
    fixture.wait_assigned("settle").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;

    assert_eq!(statuses(&fixture, "settle").await, [ShardStatus::Running, ShardStatus::Disabled]);
    let shards = admin.shards(&settle).await.unwrap();
    assert_eq!(shards[0].running.as_ref().unwrap().instance, node.id());
    let run = shards[0].last_run.as_ref().unwrap();
    assert_eq!(
        (run.state, run.attempt, run.due_at),
        (LedgerState::Running, 1, Some(at("2026-11-15T06:00:00Z")))
    );
    node.finish(&claimed).await;
    assert!(admin.enable_shard(&settle, 1).await.unwrap());
    assert!(!admin.enable_shard(&settle, 1).await.unwrap());
    assert_eq!(statuses(&fixture, "settle").await, [ShardStatus::Pending; 2]);
    assert!(matches!(
        admin.disable_shard(&settle, 2).await.unwrap_err(),
        AdminError::Invalid { .. }
    ));
}

pub(crate) async fn enabling_stores_since_when_fires_are_to_run(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "stored-floor").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let node = fixture.rust(1, job(2)).await;
    fixture.wait_assigned("settle").await;
    node.member.leave().await;
    let floor = async || {
        let text = fixture.read(&tree.floor()).await.unwrap_or_else(|| "{}".to_owned());
        Floor::read(text.as_bytes()).unwrap()
    };

    // No instance is there to see it.
    admin.disable_shard(&settle, 1).await.unwrap();
    assert_eq!(floor().await, Floor::default());
    admin.enable_shard(&settle, 1).await.unwrap();
    let of_shard = floor().await;
    assert!(of_shard.since(1).is_some() && of_shard.since(0).is_none(), "{of_shard:?}");
    admin.disable_server("10.0.0.1", None).await.unwrap();
    admin.enable_server("10.0.0.1", None).await.unwrap();
    let of_server = floor().await;
    assert!(of_server.since(0) > of_shard.since(1), "its only server was disabled");
    admin.disable(&settle).await.unwrap();
    admin.enable(&settle).await.unwrap();

    assert!(floor().await.job >= of_server.job);
    fixture.write(&tree.floor(), "garbage").await;
    admin.disable(&settle).await.unwrap();
    admin.enable(&settle).await.unwrap();
    assert_eq!(fixture.read(&tree.floor()).await.as_deref(), Some("garbage"), "never overwritten");
}

pub(crate) async fn shut_down_job_has_no_instances_but_still_shows_its_shards(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "shut-down-job").await;
    let (admin, settle) = (fixture.admin(), name("settle"));
    let mut node = fixture.rust(1, job(1).items("0=Beijing").unwrap()).await;
    fixture.wait_assigned("settle").await;

    assert_eq!(admin.shutdown(&settle).await.unwrap(), [node.id()]);
    node.wait_for_news(|news| *news == MemberEvent::ShutDown).await;

    let shards = admin.shards(&settle).await.unwrap();
    assert_eq!(
        (shards[0].status, shards[0].owner.as_ref(), shards[0].is_owner_online),
        (ShardStatus::ShardingFlag, Some(&node.id()), false)
    );
    assert_eq!(
        (shards[0].server.as_deref(), shards[0].parameter.as_deref()),
        (Some("10.0.0.1"), Some("Beijing"))
    );
    assert_eq!(status(&fixture, "settle").await, JobStatus::Crashed);
    node.member.leave().await;
    node.connection.registry.close().await;
}
