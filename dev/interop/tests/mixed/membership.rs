//! Who is there, who leads, and who gets what.

use elasticjob::job::{Failover, Job, Strategy};

use crate::{
    record::{Run, Said},
    scene::{Ground, Scene, deal_at, job, ms},
};

const TICK: &str = "0/2 * * * * ?";

/// Long enough for somebody to come or go in between.
pub(crate) const MOVE_CRON: &str = "0/4 * * * * ?";
const MOVE_EVERY: i64 = 4_000;

pub(crate) async fn instances_of_both_languages_join_and_leave_a_job(ground: Ground) {
    let scene = Scene::new(&ground, "join-and-leave").await;
    let settle = job("settle", TICK, 4).items("0=a,1=b,2=c,3=d").unwrap();
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    assert_eq!(java.version, "3.0.4");

    let java_id = java.joins(&settle, ms(50)).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id]).await).await;
    let rust_id = rust.joins(&settle, ms(50)).await;
    let both = scene.dealt(&settle, &[&java_id, &rust_id]).await;
    scene.runs_as(&settle, &both).await;

    rust.leaves(&settle).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id]).await).await;
    let rust_id = rust.joins(&settle, ms(50)).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id, &rust_id]).await).await;

    java.leaves(&settle).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&rust_id]).await).await;
    let java_id = java.joins(&settle, ms(50)).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id, &rust_id]).await).await;

    let said = scene.record.all();
    let parameters = said.iter().filter(|said| said.words["said"] == "began");
    let wrong: Vec<_> = parameters
        .filter(|said| {
            let item = said.words["item"].as_u64().unwrap() as usize;
            said.words["parameter"] != ["a", "b", "c", "d"][item]
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

pub(crate) async fn leadership_moves_from_java_to_rust_and_back(ground: Ground) {
    let scene = Scene::new(&ground, "leadership-moves").await;
    let settle = job("settle", TICK, 2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let java_id = java.joins(&settle, ms(20)).await;
    let rust_id = rust.joins(&settle, ms(20)).await;
    assert_eq!(scene.leader(&settle).await.as_ref(), Some(&java_id));

    java.leaves(&settle).await;
    scene
        .until("Rust leads", async || scene.leader(&settle).await.as_ref() == Some(&rust_id))
        .await;
    scene.dealt(&settle, &[&rust_id]).await;
    let java_id = java.joins(&settle, ms(20)).await;
    let both = scene.dealt(&settle, &[&java_id, &rust_id]).await;
    assert_eq!(scene.leader(&settle).await.as_ref(), Some(&rust_id));

    // Rust leaves right after the beginning of a fire: Java loses what happens while it reshards, at the beginning of the next one.
    scene.runs_as(&settle, &both).await;
    rust.leaves(&settle).await;
    scene
        .until("Java leads", async || scene.leader(&settle).await.as_ref() == Some(&java_id))
        .await;
    scene.dealt(&settle, &[&java_id]).await;
}

pub(crate) async fn shards_are_dealt_alike_whoever_leads(ground: Ground) {
    let scene = Scene::new(&ground, "dealt-alike").await;
    let (mut java, mut one) = (scene.java("java").await, scene.rust(1).await);
    let (mut two, mut three) = (scene.rust(2).await, scene.rust(30).await);
    let mut members: Vec<Vec<String>> = Vec::new();
    let jobs = [
        job("test_job", TICK, 10).strategy(&Strategy::AvgAllocation),
        // Its hash is even.
        job("order-sync", TICK, 10).strategy(&Strategy::Odevity),
        job("报表", TICK, 10).strategy(&Strategy::RoundRobin),
        job("settle", TICK, 3).strategy(&Strategy::AvgAllocation),
        // Its hash is odd.
        job("myJob", TICK, 10).strategy(&Strategy::Odevity),
        job("nightly", TICK, 9).strategy(&Strategy::RoundRobin),
    ];

    for (index, job) in jobs.iter().enumerate() {
        let is_led_by_java = index < 3;
        let leader =
            if is_led_by_java { java.joins(job, ms(1)).await } else { one.joins(job, ms(1)).await };
        let mut ids = vec![leader.clone()];
        for rust in [&mut two, &mut three] {
            ids.push(rust.joins(job, ms(1)).await);
        }
        let last = if is_led_by_java { &mut one } else { &mut java };
        ids.push(last.joins(job, ms(1)).await);
        assert_eq!(scene.leader(job).await, Some(leader), "{}", job.name);
        members.push(ids);
    }

    for (job, ids) in jobs.iter().zip(&members) {
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        scene.dealt(job, &ids).await;
    }
}

pub(crate) async fn single_sharding_balance_is_dealt_alike_whoever_leads(ground: Ground) {
    let scene = Scene::new(&ground, "balance").await;
    let (mut java, mut one, mut two) =
        (scene.java("java").await, scene.rust(1).await, scene.rust(2).await);
    let balanced = |name: &str| job(name, TICK, 5).strategy(&Strategy::SingleShardingBalance);
    let (javas, rusts) = (balanced("java-leads"), balanced("rust-leads"));
    let mut ids = vec![java.joins(&javas, ms(1)).await];
    for rust in [&mut one, &mut two] {
        ids.push(rust.joins(&javas, ms(1)).await);
    }
    for peer in [&mut one, &mut two, &mut java] {
        peer.joins(&rusts, ms(1)).await;
    }
    assert_eq!(scene.leader(&javas).await.as_ref(), Some(&ids[0]));
    assert_eq!(scene.leader(&rusts).await.as_ref(), Some(&ids[1]));
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();

    // The time decides, and Java says at what time it dealt.
    let last = || {
        let said = scene.record.all();
        let of = |said: &&Said| {
            let is_javas = said.words["said"] == "dealt" && said.words["job"] == "java-leads";
            is_javas && said.words["instances"] == 3
        };
        let last = said.iter().rev().find(of).map(|said| said.words["now"].as_i64().unwrap());
        last.map(|now| deal_at(&javas, &ids, now))
    };
    scene
        .until("Java deals as Rust would have", async || {
            last().is_some_and(|expected| !expected.is_empty())
                && Some(scene.owners(&javas).await) == last()
        })
        .await;

    // Rust does not, but there are only as many ways as members.
    let ways: Vec<_> = (0..3).map(|now| deal_at(&rusts, &ids, now)).collect();
    scene
        .until("Rust deals as Java would have", async || ways.contains(&scene.owners(&rusts).await))
        .await;
}

/// Every shard ran once in each fire, from the first to the last that is over.
pub(crate) fn missed_or_doubled(runs: &[Run], shards: u32) -> Vec<String> {
    let fire = |run: &Run| run.began / MOVE_EVERY;
    let fires: Vec<i64> = runs.iter().map(fire).collect();
    // The first one may be half of one: it joined in the middle of it. The last one may be under way.
    let (first, last) = (fires.iter().min().unwrap() + 1, fires.iter().max().unwrap() - 1);
    let mut wrong = Vec::new();
    for (fire_at, item) in (first..=last).flat_map(|at| (0..shards).map(move |item| (at, item))) {
        let count = runs.iter().filter(|run| fire(run) == fire_at && run.item == item).count();
        if count != 1 {
            wrong.push(format!("shard {item} ran {count} times at {}", fire_at * MOVE_EVERY));
        }
    }
    wrong
}

pub(crate) async fn a_job_moves_to_rust_and_back_and_no_fire_is_missed_or_runs_twice(
    ground: Ground,
) {
    let scene = Scene::new(&ground, "moves").await;
    let settle = job("settle", MOVE_CRON, 3).if_node_dies(Failover::TakeOver);
    let (admin, name) = (scene.admin(), settle.name.clone());
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let java_id = java.joins(&settle, ms(300)).await;
    let (javas_server, _) = java_id.split_once("@-@").unwrap();
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id]).await).await;

    // Both; then Rust alone, and Java goes when it has nothing any more.
    between_fires(&scene, &settle).await;
    let rust_id = rust.joins(&settle, ms(300)).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id, &rust_id]).await).await;
    between_fires(&scene, &settle).await;
    assert_eq!(admin.disable_server(javas_server, Some(&name)).await.unwrap(), ["settle"]);
    scene.runs_as(&settle, &scene.dealt(&settle, &[&rust_id]).await).await;
    java.leaves(&settle).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&rust_id]).await).await;

    // And back: a Rust instance ends what it runs before it leaves.
    between_fires(&scene, &settle).await;
    assert_eq!(admin.enable_server(javas_server, Some(&name)).await.unwrap(), ["settle"]);
    let java_id = java.joins(&settle, ms(300)).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id, &rust_id]).await).await;
    rust.leaves(&settle).await;
    scene.runs_as(&settle, &scene.dealt(&settle, &[&java_id]).await).await;

    let wrong = missed_or_doubled(&scene.record.runs("settle"), 3);
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Waits until a fire is over on everybody: when an operator would do something.
pub(crate) async fn between_fires(scene: &Scene, job: &Job) {
    let before = scene.record.runs(job.name.as_str()).len();
    let look = |runs: &[Run]| {
        let since = &runs[before..];
        let is_whole = since.len() >= job.shards.get() as usize;
        (is_whole && since.iter().all(Run::is_over)).then_some(())
    };
    scene.record.until("a fire is over", job.name.as_str(), look).await;
    scene.is_at_peace(job).await;
}
