//! Triggers and cancellations.

use std::{collections::BTreeMap, time::Duration};

use elasticjob::{
    admin::{SkipReason, TriggerCounts, TriggerShardState, TriggerState},
    coordination::{
        member::MemberEvent,
        tree::ShardNode,
        trigger::{ShardEntry, TriggerRequest},
    },
    job::{Fire, Outcome, RunId, ShardSelection},
    registry::Create,
    runtime::CancelReason,
    testing::conformance::{TestClient, TestServer},
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
        matches!(&news, MemberEvent::Triggered(triggered) if triggered.run == response.run),
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

pub(crate) async fn trigger_of_shards_is_stored_and_never_reaches_java(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "trigger-shards").await;
    let (admin, settle) = (fixture.admin(), name("settle"));
    let java = fixture.java(3, &job(3)).await;
    fixture.write(fixture.tree("settle").ledger(), "").await;
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
    assert_eq!(response.instances, [rust, other], "any Rust instance may own it by then");
    let stored = fixture.tree("settle").accepted_trigger(&response.run);
    let data = fixture.read(&stored).await.unwrap();
    assert!(data.contains("\"shards\":[[0,0]]"), "{data}");
    let refused = admin.trigger(&settle, request(&[1, 2])).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. }) && refused.to_string().contains(&java.id),
        "{refused}"
    );
    let unknown = admin.trigger(&settle, request(&[7])).await.unwrap_err();
    assert!(matches!(unknown, AdminError::Invalid { .. }), "{unknown}");
    assert_eq!(fixture.read(&fixture.tree("settle").trigger(&java.id)).await, None);

    let response = admin.trigger(&settle, request(&[2])).await.unwrap();
    assert_eq!(response.instances, [rust, other], "doorbells that still ring are answered later");
    assert!(response.already_pending.is_empty());
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

/// A job with these shards and Rust instances that do nothing, one for each of these addresses.
struct IdleInstances<'g> {
    fixture: Fixture<'g>,
    ids: Vec<String>,
    _connection: TestClient,
}

impl<'g> IdleInstances<'g> {
    async fn new(ground: &'g dyn TestServer, namespace: &'static str, shards: u32) -> Self {
        let fixture = Fixture::new(ground, namespace).await;
        let tree = fixture.tree("settle");
        fixture.write(&tree.config(), &job(shards).to_yaml()).await;
        fixture.write(&tree.accepted_triggers(), "").await;
        let connection = fixture.connect().await;
        let session = connection.registry.session().id();
        let ids: Vec<String> =
            (1..=2).map(|host| format!("10.0.0.{host}@-@10{host}-00000007")).collect();
        fixture.write(&tree.instances(), "").await;
        for id in &ids {
            let node = Create::ephemeral(&tree.instance(id), "", session);
            connection.registry.create(node).await.unwrap();
        }
        Self { fixture, ids, _connection: connection }
    }

    async fn trigger(&self, request: TriggerRequest) -> RunId {
        self.fixture.admin().trigger(&name("settle"), request).await.unwrap().run
    }

    async fn store(&self, run: &RunId, shard: u32, entry: &ShardEntry) {
        let path = self.fixture.tree("settle").trigger_entry(run, shard);
        self.fixture.write(&path, std::str::from_utf8(&entry.to_bytes()).unwrap()).await;
    }

    fn claimed(&self, attempt: u32) -> ShardEntry {
        ShardEntry::Claimed { owner: self.ids[0].parse().unwrap(), attempt }
    }

    fn ended(&self, outcome: Outcome) -> ShardEntry {
        ShardEntry::Ended { owner: self.ids[0].parse().unwrap(), attempt: 1, outcome }
    }
}

pub(crate) async fn stored_triggers_tell_what_became_of_each_shard(ground: &dyn TestServer) {
    let idle = IdleInstances::new(ground, "trigger-list", 4).await;
    let (admin, settle) = (idle.fixture.admin(), name("settle"));
    let run = idle
        .trigger(TriggerRequest {
            parameter: Some("password=hunter2".into()),
            by: Some("ann".into()),
            ..TriggerRequest::default()
        })
        .await;
    let untouched = idle.trigger(TriggerRequest::default()).await;
    idle.store(&run, 0, &idle.claimed(2)).await;
    idle.store(&run, 1, &idle.ended(Outcome::TimedOut)).await;
    idle.store(&run, 2, &ShardEntry::Skipped(SkipReason::Expired)).await;
    let tree = idle.fixture.tree("settle");
    idle.fixture.write(&tree.trigger_entry(&run, 3), "{").await;
    idle.fixture.write(&tree.trigger_entry(&run, 7), "not a shard of it").await;
    let broken = "6c3b5e0e-0a5d-4f57-9d0b-0f3a3a3a3a3a";
    idle.fixture.write(&tree.accepted_trigger(broken), "{\"v\":9}").await;
    idle.fixture.write(&tree.accepted_trigger("not-a-run"), "").await;

    let page = admin.triggers(&settle, 10).await.unwrap();
    let shown = admin.show_trigger(&settle, &run).await.unwrap();
    let unreadable = admin.show_trigger(&settle, &broken.parse().unwrap()).await.unwrap();

    assert_eq!(page.total, 4);
    let states: BTreeMap<&str, TriggerState> =
        page.triggers.iter().map(|trigger| (trigger.run.as_str(), trigger.state)).collect();
    assert_eq!(states[run.to_string().as_str()], TriggerState::Running);
    assert_eq!(states[untouched.to_string().as_str()], TriggerState::Pending);
    assert_eq!(
        (states[broken], states["not-a-run"]),
        (TriggerState::Unreadable, TriggerState::Unreadable)
    );
    let listed = page.triggers.iter().find(|it| it.run == run.to_string()).unwrap();
    assert_eq!((listed, listed.parameter_bytes), (&shown.summary, 16));
    assert_eq!(
        (listed.by.as_deref(), listed.parameter.as_deref()),
        (Some("ann"), Some("password=***"))
    );
    let counts = TriggerCounts {
        running: 1,
        timed_out: 1,
        skipped: 1,
        unreadable: 1,
        ..TriggerCounts::default()
    };
    assert_eq!((listed.shard_count, listed.counts), (4, Some(counts)));
    let shards: Vec<_> = shown.shards.iter().map(|it| (it.state, it.attempt, it.reason)).collect();
    assert_eq!(
        shards,
        [
            (TriggerShardState::Running, Some(2), None),
            (TriggerShardState::TimedOut, Some(1), None),
            (TriggerShardState::Skipped, None, Some(SkipReason::Expired)),
            (TriggerShardState::Unreadable, None, None),
        ]
    );
    assert_eq!(shown.shards[0].instance.as_ref(), Some(&idle.ids[0]));
    assert!(unreadable.summary.problem.unwrap().contains("format version 9"));
    let one = admin.triggers(&settle, 1).await.unwrap();
    assert_eq!((one.total, one.triggers.len()), (4, 1));
}

pub(crate) async fn unknown_and_scheduled_runs_have_no_trigger(ground: &dyn TestServer) {
    let idle = IdleInstances::new(ground, "trigger-unknown", 1).await;
    let (admin, settle) = (idle.fixture.admin(), name("settle"));
    let unknown = RunId::triggered(7);
    let scheduled = RunId::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"));

    let not_found = admin.show_trigger(&settle, &unknown).await.unwrap_err();
    assert!(matches!(not_found, AdminError::NotFound { .. }), "{not_found}");
    let not_found = admin.withdraw_trigger(&settle, &unknown).await.unwrap_err();
    assert!(matches!(not_found, AdminError::NotFound { .. }), "{not_found}");
    let not_found = admin.wait_for_trigger(&settle, &unknown, TIMEOUT).await.unwrap_err();
    assert!(matches!(not_found, AdminError::NotFound { .. }), "{not_found}");
    let invalid = admin.show_trigger(&settle, &scheduled).await.unwrap_err();
    assert!(matches!(invalid, AdminError::Invalid { .. }), "{invalid}");
    let no_job = admin.triggers(&name("nothing"), 10).await.unwrap_err();
    assert!(matches!(no_job, AdminError::NotFound { .. }), "{no_job}");
}

pub(crate) async fn withdrawn_trigger_skips_only_shards_that_have_not_started(
    ground: &dyn TestServer,
) {
    let idle = IdleInstances::new(ground, "trigger-withdraw", 3).await;
    let (admin, settle) = (idle.fixture.admin(), name("settle"));
    let run = idle.trigger(TriggerRequest::default()).await;
    idle.store(&run, 1, &idle.claimed(1)).await;

    let withdrawn = admin.withdraw_trigger(&settle, &run).await.unwrap();
    let shown = admin.show_trigger(&settle, &run).await.unwrap();
    let again = admin.withdraw_trigger(&settle, &run).await.unwrap_err();

    assert_eq!((withdrawn.withdrawn, withdrawn.started), (vec![0, 2], vec![1]));
    let states: Vec<_> = shown.shards.iter().map(|shard| (shard.state, shard.reason)).collect();
    let skipped = (TriggerShardState::Skipped, Some(SkipReason::Cancelled));
    assert_eq!(states, [skipped, (TriggerShardState::Running, None), skipped]);
    assert_eq!(shown.summary.state, TriggerState::Running);
    assert!(matches!(again, AdminError::Conflict { .. }), "{again}");
}

pub(crate) async fn unreadable_trigger_is_not_withdrawn(ground: &dyn TestServer) {
    let idle = IdleInstances::new(ground, "trigger-unreadable", 1).await;
    let (admin, settle) = (idle.fixture.admin(), name("settle"));
    let run = RunId::triggered(7);
    let path = idle.fixture.tree("settle").accepted_trigger(&run);
    idle.fixture.write(&path, "{\"v\":9}").await;

    let refused = admin.withdraw_trigger(&settle, &run).await.unwrap_err();

    assert!(matches!(refused, AdminError::Refused { .. }), "{refused}");
    assert_eq!(idle.fixture.read(&path).await.as_deref(), Some("{\"v\":9}"));
    assert_eq!(idle.fixture.registry().children(&path).await.unwrap(), Some(Vec::new()));
}

pub(crate) async fn wait_ends_with_the_last_shard_whatever_runs_next(ground: &dyn TestServer) {
    let idle = IdleInstances::new(ground, "trigger-wait", 2).await;
    let (admin, settle) = (idle.fixture.admin(), name("settle"));
    let run = idle.trigger(TriggerRequest::default()).await;
    let next = idle.trigger(TriggerRequest::default()).await;

    let timed_out = admin.wait_for_trigger(&settle, &run, Duration::from_millis(1)).await.unwrap();
    let work = async {
        idle.store(&run, 0, &idle.claimed(1)).await;
        idle.store(&run, 1, &idle.ended(Outcome::Succeeded)).await;
        idle.store(&run, 0, &idle.ended(Outcome::Succeeded)).await;
        idle.store(&next, 0, &idle.ended(Outcome::Failed)).await;
    };
    let (waited, ()) = tokio::join!(admin.wait_for_trigger(&settle, &run, TIMEOUT), work);
    let ended = waited.unwrap();

    assert!(!timed_out.has_ended());
    assert!(ended.has_ended());
    assert_eq!(ended.summary.counts.unwrap().succeeded, 2, "{ended:?}");
    let removed = admin.wait_for_trigger(&settle, &next, TIMEOUT);
    let path = idle.fixture.tree("settle").accepted_trigger(&next);
    let (removed, ()) = tokio::join!(removed, async {
        idle.fixture.delete(&idle.fixture.tree("settle").trigger_entry(&next, 0)).await;
        idle.fixture.delete(&path).await;
    });
    assert!(matches!(removed, Err(AdminError::NotFound { .. })), "{removed:?}");
}

pub(crate) async fn instance_of_elasticjob_2x_is_triggered_through_its_node(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "trigger-2x").await;
    let (admin, tree, settle) = (fixture.admin(), fixture.tree("settle"), name("settle"));
    let config = "{\"jobName\":\"settle\",\"jobClass\":\"com.acme.Settle\",\"jobType\":\"SIMPLE\",\"cron\":\"0 0 2 * * ?\",\"shardingTotalCount\":2}";
    fixture.write(&tree.config(), config).await;
    fixture.write(&tree.instances(), "").await;
    let connection = fixture.connect().await;
    let session = connection.registry.session().id();
    let (idle, triggered) = ("10.0.0.1@-@4711", "10.0.0.2@-@4711");
    for (id, data) in [(idle, ""), (triggered, "TRIGGER")] {
        let node = Create::ephemeral(&tree.instance(id), data, session);
        connection.registry.create(node).await.unwrap();
    }
    fixture.assign("settle", &[0], idle).await;
    fixture.assign("settle", &[1], triggered).await;

    let response = admin.trigger(&settle, TriggerRequest::default()).await.unwrap();

    assert_eq!(
        (response.instances, response.already_pending),
        (vec![idle.to_owned()], vec![triggered.to_owned()])
    );
    assert_eq!(response.delegated, [0, 1]);
    assert_eq!(fixture.read(&tree.instance(idle)).await.as_deref(), Some("TRIGGER"));
    assert_eq!(fixture.read(&tree.trigger(idle)).await, None, "2.x does not know doorbells");
    let listed = admin.job(&settle).await.unwrap().instances;
    assert!(listed.iter().all(|instance| instance.problem.is_none()), "{listed:?}");
}
