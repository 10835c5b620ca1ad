//! Explains past fires from history.

use std::sync::Arc;

use elasticjob::{
    admin::{Admin, Topic},
    coordination::tree::JobTree,
    history::{Event, FiresMissed, MissedReason, Sink},
    job::{Job, Outcome, RunReason},
    registry::{Create, Registry, ensure_path, memory::MemoryServer},
    runtime::SystemClock,
};

use crate::{
    database::TestDatabase,
    events::{SampleAttempt, after, noon},
};

pub(crate) async fn past_fire_is_explained_from_history(database: &TestDatabase) {
    let store = database.open().await;
    let registry =
        MemoryServer::new(Arc::new(SystemClock)).join("shop".parse().unwrap()).await.unwrap();
    let job = Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap().shards(2);
    let tree = JobTree::new(registry.namespace(), &job.name).unwrap();
    ensure_path(&registry, tree.root()).await.unwrap();
    registry.create(Create::persistent(&tree.config(), job.to_yaml())).await.unwrap();
    let admin = Admin::new(Arc::new(registry));
    let lost = SampleAttempt::of("settle", 0);
    let again = lost.on("10.0.0.8@-@12-00000002").again(RunReason::Failover, 200).late(9_000);
    let failed = lost.item(1);
    let an_hour = 3_600_000;
    let missed = Event::Missed(FiresMissed {
        job: job.name.clone(),
        first: after(an_hour),
        last: after(2 * an_hour),
        count: 2,
        reason: MissedReason::NoInstance,
        at: after(3 * an_hour),
    });
    let coalesced = Event::Missed(FiresMissed {
        job: job.name.clone(),
        first: after(4 * an_hour),
        last: after(5 * an_hour),
        count: 2,
        reason: MissedReason::Coalesced,
        at: after(6 * an_hour),
    });
    let alone = SampleAttempt::of("settle", 6 * an_hour).expecting(2, 0);
    store
        .store(&[
            coalesced,
            alone.ended(5, (Outcome::Succeeded, None)),
            lost.started(),
            again.started(),
            again.ended(40, (Outcome::Succeeded, None)),
            failed.started(),
            failed.ended(5, (Outcome::Failed, Some("no such order\nin line 7"))),
            missed,
        ])
        .await
        .unwrap();
    let at = async |millis| {
        let explained =
            admin.explain_with_history(&store, &job.name, None, Some(after(millis))).await;
        let findings = explained.unwrap().findings.into_iter();
        let attempt = findings.filter(|finding| finding.topic == Topic::History);
        attempt.map(|finding| (finding.shard, finding.message)).collect::<Vec<_>>()
    };

    let ran = at(60_000).await;
    assert_eq!(ran.len(), 3, "{ran:?}");
    let noon = noon();
    assert!(ran[0].1.contains(&format!("attempt 1 (schedule) of the fire of {noon}")), "{ran:?}");
    assert!(
        ran[1].1.contains("attempt 2 (failover)") && ran[1].1.contains("9000 ms late"),
        "{ran:?}"
    );
    assert!(ran[1].1.contains("on 10.0.0.8@-@12-00000002 and ended after 40 ms: done"), "{ran:?}");
    assert!(ran[2].1.ends_with("and ended after 5 ms: failed: no such order"), "{ran:?}");
    assert_eq!(
        ran.iter().map(|(shard, _)| *shard).collect::<Vec<_>>(),
        [Some(0), Some(0), Some(1)]
    );
    let missed = at(2 * an_hour).await;
    assert!(
        missed[0].1.contains("2 missed fires") && missed[0].1.contains("no instance was running"),
        "{missed:?}"
    );
    let coalesced = at(5 * an_hour).await;
    assert!(
        coalesced[0].1.contains("2 coalesced fires") && coalesced[0].1.contains("a later fire"),
        "{coalesced:?}"
    );
    let incomplete = at(6 * an_hour).await;
    assert!(incomplete[1].1.ends_with("is incomplete: 1 of 2 shards ran"), "{incomplete:?}");
    assert!(at(-10 * an_hour).await[0].1.contains("has nothing"));
}
