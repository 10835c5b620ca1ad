//! Who is there, who leads, and who gets what.

use elasticjob::job::Strategy;

use crate::scene::{Ground, Scene, job, ms};

const TICK: &str = "0/2 * * * * ?";

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
    scene.dealt(&settle, &[&java_id, &rust_id]).await;
    assert_eq!(scene.leader(&settle).await.as_ref(), Some(&rust_id));

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
