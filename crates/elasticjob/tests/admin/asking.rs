//! Instances are asked to run, or to end.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::{
    coordination::{member::News, tree::Part, trigger::Ask},
    job::Fire,
    registry::Create,
    runtime::CancelReason,
    testing::conformance::Ground,
};

use crate::site::{PATIENCE, Site, at, job, name};

pub(crate) async fn a_trigger_goes_to_everybody_and_wipes_nothing(ground: &dyn Ground) {
    let site = Site::new(ground, "a-trigger-goes-to").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let mut node = site.rust(1, job(2)).await;
    let java = site.java(2, &job(2)).await;
    let gone = tree.trigger("10.0.0.9@-@1");
    site.write(&gone, "").await;
    site.write(&tree.trigger(&java.id), "").await;

    let asked = admin.trigger(&settle, Ask::default()).await.unwrap();
    let news = node.until(|news| matches!(news, News::Triggered(_))).await;

    assert_eq!((asked.instances, asked.waiting), (vec![node.id()], vec![java.id.clone()]));
    assert!(
        matches!(&news, News::Triggered(ask) if ask.run == Some(asked.run.clone())),
        "{news:?}"
    );
    assert!(site.read(&tree.trigger(&java.id)).await.is_some());
    let with_words = Ask { parameter: Some("all".into()), ..Ask::default() };
    let refused = admin.trigger(&settle, with_words).await.unwrap_err();
    assert!(refused.exit_code() == 7 && refused.to_string().contains(&java.id), "{refused}");
    assert_eq!(admin.trigger(&name("nothing"), Ask::default()).await.unwrap_err().exit_code(), 5);
    assert_eq!(site.read(site.tree("nothing").root()).await, None, "nothing comes of asking");
}

pub(crate) async fn chosen_shards_are_for_their_owners_and_never_for_java(ground: &dyn Ground) {
    let site = Site::new(ground, "chosen-shards-are-for").await;
    let (admin, settle) = (site.admin(), name("settle"));
    let java = site.java(3, &job(3)).await;
    let (rust, other) = ("10.0.0.1@-@101-00000007", "10.0.0.2@-@102-00000007");
    let session = java.line.registry.session().id();
    for id in [rust, other] {
        let path = site.tree("settle").instance(id);
        java.line.registry.create(Create::ephemeral(&path, "", session)).await.unwrap();
    }
    for (shard, owner) in [(0, rust), (1, java.id.as_str()), (2, other)] {
        site.deal("settle", &[shard], owner).await;
    }
    let ask = |shards: &[u32]| Ask {
        shards: shards.iter().copied().collect(),
        parameter: Some("p".into()),
        ..Ask::default()
    };

    let asked = admin.trigger(&settle, ask(&[0])).await.unwrap();
    assert_eq!(asked.instances, [rust]);
    let said = site.read(&site.tree("settle").trigger(rust)).await.unwrap();
    assert!(said.contains(&asked.run.to_string()) && said.contains("\"shards\":[0]"), "{said}");
    let refused = admin.trigger(&settle, ask(&[1, 2])).await.unwrap_err();
    assert!(refused.exit_code() == 7 && refused.to_string().contains(&java.id), "{refused}");
    let unknown = admin.trigger(&settle, ask(&[7])).await.unwrap_err();
    assert_eq!(unknown.exit_code(), 2, "{unknown}");
    assert_eq!(site.read(&site.tree("settle").trigger(other)).await, None, "all or nothing");

    site.write(&site.tree("settle").necessary(), "").await;
    let asked = admin.trigger(&settle, ask(&[2])).await.unwrap();
    assert_eq!(
        (asked.instances, asked.waiting),
        (vec![other.to_owned()], vec![rust.to_owned()]),
        "while shards move, all Rust instances"
    );
}

pub(crate) async fn what_rust_runs_can_be_cancelled_and_what_java_runs_is_named(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "what-rust-runs-can").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let node = site.rust(1, job(4)).await;
    site.dealt("settle").await;
    let disabled = tree.shard(3, Part::Disabled);
    site.write(&disabled, "").await;
    site.write(&tree.shard(2, Part::Running), "10.0.0.8@-@4711").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;
    assert_eq!(claimed.shards.len(), 2);

    let cancelled = admin.cancel(&settle, &BTreeSet::new()).await.unwrap();

    assert_eq!(cancelled.asked, BTreeMap::from([(node.id(), vec![0, 1])]));
    assert_eq!(cancelled.not_cancellable, BTreeMap::from([(2, "10.0.0.8@-@4711".to_owned())]));
    assert_eq!(cancelled.idle, [3]);
    for shard in &claimed.shards {
        let told = tokio::time::timeout(PATIENCE, shard.hold.cancel().cancelled()).await.unwrap();
        assert_eq!(told, CancelReason::Requested);
    }
    node.finish(&claimed).await;
}
