//! Instances that join and leave, leadership, and shard assignment.

use elasticjob::job::{Failover, Job, Strategy};

use crate::{
    event_log::{Event, Execution},
    scenario::{Scenario, TestRegistry, expected_owners_at, job, ms},
};

const EVERY_2_SECONDS: &str = "0/2 * * * * ?";

/// The interval is long enough for an instance to join or leave between two fires.
pub(crate) const MOVE_CRON: &str = "0/4 * * * * ?";
const MOVE_INTERVAL_MS: i64 = 4_000;

pub(crate) async fn instances_of_both_languages_join_and_leave_a_job(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "join-and-leave").await;
    let settle = job("settle", EVERY_2_SECONDS, 4).items("0=a,1=b,2=c,3=d").unwrap();
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    assert_eq!(java.version, "3.0.4");

    let java_id = java.join(&settle, ms(50)).await;
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&java_id]).await)
        .await;
    let rust_id = rust.join(&settle, ms(50)).await;
    let both = scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    scenario.wait_until_owners_run(&settle, &both).await;

    rust.leave(&settle).await;
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&java_id]).await)
        .await;
    let rust_id = rust.join(&settle, ms(50)).await;
    scenario
        .wait_until_owners_run(
            &settle,
            &scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await,
        )
        .await;

    java.leave(&settle).await;
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&rust_id]).await)
        .await;
    let java_id = java.join(&settle, ms(50)).await;
    scenario
        .wait_until_owners_run(
            &settle,
            &scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await,
        )
        .await;

    let events = scenario.events.all();
    let starts = events.iter().filter(|event| event.fields["event"] == "started");
    let wrong: Vec<_> = starts
        .filter(|event| {
            let item = event.fields["item"].as_u64().unwrap() as usize;
            event.fields["parameter"] != ["a", "b", "c", "d"][item]
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub(crate) async fn leadership_moves_from_java_to_rust_and_back(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "leadership-moves").await;
    let settle = job("settle", EVERY_2_SECONDS, 2);
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let java_id = java.join(&settle, ms(20)).await;
    let rust_id = rust.join(&settle, ms(20)).await;
    assert_eq!(scenario.leader(&settle).await.as_ref(), Some(&java_id));

    java.leave(&settle).await;
    scenario
        .until("Rust leads", async || scenario.leader(&settle).await.as_ref() == Some(&rust_id))
        .await;
    scenario.wait_until_assigned(&settle, &[&rust_id]).await;
    let java_id = java.join(&settle, ms(20)).await;
    let both = scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    assert_eq!(scenario.leader(&settle).await.as_ref(), Some(&rust_id));

    // Rust leaves right after the beginning of a fire: Java misses changes that happen while it reshards, at the beginning of the next fire.
    scenario.wait_until_owners_run(&settle, &both).await;
    rust.leave(&settle).await;
    scenario
        .until("Java leads", async || scenario.leader(&settle).await.as_ref() == Some(&java_id))
        .await;
    scenario.wait_until_assigned(&settle, &[&java_id]).await;
}

pub(crate) async fn java_and_rust_leaders_assign_the_same_shards(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "same-assignment").await;
    let (mut java, mut one) = (scenario.java("java").await, scenario.rust(1).await);
    let (mut two, mut three) = (scenario.rust(2).await, scenario.rust(30).await);
    let mut members: Vec<Vec<String>> = Vec::new();
    let jobs = [
        job("test_job", EVERY_2_SECONDS, 10).strategy(&Strategy::AvgAllocation),
        // Its hash is even.
        job("order-sync", EVERY_2_SECONDS, 10).strategy(&Strategy::Odevity),
        job("报表", EVERY_2_SECONDS, 10).strategy(&Strategy::RoundRobin),
        job("settle", EVERY_2_SECONDS, 3).strategy(&Strategy::AvgAllocation),
        // Its hash is odd.
        job("myJob", EVERY_2_SECONDS, 10).strategy(&Strategy::Odevity),
        job("nightly", EVERY_2_SECONDS, 9).strategy(&Strategy::RoundRobin),
    ];

    for (index, job) in jobs.iter().enumerate() {
        let is_led_by_java = index < 3;
        let leader =
            if is_led_by_java { java.join(job, ms(1)).await } else { one.join(job, ms(1)).await };
        let mut ids = vec![leader.clone()];
        for rust in [&mut two, &mut three] {
            ids.push(rust.join(job, ms(1)).await);
        }
        let last = if is_led_by_java { &mut one } else { &mut java };
        ids.push(last.join(job, ms(1)).await);
        assert_eq!(scenario.leader(job).await, Some(leader), "{}", job.name);
        members.push(ids);
    }

    for (job, ids) in jobs.iter().zip(&members) {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        scenario.wait_until_assigned(job, &ids).await;
    }
}

pub(crate) async fn java_and_rust_leaders_agree_on_single_sharding_balance(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "balance").await;
    let (mut java, mut one, mut two) =
        (scenario.java("java").await, scenario.rust(1).await, scenario.rust(2).await);
    let balanced =
        |name: &str| job(name, EVERY_2_SECONDS, 5).strategy(&Strategy::SingleShardingBalance);
    let (java_led, rust_led) = (balanced("java-leads"), balanced("rust-leads"));
    let mut ids = vec![java.join(&java_led, ms(1)).await];
    for rust in [&mut one, &mut two] {
        ids.push(rust.join(&java_led, ms(1)).await);
    }
    for peer in [&mut one, &mut two, &mut java] {
        peer.join(&rust_led, ms(1)).await;
    }
    assert_eq!(scenario.leader(&java_led).await.as_ref(), Some(&ids[0]));
    assert_eq!(scenario.leader(&rust_led).await.as_ref(), Some(&ids[1]));
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();

    // The assignment depends on the time, and Java prints the time that it used.
    let expected_by_java = || {
        let events = scenario.events.all();
        let is_sharding = |event: &&Event| {
            let is_of_job =
                event.fields["event"] == "sharded" && event.fields["job"] == "java-leads";
            is_of_job && event.fields["instances"] == 3
        };
        let last = events.iter().rev().find(is_sharding);
        let now = last.map(|event| event.fields["now"].as_i64().unwrap());
        now.map(|now| expected_owners_at(&java_led, &ids, now))
    };
    scenario
        .until("Java assigns as Rust would have", async || {
            expected_by_java().is_some_and(|expected| !expected.is_empty())
                && Some(scenario.owners(&java_led).await) == expected_by_java()
        })
        .await;

    // Rust does not print the time, but there are only as many different assignments as instances.
    let assignments: Vec<_> = (0..3).map(|now| expected_owners_at(&rust_led, &ids, now)).collect();
    scenario
        .until("Rust assigns as Java would have", async || {
            assignments.contains(&scenario.owners(&rust_led).await)
        })
        .await;
}

/// The shards that did not run exactly once in a fire, from the first to the last complete fire.
pub(crate) fn find_missed_or_doubled(executions: &[Execution], shards: u32) -> Vec<String> {
    let fire = |execution: &Execution| execution.started_at / MOVE_INTERVAL_MS;
    let fires: Vec<i64> = executions.iter().map(fire).collect();
    // The first fire may be incomplete, because the instance joined in the middle of it. The last one may still be running.
    let (first, last) = (fires.iter().min().unwrap() + 1, fires.iter().max().unwrap() - 1);
    let mut wrong = Vec::new();
    for (fire_at, item) in (first..=last).flat_map(|at| (0..shards).map(move |item| (at, item))) {
        let count = executions
            .iter()
            .filter(|execution| fire(execution) == fire_at && execution.item == item)
            .count();
        if count != 1 {
            wrong.push(format!("shard {item} ran {count} times at {}", fire_at * MOVE_INTERVAL_MS));
        }
    }
    wrong
}

pub(crate) async fn job_moves_to_rust_and_back_without_missed_or_doubled_fires(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "moves").await;
    let settle = job("settle", MOVE_CRON, 3).failover(Failover::TakeOver);
    let (admin, name) = (scenario.admin(), settle.name.clone());
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let java_id = java.join(&settle, ms(300)).await;
    let (java_server, _) = java_id.split_once("@-@").unwrap();
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&java_id]).await)
        .await;

    // Both; then Rust alone. Java leaves once it has no shards.
    between_fires(&scenario, &settle).await;
    let rust_id = rust.join(&settle, ms(300)).await;
    scenario
        .wait_until_owners_run(
            &settle,
            &scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await,
        )
        .await;
    between_fires(&scenario, &settle).await;
    assert_eq!(admin.disable_server(java_server, Some(&name)).await.unwrap(), ["settle"]);
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&rust_id]).await)
        .await;
    java.leave(&settle).await;
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&rust_id]).await)
        .await;

    // And back: a Rust instance finishes its shards before it leaves.
    between_fires(&scenario, &settle).await;
    assert_eq!(admin.enable_server(java_server, Some(&name)).await.unwrap(), ["settle"]);
    let java_id = java.join(&settle, ms(300)).await;
    scenario
        .wait_until_owners_run(
            &settle,
            &scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await,
        )
        .await;
    rust.leave(&settle).await;
    scenario
        .wait_until_owners_run(&settle, &scenario.wait_until_assigned(&settle, &[&java_id]).await)
        .await;

    let wrong = find_missed_or_doubled(&scenario.events.executions("settle"), 3);
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Waits until a fire is over on all instances, when an operator would make a change.
pub(crate) async fn between_fires(scenario: &Scenario, job: &Job) {
    let before = scenario.events.executions(job.name.as_str()).len();
    let find = |executions: &[Execution]| {
        let since = &executions[before..];
        let is_complete = since.len() >= job.shards.get() as usize;
        (is_complete && since.iter().all(Execution::has_ended)).then_some(())
    };
    scenario.events.until("a fire is over", job.name.as_str(), find).await;
    scenario.wait_until_quiescent(job).await;
}
