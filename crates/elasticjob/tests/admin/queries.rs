//! Queries: jobs, shards, servers and dumps, also of broken or foreign nodes.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, Edit, HandlerInfo, JobStatus, JobSummary, Language, ShardStatus},
    coordination::{tree::ShardNode, trigger::TriggerRequest},
    job::Job,
    registry::{Create, Digest},
    testing::conformance::TestServer,
};
use futures_util::future::try_join_all;

use crate::fixture::{Fixture, TIMEOUT, at, job, name, status, statuses};
use elasticjob::admin::AdminError;

/// The statuses that Java's console showed for one idle instance of a job without a schedule, with two shards.
pub(crate) async fn java_job_shows_the_statuses_of_javas_console(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "java-statuses").await;
    let (admin, settle) = (fixture.admin(), name("settle"));
    let tree = fixture.tree("settle");
    let one_off = Job::named("settle").unwrap().shards(2).description("nightly");
    let java = fixture.java(1, &one_off).await;

    assert_eq!(status(&fixture, "settle").await, JobStatus::ShardingFlag, "before any run");
    let response = admin.trigger(&settle, TriggerRequest::default()).await.unwrap();
    assert_eq!(response.instances, [&*java.id]);
    assert_eq!(
        fixture.read(&tree.trigger(&java.id)).await.as_deref(),
        Some(""),
        "as Java writes it"
    );
    fixture.delete(&tree.trigger(&java.id)).await;
    fixture.assign("settle", &[0, 1], &java.id).await;
    assert_eq!(status(&fixture, "settle").await, JobStatus::Ok);
    assert_eq!(statuses(&fixture, "settle").await, [ShardStatus::Pending; 2]);

    assert!(admin.disable_shard(&settle, 1).await.unwrap());
    assert_eq!(statuses(&fixture, "settle").await, [ShardStatus::Pending, ShardStatus::Disabled]);
    admin.disable(&settle).await.unwrap();
    assert_eq!(status(&fixture, "settle").await, JobStatus::Disabled);
    admin.enable(&settle).await.unwrap();
    assert_eq!(status(&fixture, "settle").await, JobStatus::Ok);

    let shut_down = admin.shutdown(&settle).await.unwrap();
    assert_eq!(shut_down, [&*java.id]);
    java.connection.registry.close().await;
    assert_eq!(status(&fixture, "settle").await, JobStatus::Crashed);
    assert_eq!(
        statuses(&fixture, "settle").await,
        [ShardStatus::ShardingFlag, ShardStatus::Disabled]
    );
    assert_eq!(admin.remove_server("10.0.0.1", Some(&settle)).await.unwrap(), ["settle"]);
    assert!(admin.servers().await.unwrap().is_empty());

    admin.remove(&settle, false).await.unwrap();
    assert!(admin.jobs().await.unwrap().is_empty());
    assert!(matches!(admin.job(&settle).await.unwrap_err(), AdminError::NotFound { .. }));
}

pub(crate) async fn unreadable_configuration_is_listed_and_hides_no_other_job(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "unreadable-configuration").await;
    let node = fixture
        .rust(
            1,
            job(2)
                .description("settles orders")
                .handler("shop::settle")
                .prop("email.password", "hunter2")
                .unwrap(),
        )
        .await;
    fixture.wait_assigned("settle").await;
    fixture.write(&fixture.tree("broken").config(), "cron: [").await;
    fixture.write(&fixture.tree("leftover").server("10.0.0.9"), "ENABLED").await;
    fixture
        .write(
            &fixture.tree("settle").root().parent().unwrap().join("other/namespace").unwrap(),
            "",
        )
        .await;

    let jobs = fixture.admin_at("2026-11-15T06:00:00Z").jobs().await.unwrap();

    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["broken", "leftover", "settle"]);
    assert!(jobs[0].problem.as_ref().unwrap().contains("job broken"), "{:?}", jobs[0]);
    assert!(jobs[1].problem.as_ref().unwrap().contains("no configuration"), "{:?}", jobs[1]);
    let expected = JobSummary {
        name: "settle".into(),
        status: JobStatus::Ok,
        description: "settles orders".into(),
        cron: Some("0 0 2 1 1 ? 2150".into()),
        shards: Some(2),
        instances: 1,
        handler: HandlerInfo::Rust { handler: Some("shop::settle".into()) },
        next_fire: Some(at("2150-01-01T02:00:00Z")),
        problem: None,
        hint: None,
    };
    assert_eq!(jobs[2], expected);
    let broken = fixture.admin().job(&name("broken")).await.unwrap();
    assert_eq!((broken.configuration.raw.as_str(), broken.configuration.job), ("cron: [", None));
    let details = fixture.admin().job(&name("settle")).await.unwrap();
    assert_eq!(details.leader, Some(node.id()));
    let instance = &details.instances[0];
    assert_eq!(
        (&instance.id, instance.language, instance.labels["zone"].as_str()),
        (&node.id(), Language::Rust, "a")
    );
    assert!(instance.since.is_some() && details.resharding_since.is_none());
    let json = serde_json::to_value(&details).unwrap();
    assert_eq!(json["config"]["properties"]["shardingTotalCount"], 2);
    assert_eq!(json["config"]["properties"]["props"]["email.password"], "***");
    assert_eq!(
        (&json["jobName"], &json["nextFireTime"]),
        (&"settle".into(), &"2150-01-01T02:00:00Z".into())
    );
}

pub(crate) async fn job_without_access_is_listed_and_hides_no_other_job(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "job-without-access").await;
    let jane = Digest { user: "jane".into(), password: "secret".into() };
    let jane_connection = ground.join("job-without-access", Some(jane)).await;
    let (admin, jane_admin) = (fixture.admin(), Admin::new(Arc::clone(&jane_connection.registry)));
    let plan = jane_admin.plan(Edit::new(Job::named("private").unwrap())).await.unwrap();
    jane_admin.apply(&plan).await.unwrap();
    let _java = fixture.java(1, &job(1)).await;

    let jobs = admin.jobs().await.unwrap();

    let problems: Vec<bool> = jobs.iter().map(|job| job.problem.is_some()).collect();
    assert_eq!(problems, [true, false], "{jobs:?}");
    assert!(jobs[0].problem.as_ref().unwrap().contains("not authorised"), "{:?}", jobs[0]);
    assert_eq!(admin.server("10.0.0.1").await.unwrap().summary.jobs, ["settle"]);
    assert!(matches!(
        admin.job(&name("private")).await.unwrap_err(),
        AdminError::NotAuthorised { .. }
    ));
    assert!(matches!(
        admin.remove(&name("private"), true).await.unwrap_err(),
        AdminError::NotAuthorised { .. }
    ));
    assert_eq!(jane_admin.job(&name("private")).await.unwrap().summary.problem, None);
}

pub(crate) async fn dump_has_the_format_of_java_and_masks_whole_addresses(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "dump-format").await;
    let tree = fixture.tree("settle");
    fixture.write(&tree.config(), "cron: x\njobName: settle\n").await;
    fixture.write(&tree.server("10.0.0.1"), "ENABLED").await;
    fixture.write(&tree.server("10.0.0.12"), "DISABLED").await;
    fixture.write(&tree.shard(0, ShardNode::Owner), "10.0.0.1@-@7").await;
    fixture.write(&tree.shard(10, ShardNode::Root), "").await;
    fixture.write(&tree.shard(2, ShardNode::Root), "").await;

    let dump = fixture.admin().dump(&name("settle")).await.unwrap();

    let expected = "/settle/sharding | \n\
        /settle/sharding/2 | \n\
        /settle/sharding/10 | \n\
        /settle/sharding/0 | \n\
        /settle/sharding/0/instance | ip1@-@7\n\
        /settle/servers | \n\
        /settle/servers/ip2 | DISABLED\n\
        /settle/servers/ip1 | ENABLED\n\
        /settle/config | cron: x\njobName: settle\n\n";
    assert_eq!(dump, expected);
    assert!(matches!(
        fixture.admin().dump(&name("nothing")).await.unwrap_err(),
        AdminError::NotFound { .. }
    ));
}

pub(crate) async fn thousand_jobs_are_listed_quickly(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "thousand-jobs").await;
    let node = ground.join("thousand-jobs", None).await;
    let session = node.registry.session().id();
    let id = "10.0.0.1@-@7-a";
    let create_job = async |number: usize| {
        let job = Job::named(&format!("job-{number:04}"))
            .unwrap()
            .cron("0/5 * * * * ?")
            .unwrap()
            .shards(4);
        let tree = fixture.tree(job.name.as_str());
        let mut creates = vec![
            Create::persistent(tree.root(), ""),
            Create::persistent(&tree.config(), job.to_yaml()),
        ];
        creates.extend(tree.skeleton().iter().map(|path| Create::persistent(path, "")));
        creates.push(Create::persistent(&tree.server("10.0.0.1"), "ENABLED"));
        creates.push(Create::ephemeral(&tree.instance(id), "", session));
        for shard in 0..4 {
            creates.push(Create::persistent(&tree.shard(shard, ShardNode::Root), ""));
            creates.push(Create::persistent(&tree.shard(shard, ShardNode::Owner), id));
        }
        node.registry
            .multi(creates.into_iter().map(elasticjob::registry::Op::Create).collect())
            .await
    };
    for batch in (0..1_000).collect::<Vec<_>>().chunks(100) {
        try_join_all(batch.iter().map(|number| create_job(*number))).await.unwrap();
    }

    let jobs = tokio::time::timeout(TIMEOUT, fixture.admin().jobs()).await.unwrap().unwrap();

    assert_eq!(jobs.len(), 1_000);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Ok && job.next_fire.is_some()));
    assert!(jobs.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert_eq!(fixture.admin().server("10.0.0.1").await.unwrap().jobs.len(), 1_000);
}
