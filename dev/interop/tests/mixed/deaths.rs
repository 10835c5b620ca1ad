//! Who dies, is frozen or is cut off while something runs, and what becomes of that.
//!
//! Jobs here run when somebody asks for it, so that nothing but the takeover runs afterwards.

use elasticjob::{
    coordination::trigger::Ask,
    job::{Failover, Job},
};
use futures_util::future::join;

use crate::{
    record::Run,
    scene::{Ground, Scene, idle, job, ms},
};

/// Long enough to be killed in the middle of it, short enough to wait for.
const LASTS: u64 = 4_000;

fn taken_over(shards: u32) -> Job {
    idle("settle", shards).if_node_dies(Failover::TakeOver)
}

/// Asks for a run and waits until every shard is under way.
async fn under_way(scene: &Scene, job: &Job) -> Vec<Run> {
    let before = scene.record.runs(job.name.as_str()).len();
    scene.admin().trigger(&job.name, Ask::default()).await.unwrap();
    let shards = job.shards.get() as usize;
    let look = |runs: &[Run]| (runs.len() >= before + shards).then(|| runs[before..].to_vec());
    let runs = scene.record.until("every shard runs", job.name.as_str(), look).await;
    assert_eq!(runs.len(), shards, "{runs:?}");
    runs
}

/// Waits until every shard has ended well on somebody, and nothing is left to do. How often each one did since.
async fn completed(scene: &Scene, job: &Job, before: usize) -> Vec<usize> {
    let ends = |runs: &[Run]| -> Vec<usize> {
        let since = &runs[before..];
        let count = |item| since.iter().filter(|run| run.item == item && run.is_done()).count();
        (0..job.shards.get()).map(count).collect()
    };
    let look = |runs: &[Run]| ends(runs).iter().all(|count| *count > 0).then_some(());
    scene.record.until("every shard ends well", job.name.as_str(), look).await;
    scene.is_at_peace(job).await;
    ends(&scene.record.runs(job.name.as_str()))
}

pub(crate) async fn what_a_killed_jvm_ran_is_completed_once_by_rust(ground: Ground) {
    let scene = Scene::new(&ground, "killed-jvm").await;
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let java_id = scene.java_leads(&mut java, &settle, ms(LASTS)).await;
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let runs = under_way(&scene, &settle).await;
    let lost = runs.iter().find(|run| run.instance == java_id).expect("Java has a shard").item;

    java.kill().await;

    assert_eq!(completed(&scene, &settle, 0).await, [1, 1]);
    let runs = scene.record.runs("settle");
    let again = runs.iter().find(|run| run.item == lost && run.is_done()).unwrap();
    assert_eq!((&again.instance, again.reason.as_deref()), (&rust_id, Some("Failover")));
    scene.dealt(&settle, &[&rust_id]).await;
}

pub(crate) async fn what_a_killed_rust_process_ran_is_completed_once_by_java(ground: Ground) {
    let scene = Scene::new(&ground, "killed-rust").await;
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let java_id = java.joins(&settle, ms(LASTS)).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    let runs = under_way(&scene, &settle).await;
    let lost = runs.iter().find(|run| run.instance == rust_id).expect("Rust has a shard").item;

    rust.kill().await;

    assert_eq!(completed(&scene, &settle, 0).await, [1, 1]);
    let runs = scene.record.runs("settle");
    let again = runs.iter().find(|run| run.item == lost && run.is_done()).unwrap();
    assert_eq!(again.instance, java_id);
    assert_eq!(scene.leader(&settle).await.as_ref(), Some(&java_id));
}

pub(crate) async fn what_a_frozen_jvm_ran_is_taken_over_and_it_comes_back(ground: Ground) {
    let scene = Scene::new(&ground, "frozen-jvm").await;
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let java_id = scene.java_leads(&mut java, &settle, ms(LASTS)).await;
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let runs = under_way(&scene, &settle).await;
    let lost = runs.iter().find(|run| run.instance == java_id).expect("Java has a shard").item;

    java.freeze();
    let on_rust = |run: &Run| run.item == lost && run.instance == rust_id && run.is_done();
    let look = |runs: &[Run]| runs.iter().any(on_rust).then_some(());
    scene.record.until("Rust has taken over", "settle", look).await;
    java.thaw();

    // What Java does with what it had in hand is its own affair; ours ran once.
    let back = async || scene.children(&scene.tree(&settle).instances()).await.contains(&java_id);
    scene.until("Java is back", back).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    scene.is_at_peace(&settle).await;
    let on_rust = scene.record.runs("settle").into_iter().filter(on_rust);
    assert_eq!(on_rust.count(), 1);
}

pub(crate) async fn a_frozen_rust_process_does_not_finish_what_java_has_taken_over(ground: Ground) {
    let scene = Scene::new(&ground, "frozen-rust").await;
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let java_id = java.joins(&settle, ms(LASTS)).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    let runs = under_way(&scene, &settle).await;
    let lost = runs.iter().find(|run| run.instance == rust_id).expect("Rust has a shard").item;

    rust.freeze();
    let on_java = |run: &Run| run.item == lost && run.instance == java_id && run.is_done();
    let look = |runs: &[Run]| runs.iter().any(on_java).then_some(());
    scene.record.until("Java has taken over", "settle", look).await;
    rust.thaw();

    let look =
        |runs: &[Run]| runs.iter().find(|run| run.instance == rust_id && run.is_over()).cloned();
    let stopped = scene.record.until("the frozen one has ended", "settle", look).await;
    assert_eq!(stopped.ended.map(|(how, _)| how).as_deref(), Some("interrupted"));
    assert_eq!(completed(&scene, &settle, 0).await, [1, 1]);
    scene
        .until("Rust is back under another id", async || {
            let ids = scene.children(&scene.tree(&settle).instances()).await;
            ids.iter().any(|id| id.starts_with("10.0.0.1@-@") && *id != rust_id)
        })
        .await;
}

pub(crate) async fn a_job_whose_whole_cluster_was_killed_goes_on_once_rust_joins(ground: Ground) {
    let scene = Scene::new(&ground, "whole-cluster").await;
    let settle = job("settle", "0/5 * * * * ?", 2).if_node_dies(Failover::TakeOver);
    let (mut one, mut two) = join(scene.java("java-1"), scene.java("java-2")).await;
    scene.join_in_turn(&settle, [&mut one, &mut two], ms(3_000)).await;
    let look = |runs: &[Run]| {
        let open: Vec<&Run> = runs.iter().filter(|run| !run.is_over()).collect();
        (open.len() == 2).then_some(())
    };
    scene.record.until("both shards run", "settle", look).await;
    join(one.kill(), two.kill()).await;

    // Two Java instances that come back at once see each other, and wait for ever for those who are dead.
    let (mut one, mut two) = join(scene.java("java-3"), scene.java("java-4")).await;
    let (first, second) = join(one.joins(&settle, ms(100)), two.joins(&settle, ms(100))).await;
    let mut rust = scene.rust(1).await;
    let before = scene.record.runs("settle").len();
    let rust_id = rust.joins(&settle, ms(100)).await;

    let look = |runs: &[Run]| {
        let is_run = |item| runs[before..].iter().any(|run| run.item == item && run.is_done());
        (0..2).all(is_run).then_some(())
    };
    scene.record.until("every shard runs again", "settle", look).await;
    // A Java instance leads, and the list it has assigned the shards by may be older than the last instance that joined.
    let owners = scene.assigned(&settle, &[&first, &second, &rust_id]).await;
    scene.runs_as(&settle, &owners).await;
    scene.is_at_peace(&settle).await;
}

pub(crate) async fn a_cut_shorter_than_the_session_costs_rust_nothing(ground: Ground) {
    let scene = Scene::new(&ground, "cut-rust").await.session(ms(10_000));
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let java_id = java.joins(&settle, ms(LASTS)).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    under_way(&scene, &settle).await;

    let connections = rust.line.connections();
    rust.line.cut();
    tokio::time::sleep(ms(1_500)).await;
    rust.line.heal();
    scene.until("Rust is connected", async || rust.line.connections() > connections).await;

    assert_eq!(completed(&scene, &settle, 0).await, [1, 1]);
    assert_eq!(scene.record.runs("settle").len(), 2, "nobody took anything over");
    assert_eq!(scene.leader(&settle).await.as_ref(), Some(&rust_id), "the session lives");
}

pub(crate) async fn rust_does_not_take_a_java_reconnect_for_a_death(ground: Ground) {
    let scene = Scene::new(&ground, "cut-java").await.session(ms(10_000));
    let settle = taken_over(2);
    let (mut java, mut rust) = (scene.java("java").await, scene.rust(1).await);
    let rust_id = rust.joins(&settle, ms(LASTS)).await;
    let java_id = java.joins(&settle, ms(LASTS)).await;
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    under_way(&scene, &settle).await;
    let instance = scene.tree(&settle).instance(&java_id);
    let born = scene.registry.exists(&instance).await.unwrap().unwrap().created;

    java.line.cut();
    tokio::time::sleep(ms(1_500)).await;
    java.line.heal();
    scene
        .until("Java has made its node anew", async || {
            let stat = scene.registry.exists(&instance).await.unwrap();
            stat.is_some_and(|stat| stat.created != born)
        })
        .await;

    assert_eq!(completed(&scene, &settle, 0).await, [1, 1]);
    assert_eq!(scene.record.runs("settle").len(), 2, "nobody took anything over");
}

/// Java takes a reconnect of Java for a death, and flags what still runs. Rust is idle and would run it.
pub(crate) async fn what_java_takes_for_a_death_in_a_cut_is_not_run_beside_the_living(
    ground: Ground,
) {
    let scene = Scene::new(&ground, "cut-among-java").await.session(ms(10_000));
    let settle = taken_over(3);
    let (mut cut, mut peer) = join(scene.java("java-cut"), scene.java("java-peer")).await;
    let mut rust = scene.rust(1).await;
    let rust_id = rust.joins(&settle, ms(500)).await;
    let cut_id = cut.joins(&settle, ms(LASTS)).await;
    let peer_id = peer.joins(&settle, ms(LASTS)).await;
    scene.dealt(&settle, &[&cut_id, &peer_id, &rust_id]).await;
    under_way(&scene, &settle).await;
    let instance = scene.tree(&settle).instance(&cut_id);
    let born = scene.registry.exists(&instance).await.unwrap().unwrap().created;

    cut.line.cut();
    tokio::time::sleep(ms(800)).await;
    cut.line.heal();
    scene
        .until("Java has made its node anew", async || {
            let stat = scene.registry.exists(&instance).await.unwrap();
            stat.is_some_and(|stat| stat.created != born)
        })
        .await;

    assert_eq!(completed(&scene, &settle, 0).await, [1, 1, 1]);
    assert_eq!(scene.record.runs("settle").len(), 3, "nothing ran beside the living");
    let stat = scene.registry.exists(&instance).await.unwrap();
    assert!(stat.is_some(), "nobody took its node away");
}
