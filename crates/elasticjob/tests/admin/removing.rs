//! Jobs are removed whole.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, Change, Edit},
    coordination::{member::News, tree::Part},
    job::Fire,
    registry::Create,
    testing::conformance::Ground,
};
use futures_util::future::try_join_all;

use crate::site::{Site, at, job, name};

pub(crate) async fn a_job_is_removed_whole_and_not_while_instances_live_unless_forced(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-job-is-removed").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let mut node = site.rust(1, job(3)).await;
    site.dealt("settle").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;

    let refused = admin.remove(&settle, false).await.unwrap_err();
    assert!(refused.exit_code() == 7 && refused.to_string().contains(&node.id()), "{refused}");
    let removed = admin.remove(&settle, true).await.unwrap();
    node.until(|news| *news == News::ShutDown).await;
    node.finish(&claimed).await;
    let id = node.id();
    node.member.leave().await;

    assert_eq!(removed.instances, [id]);
    assert_eq!(site.read(tree.root()).await, None, "what was running brings nothing back");
    assert_eq!(site.read(tree.ledger()).await, None, "the ledger goes along");
    assert_eq!(admin.remove(&settle, true).await.unwrap_err().exit_code(), 5);
    // What Java writes after the fact is cleared away as well.
    site.write(&tree.server("10.0.0.9"), "ENABLED").await;
    admin.remove(&settle, false).await.unwrap();
    assert_eq!(site.read(tree.root()).await, None);
}

pub(crate) async fn a_job_that_is_made_anew_while_it_is_removed_is_whole_or_not_there(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-job-that-is-made").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let line = site.line().await;
    let maker = Admin::on(Arc::clone(&line.registry));
    let mut made_anew = 0;
    for round in 0..30 {
        let old = admin.plan(Edit::of(job(2))).await.unwrap();
        admin.apply(&old).await.unwrap();
        site.write(&tree.shard(1, Part::Owner), "10.0.0.9@-@1").await;

        let (removed, made) = tokio::join!(admin.remove(&settle, false), async {
            // As soon as it is gone, or before.
            loop {
                let plan = maker.plan(Edit::of(job(5))).await.unwrap();
                if plan.change == Change::New || round % 3 == 0 {
                    return maker.apply(&plan).await;
                }
            }
        });

        removed.unwrap();
        match site.read(&tree.config()).await {
            Some(config) => {
                assert!(made.is_ok() && config.contains("shardingTotalCount: 5"), "{config}");
                assert_eq!(site.read(&tree.shard(1, Part::Owner)).await, None, "nothing old");
                admin.remove(&settle, false).await.unwrap();
                made_anew += 1;
            }
            None => assert_eq!(site.read(tree.root()).await, None, "nothing of it"),
        }
    }
    assert!(made_anew > 0, "it was never made anew");
}

pub(crate) async fn a_removed_job_that_is_too_large_for_one_transaction_is_gone_all_the_same(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-removed-job-that").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    site.write(&tree.config(), &job(1).to_yaml()).await;
    site.write(&tree.instances(), "").await;
    let parents = [tree.sharding(), tree.ledger().clone()];
    for parent in &parents {
        site.write(parent, "").await;
    }
    let nodes: Vec<_> =
        (0..1_500).flat_map(|shard| [tree.shard(shard, Part::Itself), tree.page(shard)]).collect();
    for batch in nodes.chunks(200) {
        try_join_all(batch.iter().map(|path| site.registry().create(Create::persistent(path, ""))))
            .await
            .unwrap();
    }

    let removed = admin.remove(&settle, false).await.unwrap();

    assert_eq!(removed.nodes, 3_000 + 5);
    assert_eq!((site.read(tree.root()).await, site.read(tree.ledger()).await), (None, None));
}
