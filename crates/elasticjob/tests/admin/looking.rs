//! What is shown, whatever stands there.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, Edit, JobStatus, JobSummary, Language, RunsWith, ShardStatus},
    coordination::{tree::Part, trigger::Ask},
    job::Job,
    registry::{Create, Digest},
    testing::conformance::Ground,
};
use futures_util::future::try_join_all;

use crate::site::{PATIENCE, Site, at, job, name, status, statuses};

/// One idle one-off instance with two shards, as the ancestor's console was seen with it.
pub(crate) async fn the_console_sequence_of_a_java_job_reads_as_the_ancestors_does(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "the-console-sequence").await;
    let (admin, settle) = (site.admin(), name("settle"));
    let tree = site.tree("settle");
    let one_off = Job::named("settle").unwrap().shards(2).description("nightly");
    let java = site.java(1, &one_off).await;

    assert_eq!(status(&site, "settle").await, JobStatus::ShardingFlag, "before any run");
    let asked = admin.trigger(&settle, Ask::default()).await.unwrap();
    assert_eq!(asked.instances, [&*java.id]);
    assert_eq!(site.read(&tree.trigger(&java.id)).await.as_deref(), Some(""), "as Java writes it");
    site.delete(&tree.trigger(&java.id)).await;
    site.deal("settle", &[0, 1], &java.id).await;
    assert_eq!(status(&site, "settle").await, JobStatus::Ok);
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Pending; 2]);

    assert!(admin.disable_shard(&settle, 1).await.unwrap());
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Pending, ShardStatus::Disabled]);
    admin.disable(&settle).await.unwrap();
    assert_eq!(status(&site, "settle").await, JobStatus::Disabled);
    admin.enable(&settle).await.unwrap();
    assert_eq!(status(&site, "settle").await, JobStatus::Ok);

    let ended = admin.shutdown(&settle).await.unwrap();
    assert_eq!(ended, [&*java.id]);
    java.line.registry.close().await;
    assert_eq!(status(&site, "settle").await, JobStatus::Crashed);
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::ShardingFlag, ShardStatus::Disabled]);
    assert_eq!(admin.remove_server("10.0.0.1", Some(&settle)).await.unwrap(), ["settle"]);
    assert!(admin.servers().await.unwrap().is_empty());

    admin.remove(&settle, false).await.unwrap();
    assert!(admin.jobs().await.unwrap().is_empty());
    assert_eq!(admin.job(&settle).await.unwrap_err().exit_code(), 5);
}

pub(crate) async fn a_configuration_nobody_can_read_is_shown_and_hides_nobody(ground: &dyn Ground) {
    let site = Site::new(ground, "a-configuration-nobody").await;
    let node = site
        .rust(
            1,
            job(2)
                .description("for people")
                .handler("shop::settle")
                .prop("email.password", "hunter2")
                .unwrap(),
        )
        .await;
    site.dealt("settle").await;
    site.write(&site.tree("broken").config(), "cron: [").await;
    site.write(&site.tree("leftover").server("10.0.0.9"), "ENABLED").await;
    site.write(&site.tree("settle").root().parent().unwrap().join("other/namespace").unwrap(), "")
        .await;

    let jobs = site.admin_at("2026-11-15T06:00:00Z").jobs().await.unwrap();

    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["broken", "leftover", "settle"]);
    assert!(jobs[0].problem.as_ref().unwrap().contains("job broken"), "{:?}", jobs[0]);
    assert!(jobs[1].problem.as_ref().unwrap().contains("no configuration"), "{:?}", jobs[1]);
    let expected = JobSummary {
        name: "settle".into(),
        status: JobStatus::Ok,
        description: "for people".into(),
        cron: Some("0 0 2 1 1 ? 2150".into()),
        shards: Some(2),
        instances: 1,
        runs_with: RunsWith::Rust { handler: Some("shop::settle".into()) },
        next_fire: Some(at("2150-01-01T02:00:00Z")),
        problem: None,
    };
    assert_eq!(jobs[2], expected);
    let broken = site.admin().job(&name("broken")).await.unwrap();
    assert_eq!((broken.configuration.raw.as_str(), broken.configuration.job), ("cron: [", None));
    let details = site.admin().job(&name("settle")).await.unwrap();
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

pub(crate) async fn a_job_that_is_not_ours_to_look_at_hides_nobody(ground: &dyn Ground) {
    let site = Site::new(ground, "a-job-that-is-not").await;
    let jane = Digest { user: "jane".into(), password: "secret".into() };
    let hers = ground.join("a-job-that-is-not", Some(jane)).await;
    let (admin, janes) = (site.admin(), Admin::on(Arc::clone(&hers.registry)));
    let plan = janes.plan(Edit::of(Job::named("hers").unwrap())).await.unwrap();
    janes.apply(&plan).await.unwrap();
    let _java = site.java(1, &job(1)).await;

    let jobs = admin.jobs().await.unwrap();

    let problems: Vec<bool> = jobs.iter().map(|job| job.problem.is_some()).collect();
    assert_eq!(problems, [true, false], "{jobs:?}");
    assert!(jobs[0].problem.as_ref().unwrap().contains("not authorised"), "{:?}", jobs[0]);
    assert_eq!(admin.server("10.0.0.1").await.unwrap().summary.jobs, ["settle"]);
    assert_eq!(admin.job(&name("hers")).await.unwrap_err().exit_code(), 4);
    assert_eq!(admin.remove(&name("hers"), true).await.unwrap_err().exit_code(), 4);
    assert_eq!(janes.job(&name("hers")).await.unwrap().summary.problem, None);
}

pub(crate) async fn a_dump_is_the_ancestors_and_masks_addresses_whole(ground: &dyn Ground) {
    let site = Site::new(ground, "a-dump-is-the").await;
    let tree = site.tree("settle");
    site.write(&tree.config(), "cron: x\njobName: settle\n").await;
    site.write(&tree.server("10.0.0.1"), "ENABLED").await;
    site.write(&tree.server("10.0.0.12"), "DISABLED").await;
    site.write(&tree.shard(0, Part::Owner), "10.0.0.1@-@7").await;
    site.write(&tree.shard(10, Part::Itself), "").await;
    site.write(&tree.shard(2, Part::Itself), "").await;

    let dump = site.admin().dump(&name("settle")).await.unwrap();

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
    assert_eq!(site.admin().dump(&name("nothing")).await.unwrap_err().exit_code(), 5);
}

pub(crate) async fn a_thousand_jobs_are_listed_in_one_go(ground: &dyn Ground) {
    let site = Site::new(ground, "a-thousand-jobs-are").await;
    let node = ground.join("a-thousand-jobs-are", None).await;
    let session = node.registry.session().id();
    let id = "10.0.0.1@-@7-a";
    let make = async |number: usize| {
        let job = Job::named(&format!("job-{number:04}"))
            .unwrap()
            .cron("0/5 * * * * ?")
            .unwrap()
            .shards(4);
        let tree = site.tree(job.name.as_str());
        let mut creates = vec![
            Create::persistent(tree.root(), ""),
            Create::persistent(&tree.config(), job.to_yaml()),
        ];
        creates.extend(tree.skeleton().iter().map(|path| Create::persistent(path, "")));
        creates.push(Create::persistent(&tree.server("10.0.0.1"), "ENABLED"));
        creates.push(Create::ephemeral(&tree.instance(id), "", session));
        for shard in 0..4 {
            creates.push(Create::persistent(&tree.shard(shard, Part::Itself), ""));
            creates.push(Create::persistent(&tree.shard(shard, Part::Owner), id));
        }
        node.registry
            .multi(creates.into_iter().map(elasticjob::registry::Op::Create).collect())
            .await
    };
    for batch in (0..1_000).collect::<Vec<_>>().chunks(100) {
        try_join_all(batch.iter().map(|number| make(*number))).await.unwrap();
    }

    let jobs = tokio::time::timeout(PATIENCE, site.admin().jobs()).await.unwrap().unwrap();

    assert_eq!(jobs.len(), 1_000);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Ok && job.next_fire.is_some()));
    assert!(jobs.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert_eq!(site.admin().server("10.0.0.1").await.unwrap().jobs.len(), 1_000);
}
