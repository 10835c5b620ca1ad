//! Triggers and cancellations.

use std::collections::BTreeMap;

use elasticjob::{
    coordination::{member::MemberEvent, tree::ShardNode, trigger::TriggerRequest},
    job::{Fire, ShardSelection},
    registry::Create,
    runtime::CancelReason,
    testing::conformance::TestServer,
};

use crate::fixture::{Fixture, TIMEOUT, at, job, name};
use elasticjob::admin::AdminError;

pub(crate) async fn trigger_reaches_all_instances_and_keeps_pending_triggers(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "trigger-all").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let mut node = fixture.rust(1, job(2)).await;
    let java = fixture.java(2, &job(2)).await;
    let gone = tree.trigger("10.0.0.9@-@1");
    fixture.write(&gone, "").await;
    fixture.write(&tree.trigger(&java.id), "").await;

    let response = admin.trigger(&settle, TriggerRequest::default()).await.unwrap();
    let news = node.wait_for_news(|news| matches!(news, MemberEvent::Triggered(_))).await;

    assert_eq!(
        (response.instances, response.already_pending),
        (vec![node.id()], vec![java.id.clone()])
    );
    assert!(
        matches!(&news, MemberEvent::Triggered(request) if request.run == Some(response.run.clone())),
        "{news:?}"
    );
    assert!(fixture.read(&tree.trigger(&java.id)).await.is_some());
    let with_parameter =
        TriggerRequest { parameter: Some("all".into()), ..TriggerRequest::default() };
    let refused = admin.trigger(&settle, with_parameter).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. }) && refused.to_string().contains(&java.id),
        "{refused}"
    );
    assert!(matches!(
        admin.trigger(&name("nothing"), TriggerRequest::default()).await.unwrap_err(),
        AdminError::NotFound { .. }
    ));
    assert_eq!(
        fixture.read(fixture.tree("nothing").root()).await,
        None,
        "a refused trigger creates no nodes"
    );
}

pub(crate) async fn trigger_of_shards_reaches_their_owners_but_never_java(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "trigger-shards").await;
    let (admin, settle) = (fixture.admin(), name("settle"));
    let java = fixture.java(3, &job(3)).await;
    let (rust, other) = ("10.0.0.1@-@101-00000007", "10.0.0.2@-@102-00000007");
    let session = java.connection.registry.session().id();
    for id in [rust, other] {
        let path = fixture.tree("settle").instance(id);
        java.connection.registry.create(Create::ephemeral(&path, "", session)).await.unwrap();
    }
    for (shard, owner) in [(0, rust), (1, java.id.as_str()), (2, other)] {
        fixture.assign("settle", &[shard], owner).await;
    }
    let request = |shards: &[u32]| TriggerRequest {
        shards: ShardSelection::only(shards.iter().copied()).unwrap(),
        parameter: Some("p".into()),
        ..TriggerRequest::default()
    };

    let response = admin.trigger(&settle, request(&[0])).await.unwrap();
    assert_eq!(response.instances, [rust]);
    let data = fixture.read(&fixture.tree("settle").trigger(rust)).await.unwrap();
    assert!(data.contains(&response.run.to_string()) && data.contains("\"shards\":[0]"), "{data}");
    let refused = admin.trigger(&settle, request(&[1, 2])).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. }) && refused.to_string().contains(&java.id),
        "{refused}"
    );
    let unknown = admin.trigger(&settle, request(&[7])).await.unwrap_err();
    assert!(matches!(unknown, AdminError::Invalid { .. }), "{unknown}");
    assert_eq!(fixture.read(&fixture.tree("settle").trigger(other)).await, None, "all or nothing");

    fixture.write(&fixture.tree("settle").necessary(), "").await;
    let response = admin.trigger(&settle, request(&[2])).await.unwrap();
    assert_eq!(
        (response.instances, response.already_pending),
        (vec![other.to_owned()], vec![rust.to_owned()]),
        "all Rust instances while shards are being reassigned"
    );
}

pub(crate) async fn cancel_stops_rust_shards_and_names_java_shards(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "cancel-shards").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let node = fixture.rust(1, job(4)).await;
    fixture.wait_assigned("settle").await;
    let disabled = tree.shard(3, ShardNode::Disabled);
    fixture.write(&disabled, "").await;
    fixture.write(&tree.shard(2, ShardNode::Running), "10.0.0.8@-@4711").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;
    assert_eq!(claimed.shards.len(), 2);

    let cancelled = admin.cancel(&settle, &ShardSelection::All).await.unwrap();

    assert_eq!(cancelled.requested, BTreeMap::from([(node.id(), vec![0, 1])]));
    assert_eq!(cancelled.not_cancellable, BTreeMap::from([(2, "10.0.0.8@-@4711".to_owned())]));
    assert_eq!(cancelled.idle, [3]);
    for shard in &claimed.shards {
        let reason =
            tokio::time::timeout(TIMEOUT, shard.status.cancel().cancelled()).await.unwrap();
        assert_eq!(reason, CancelReason::Requested);
    }
    node.finish(&claimed).await;
}
