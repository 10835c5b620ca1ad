//! Removal of jobs.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, ConfigChange, Edit},
    coordination::{member::MemberEvent, tree::ShardNode},
    job::Fire,
    registry::Create,
    testing::conformance::TestServer,
};
use futures_util::future::try_join_all;

use crate::fixture::{Fixture, at, job, name};
use elasticjob::admin::AdminError;

pub(crate) async fn job_with_instances_is_removed_only_by_force_and_completely(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "forced-removal").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let mut node = fixture.rust(1, job(3)).await;
    fixture.wait_assigned("settle").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;

    let refused = admin.remove(&settle, false).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. }) && refused.to_string().contains(&node.id()),
        "{refused}"
    );
    let removed = admin.remove(&settle, true).await.unwrap();
    node.wait_for_news(|news| *news == MemberEvent::ShutDown).await;
    node.finish(&claimed).await;
    let id = node.id();
    node.member.leave().await;

    assert_eq!(removed.instances, [id]);
    assert_eq!(
        fixture.read(tree.root()).await,
        None,
        "an instance that was running re-creates nothing"
    );
    assert_eq!(fixture.read(tree.ledger()).await, None, "the ledger is removed, too");
    assert!(matches!(admin.remove(&settle, true).await.unwrap_err(), AdminError::NotFound { .. }));
    // Nodes that Java writes after the removal can be removed as well.
    fixture.write(&tree.server("10.0.0.9"), "ENABLED").await;
    admin.remove(&settle, false).await.unwrap();
    assert_eq!(fixture.read(tree.root()).await, None);
}

pub(crate) async fn job_recreated_during_removal_is_complete_or_absent(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "recreated-job").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let connection = fixture.connect().await;
    let other_admin = Admin::new(Arc::clone(&connection.registry));
    let mut recreated = 0;
    for iteration in 0..30 {
        let old = admin.plan(Edit::new(job(2))).await.unwrap();
        admin.apply(&old).await.unwrap();
        fixture.write(&tree.shard(1, ShardNode::Owner), "10.0.0.9@-@1").await;

        let (removed, created) = tokio::join!(admin.remove(&settle, false), async {
            // Re-creates the job as soon as it is gone; every third time at once.
            loop {
                let plan = other_admin.plan(Edit::new(job(5))).await.unwrap();
                if plan.change == ConfigChange::New || iteration % 3 == 0 {
                    return other_admin.apply(&plan).await;
                }
            }
        });

        removed.unwrap();
        match fixture.read(&tree.config()).await {
            Some(config) => {
                assert!(created.is_ok() && config.contains("shardingTotalCount: 5"), "{config}");
                assert_eq!(
                    fixture.read(&tree.shard(1, ShardNode::Owner)).await,
                    None,
                    "no node of the old job"
                );
                admin.remove(&settle, false).await.unwrap();
                recreated += 1;
            }
            None => assert_eq!(fixture.read(tree.root()).await, None, "no node is left"),
        }
    }
    assert!(recreated > 0, "the job was never re-created");
}

pub(crate) async fn job_too_large_for_one_transaction_is_removed_completely(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "large-job").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    fixture.write(&tree.config(), &job(1).to_yaml()).await;
    fixture.write(&tree.instances(), "").await;
    let parents = [tree.sharding(), tree.ledger().clone()];
    for parent in &parents {
        fixture.write(parent, "").await;
    }
    let nodes: Vec<_> = (0..1_500)
        .flat_map(|shard| [tree.shard(shard, ShardNode::Root), tree.ledger_page(shard)])
        .collect();
    for batch in nodes.chunks(200) {
        try_join_all(
            batch.iter().map(|path| fixture.registry().create(Create::persistent(path, ""))),
        )
        .await
        .unwrap();
    }

    let removed = admin.remove(&settle, false).await.unwrap();

    assert_eq!(removed.nodes, 3_000 + 5);
    assert_eq!((fixture.read(tree.root()).await, fixture.read(tree.ledger()).await), (None, None));
}
