//! Why something ran, or did not.

use elasticjob::{
    admin::{Explanation, Topic, Weight},
    coordination::{
        ledger::{Page, State},
        tree::Part,
    },
    job::{Fire, Job, RunId},
    testing::conformance::Ground,
};

use crate::site::{Site, at, job, name};

fn said(explanation: &Explanation) -> String {
    let lines = explanation
        .findings
        .iter()
        .map(|finding| format!("{:?} {:?}: {}", finding.shard, finding.topic, finding.says));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn an_explanation_names_what_stands_in_the_way(ground: &dyn Ground) {
    let site = Site::new(ground, "an-explanation-names").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let explain = async |shard| admin.explain(&settle, shard, None).await.unwrap();

    assert!(explain(None).await.has(Topic::Missing, None));
    site.write(&tree.config(), "cron: [").await;
    assert!(explain(None).await.has(Topic::Unreadable, None));
    site.write(&tree.config(), &job(3).to_yaml()).await;
    let nobody = explain(None).await;
    assert!(
        nobody.has(Topic::NoInstance, None) && nobody.has(Topic::NoOwner, Some(2)),
        "{}",
        said(&nobody)
    );

    let java = site.java(1, &job(3)).await;
    site.deal("settle", &[0], &java.id).await;
    site.deal("settle", &[1], "10.0.0.8@-@9").await;
    site.write(&tree.necessary(), "").await;
    site.write(&tree.shard(0, Part::Disabled), "").await;
    site.write(&tree.shard(0, Part::Misfire), "").await;
    site.write(&tree.shard(1, Part::Running), "10.0.0.8@-@9").await;
    site.write(&tree.failover_item(2), "").await;
    site.write(&tree.server("10.0.0.1"), "DISABLED").await;
    site.write(&tree.server("10.0.0.2"), "ENABLED").await;
    site.delete(&tree.leader()).await;
    let much = explain(None).await;

    for (topic, shard) in [
        (Topic::ServerDisabled, None),
        (Topic::NoLeader, None),
        (Topic::Resharding, None),
        (Topic::Limits, None),
        (Topic::Schedule, None),
        (Topic::ShardDisabled, Some(0)),
        (Topic::Misfire, Some(0)),
        (Topic::ServerDisabled, Some(0)),
        (Topic::OwnerGone, Some(1)),
        (Topic::Running, Some(1)),
        (Topic::NoOwner, Some(2)),
        (Topic::Failover, Some(2)),
    ] {
        assert!(much.has(topic, shard), "{topic:?} {shard:?} in\n{}", said(&much));
    }
    let gone = much.findings.iter().find(|finding| finding.topic == Topic::Running).unwrap();
    assert!(
        gone.weight == Weight::Matters && gone.says.contains("10.0.0.8@-@9 was running it since"),
        "{gone:?}"
    );
    let one = explain(Some(1)).await;
    assert!(one.has(Topic::Running, Some(1)), "{}", said(&one));
    assert!(
        one.findings.iter().all(|finding| finding.shard.is_none_or(|shard| shard == 1)),
        "{}",
        said(&one)
    );
    assert!(explain(Some(9)).await.has(Topic::NoShard, Some(9)));
    admin.disable(&settle).await.unwrap();
    assert!(explain(None).await.has(Topic::Disabled, None));
}

pub(crate) async fn an_explanation_knows_what_was_due_and_what_became_of_it(ground: &dyn Ground) {
    let site = Site::new(ground, "an-explanation-knows").await;
    let settle = name("settle");
    let hourly =
        Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap().zone("GMT+0:00").unwrap();
    let node = site.rust(1, hourly.clone()).await;
    site.dealt("settle").await;
    let admin = site.admin_at("2033-11-15T08:00:00Z");
    let explain = async |time: &str| admin.explain(&settle, Some(0), Some(at(time))).await.unwrap();
    let page = site.tree("settle").page(0);
    let due = Fire::scheduled(settle.clone(), at("2033-11-15T06:00:00Z"));
    let kept = Page::default().started(&due, node.member.id());

    // Instances entered before these times, and nothing was started.
    let missed = explain("2033-11-15T06:30:00Z").await;
    assert_eq!(
        (missed.due_at, missed.next_fire),
        (Some(at("2033-11-15T06:00:00Z")), Some(at("2033-11-15T07:00:00Z")))
    );
    assert!(missed.has(Topic::Missed, Some(0)), "{}", said(&missed));
    let future = explain("2033-11-15T09:30:00Z").await;
    assert!(!future.has(Topic::Missed, Some(0)), "{}", said(&future));
    assert!(said(&future).contains("will be due at 2033-11-15T09:00:00Z"), "{}", said(&future));
    let early = explain("2020-11-15T06:30:00Z").await;
    assert!(
        said(&early).contains("nobody of those who are there now was a member"),
        "{}",
        said(&early)
    );
    site.write(&page, std::str::from_utf8(&kept.to_bytes()).unwrap()).await;
    let started = explain("2033-11-15T06:30:00Z").await;
    assert!(
        started.has(Topic::Started, Some(0)) && !started.has(Topic::Missed, Some(0)),
        "{}",
        said(&started)
    );
    assert!(
        said(&started).contains(&format!("was started by {}: it runs, attempt 1", node.id())),
        "{}",
        said(&started)
    );
    let lost = Page { state: State::Lost, attempt: 2, ..kept.clone() };
    site.write(&page, std::str::from_utf8(&lost.to_bytes()).unwrap()).await;
    assert!(
        said(&explain("2033-11-15T06:30:00Z").await)
            .contains("lost, whoever ran it is gone, attempt 2")
    );
    let before = explain("2033-11-15T05:30:00Z").await;
    assert!(before.has(Topic::Limits, Some(0)), "{}", said(&before));
    assert!(explain("2033-11-15T07:00:00Z").await.has(Topic::Missed, Some(0)));
    let asked = Fire::triggered(settle.clone(), at("2033-11-15T06:10:00Z"), RunId::triggered(7));
    let asked = Page { state: State::Done, ..lost.started(&asked, node.member.id()) };
    site.write(&page, std::str::from_utf8(&asked.to_bytes()).unwrap()).await;
    assert!(said(&explain("2033-11-15T06:30:00Z").await).contains("was asked for: done"));

    let _java = site.java(2, &hourly).await;
    let unknown = explain("2033-11-15T07:00:00Z").await;
    assert!(said(&unknown).contains("a Java instance may have run it"), "{}", said(&unknown));
    assert!(!unknown.has(Topic::Missed, Some(0)));
}
