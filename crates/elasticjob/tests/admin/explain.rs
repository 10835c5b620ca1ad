//! Explanations of why a job or shard ran, or did not run.

use elasticjob::{
    admin::{Explanation, Severity, Topic},
    coordination::{
        ledger::{LedgerPage, LedgerState},
        tree::ShardNode,
    },
    job::{Fire, Job, RunId},
    testing::conformance::TestServer,
};

use crate::fixture::{Fixture, at, job, name};

fn messages(explanation: &Explanation) -> String {
    let lines = explanation
        .findings
        .iter()
        .map(|finding| format!("{:?} {:?}: {}", finding.shard, finding.topic, finding.message));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn explanation_names_every_blocking_state(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "explain-blocking").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let explain = async |shard| admin.explain(&settle, shard, None).await.unwrap();

    assert!(explain(None).await.has(Topic::Missing, None));
    fixture.write(&tree.config(), "cron: [").await;
    assert!(explain(None).await.has(Topic::Unreadable, None));
    fixture.write(&tree.config(), &job(3).to_yaml()).await;
    let no_instance = explain(None).await;
    assert!(
        no_instance.has(Topic::NoInstance, None) && no_instance.has(Topic::NoOwner, Some(2)),
        "{}",
        messages(&no_instance)
    );

    let java = fixture.java(1, &job(3)).await;
    fixture.assign("settle", &[0], &java.id).await;
    fixture.assign("settle", &[1], "10.0.0.8@-@9").await;
    fixture.write(&tree.necessary(), "").await;
    fixture.write(&tree.shard(0, ShardNode::Disabled), "").await;
    fixture.write(&tree.shard(0, ShardNode::Misfire), "").await;
    fixture.write(&tree.shard(1, ShardNode::Running), "10.0.0.8@-@9").await;
    fixture.write(&tree.failover_item(2), "").await;
    fixture.write(&tree.server("10.0.0.1"), "DISABLED").await;
    fixture.write(&tree.server("10.0.0.2"), "ENABLED").await;
    fixture.delete(&tree.leader()).await;
    let all = explain(None).await;

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
        assert!(all.has(topic, shard), "{topic:?} {shard:?} in\n{}", messages(&all));
    }
    let gone = all.findings.iter().find(|finding| finding.topic == Topic::Running).unwrap();
    assert!(
        gone.severity == Severity::Warning
            && gone.message.contains("10.0.0.8@-@9 was running it since"),
        "{gone:?}"
    );
    // Its process is alive.
    fixture.write(&tree.process(&"10.0.0.8@-@9".parse().unwrap()), "").await;
    let one = explain(Some(1)).await;
    assert!(messages(&one).contains("has left the job and still runs it"), "{}", messages(&one));
    assert!(one.has(Topic::Running, Some(1)), "{}", messages(&one));
    assert!(
        one.findings.iter().all(|finding| finding.shard.is_none_or(|shard| shard == 1)),
        "{}",
        messages(&one)
    );
    assert!(explain(Some(9)).await.has(Topic::NoShard, Some(9)));
    admin.disable(&settle).await.unwrap();
    assert!(explain(None).await.has(Topic::Disabled, None));
}

pub(crate) async fn explanation_knows_the_due_fire_and_its_outcome(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "explain-due-fire").await;
    let settle = name("settle");
    let hourly =
        Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap().zone("GMT+0:00").unwrap();
    let node = fixture.rust(1, hourly.clone()).await;
    fixture.wait_assigned("settle").await;
    let admin = fixture.admin_at("2033-11-15T08:00:00Z");
    let explain = async |time: &str| admin.explain(&settle, Some(0), Some(at(time))).await.unwrap();
    let page = fixture.tree("settle").ledger_page(0);
    let due = Fire::scheduled(settle.clone(), at("2033-11-15T06:00:00Z"));
    let page_started = LedgerPage::default().after_claim(&due, node.member.id());

    // The instance joined before these times, and no fire was started.
    let missed = explain("2033-11-15T06:30:00Z").await;
    assert_eq!(
        (missed.due_at, missed.next_fire),
        (Some(at("2033-11-15T06:00:00Z")), Some(at("2033-11-15T07:00:00Z")))
    );
    assert!(missed.has(Topic::Missed, Some(0)), "{}", messages(&missed));
    let future = explain("2033-11-15T09:30:00Z").await;
    assert!(!future.has(Topic::Missed, Some(0)), "{}", messages(&future));
    assert!(
        messages(&future).contains("will be due at 2033-11-15T09:00:00Z"),
        "{}",
        messages(&future)
    );
    let early = explain("2020-11-15T06:30:00Z").await;
    assert!(
        messages(&early).contains("none of the current instances had joined yet"),
        "{}",
        messages(&early)
    );
    fixture.write(&page, std::str::from_utf8(&page_started.to_bytes()).unwrap()).await;
    let started = explain("2033-11-15T06:30:00Z").await;
    assert!(
        started.has(Topic::Started, Some(0)) && !started.has(Topic::Missed, Some(0)),
        "{}",
        messages(&started)
    );
    // Only the page says that it runs: no other instance could claim it.
    let held = started.findings.iter().find(|finding| finding.topic == Topic::Running).unwrap();
    assert!(
        held.severity == Severity::Blocking && held.message.contains("according to the ledger"),
        "{held:?}"
    );
    assert!(
        messages(&started).contains(&format!("was started by {}: running, attempt 1", node.id())),
        "{}",
        messages(&started)
    );
    let lost = LedgerPage { state: LedgerState::Lost, attempt: 2, ..page_started.clone() };
    fixture.write(&page, std::str::from_utf8(&lost.to_bytes()).unwrap()).await;
    assert!(
        messages(&explain("2033-11-15T06:30:00Z").await)
            .contains("lost because its instance is gone, attempt 2")
    );
    let before = explain("2033-11-15T05:30:00Z").await;
    assert!(before.has(Topic::Limits, Some(0)), "{}", messages(&before));
    assert!(explain("2033-11-15T07:00:00Z").await.has(Topic::Missed, Some(0)));
    let triggered =
        Fire::triggered(settle.clone(), at("2033-11-15T06:10:00Z"), RunId::triggered(7));
    let triggered =
        LedgerPage { state: LedgerState::Done, ..lost.after_claim(&triggered, node.member.id()) };
    fixture.write(&page, std::str::from_utf8(&triggered.to_bytes()).unwrap()).await;
    assert!(messages(&explain("2033-11-15T06:30:00Z").await).contains("was triggered: done"));

    let _java = fixture.java(2, &hourly).await;
    let unknown = explain("2033-11-15T07:00:00Z").await;
    assert!(
        messages(&unknown).contains("a Java instance may have run it"),
        "{}",
        messages(&unknown)
    );
    assert!(!unknown.has(Topic::Missed, Some(0)));
}
