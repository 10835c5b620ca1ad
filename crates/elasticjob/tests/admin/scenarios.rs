//! What console and command line may ask and do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use elasticjob::{
    admin::{
        Admin, Change, Edit, Explanation, JobStatus, JobSummary, Language, RunState, RunsWith,
        ShardStatus, Stored, Topic, Weight,
    },
    coordination::{
        ledger::{Page, State},
        member::News,
        tree::Part,
        trigger::Ask,
    },
    job::{Fire, Handler, Job, RunId, Spelling, ThreadPool},
    registry::{Create, Digest},
    runtime::CancelReason,
    testing::conformance::Ground,
};
use futures_util::future::try_join_all;

use crate::site::{PATIENCE, Site, at, job, name};

async fn status(site: &Site<'_>, job: &str) -> JobStatus {
    let listed = site.admin().jobs().await.unwrap();
    let listed = listed.into_iter().find(|summary| summary.name == job).unwrap();
    let details = site.admin().job(&name(job)).await.unwrap();
    assert_eq!(listed.status, details.summary.status, "the list and the page agree");
    listed.status
}

async fn statuses(site: &Site<'_>, job: &str) -> Vec<ShardStatus> {
    let shards = site.admin().shards(&name(job)).await.unwrap();
    shards.into_iter().map(|shard| shard.status).collect()
}

fn said(explanation: &Explanation) -> String {
    let lines = explanation
        .findings
        .iter()
        .map(|finding| format!("{:?} {:?}: {}", finding.shard, finding.topic, finding.says));
    lines.collect::<Vec<_>>().join("\n")
}

/// One idle one-off instance with two shards, as the ancestor's console was seen with it.
pub(crate) async fn the_console_sequence_of_a_java_job_reads_as_the_ancestors_does(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "the-console-sequence").await;
    let (admin, settle) = (site.admin(), name("settle"));
    let tree = site.tree("settle");
    let one_off = Job::named("settle").unwrap().shards(2).description("nightly");
    let java = site.java(1, &one_off).await;

    assert_eq!(status(&site, "settle").await, JobStatus::ShardingFlag, "before any run");
    let asked = admin.trigger(&settle, Ask::default()).await.unwrap();
    assert_eq!(asked.instances, [&*java.id]);
    assert_eq!(site.read(&tree.trigger(&java.id)).await.as_deref(), Some(""), "as Java writes it");
    site.delete(&tree.trigger(&java.id)).await;
    site.deal("settle", &[0, 1], &java.id).await;
    assert_eq!(status(&site, "settle").await, JobStatus::Ok);
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Pending; 2]);

    assert!(admin.disable_shard(&settle, 1).await.unwrap());
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Pending, ShardStatus::Disabled]);
    admin.disable(&settle).await.unwrap();
    assert_eq!(status(&site, "settle").await, JobStatus::Disabled);
    admin.enable(&settle).await.unwrap();
    assert_eq!(status(&site, "settle").await, JobStatus::Ok);

    let ended = admin.shutdown(&settle).await.unwrap();
    assert_eq!(ended, [&*java.id]);
    java.line.registry.close().await;
    assert_eq!(status(&site, "settle").await, JobStatus::Crashed);
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::ShardingFlag, ShardStatus::Disabled]);
    assert_eq!(admin.remove_server("10.0.0.1", Some(&settle)).await.unwrap(), ["settle"]);
    assert!(admin.servers().await.unwrap().is_empty());

    admin.remove(&settle, false).await.unwrap();
    assert!(admin.jobs().await.unwrap().is_empty());
    assert_eq!(admin.job(&settle).await.unwrap_err().exit_code(), 5);
}

pub(crate) async fn a_configuration_nobody_can_read_is_shown_and_hides_nobody(ground: &dyn Ground) {
    let site = Site::new(ground, "a-configuration-nobody").await;
    let node = site
        .rust(
            1,
            job(2)
                .description("for people")
                .handler("shop::settle")
                .prop("email.password", "hunter2")
                .unwrap(),
        )
        .await;
    site.dealt("settle").await;
    site.write(&site.tree("broken").config(), "cron: [").await;
    site.write(&site.tree("leftover").server("10.0.0.9"), "ENABLED").await;
    site.write(&site.tree("settle").root().parent().unwrap().join("other/namespace").unwrap(), "")
        .await;

    let jobs = site.admin_at("2026-11-15T06:00:00Z").jobs().await.unwrap();

    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["broken", "leftover", "settle"]);
    assert!(jobs[0].problem.as_ref().unwrap().contains("job broken"), "{:?}", jobs[0]);
    assert!(jobs[1].problem.as_ref().unwrap().contains("no configuration"), "{:?}", jobs[1]);
    let expected = JobSummary {
        name: "settle".into(),
        status: JobStatus::Ok,
        description: "for people".into(),
        cron: Some("0 0 2 1 1 ? 2150".into()),
        shards: Some(2),
        instances: 1,
        runs_with: RunsWith::Rust { handler: Some("shop::settle".into()) },
        next_fire: Some(at("2150-01-01T02:00:00Z")),
        problem: None,
    };
    assert_eq!(jobs[2], expected);
    let broken = site.admin().job(&name("broken")).await.unwrap();
    assert_eq!((broken.configuration.raw.as_str(), broken.configuration.job), ("cron: [", None));
    let details = site.admin().job(&name("settle")).await.unwrap();
    assert_eq!(details.leader, Some(node.id()));
    let instance = &details.instances[0];
    assert_eq!(
        (&instance.id, instance.language, instance.labels["zone"].as_str()),
        (&node.id(), Language::Rust, "a")
    );
    assert!(instance.since.is_some() && details.resharding_since.is_none());
    let json = serde_json::to_value(&details).unwrap();
    assert_eq!(json["config"]["properties"]["shardingTotalCount"], 2);
    assert_eq!(json["config"]["properties"]["props"]["email.password"], "***");
    assert_eq!(
        (&json["jobName"], &json["nextFireTime"]),
        (&"settle".into(), &"2150-01-01T02:00:00Z".into())
    );
}

pub(crate) async fn a_job_that_is_not_ours_to_look_at_hides_nobody(ground: &dyn Ground) {
    let site = Site::new(ground, "a-job-that-is-not").await;
    let jane = Digest { user: "jane".into(), password: "secret".into() };
    let hers = ground.join("a-job-that-is-not", Some(jane)).await;
    let (admin, janes) = (site.admin(), Admin::on(Arc::clone(&hers.registry)));
    let plan = janes.plan(Edit::of(Job::named("hers").unwrap())).await.unwrap();
    janes.apply(&plan).await.unwrap();
    let _java = site.java(1, &job(1)).await;

    let jobs = admin.jobs().await.unwrap();

    let problems: Vec<bool> = jobs.iter().map(|job| job.problem.is_some()).collect();
    assert_eq!(problems, [true, false], "{jobs:?}");
    assert!(jobs[0].problem.as_ref().unwrap().contains("not authorised"), "{:?}", jobs[0]);
    assert_eq!(admin.server("10.0.0.1").await.unwrap().summary.jobs, ["settle"]);
    assert_eq!(admin.job(&name("hers")).await.unwrap_err().exit_code(), 4);
    assert_eq!(admin.remove(&name("hers"), true).await.unwrap_err().exit_code(), 4);
    assert_eq!(janes.job(&name("hers")).await.unwrap().summary.problem, None);
}

pub(crate) async fn a_plan_says_what_would_change_and_an_edit_that_lost_the_race_is_a_conflict_that_names_what_changed(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-plan-says-what").await;
    let admin = site.admin();

    let plan = admin.plan(Edit::of(job(2)).handler(Handler::Script)).await.unwrap();
    assert_eq!(plan.change, Change::New);
    assert_eq!(site.read(&site.tree("settle").config()).await, None, "a plan writes nothing");
    assert!(admin.apply(&plan).await.unwrap().is_changed);
    assert_eq!(site.read(site.tree("settle").root()).await.as_deref(), Some("SCRIPT"));
    let same = admin.plan(Edit::of(job(2)).handler(Handler::Script)).await.unwrap();
    assert_eq!(same.change, Change::Same);
    let applied = admin.apply(&same).await.unwrap();
    assert!(!applied.is_changed);

    let seen = admin.job(&name("settle")).await.unwrap().configuration.version;
    assert_eq!(applied.version, seen);
    let mine = admin.plan(Edit::of(job(3)).seen(seen)).await.unwrap();
    let theirs = admin.plan(Edit::of(job(2).parameter("all"))).await.unwrap();
    let Change::Changed(differences) = &mine.change else { panic!("{mine:?}") };
    assert_eq!(differences[0].to_string(), r#"shardingTotalCount: here "3", stored "2""#);
    admin.apply(&theirs).await.unwrap();
    let lost = admin.apply(&mine).await.unwrap_err();

    assert_eq!(lost.exit_code(), 6);
    assert!(lost.to_string().contains(r#"jobParameter from nothing to "all""#), "{lost}");
    let late = admin.plan(Edit::of(job(3)).seen(seen)).await.unwrap_err();
    assert_eq!(late.exit_code(), 6, "{late}");
    let again = admin.plan(Edit::of(job(3).parameter("all"))).await.unwrap();
    admin.remove(&name("settle"), false).await.unwrap();
    let gone = admin.apply(&again).await.unwrap_err();
    assert!(gone.exit_code() == 6 && gone.to_string().contains("removed"), "{gone}");
    let made = admin.apply(&plan).await;
    made.unwrap();
    let twice = admin.apply(&plan).await.unwrap_err();
    assert_eq!(twice.exit_code(), 6, "{twice}");
}

pub(crate) async fn what_stands_there_on_behalf_of_others_stays(ground: &dyn Ground) {
    let site = Site::new(ground, "what-stands-there").await;
    let (admin, tree) = (site.admin(), site.tree("settle"));
    let extra = "jobExtraConfigurations:\n- !!org.acme.Tracing\n  password: secret\n";
    let mut older = job(2).threads(&ThreadPool::Cpu);
    older.spelling = Spelling::UpTo304;
    let yaml = older.to_yaml().replace("jobName:", &format!("{extra}jobName:"));
    site.write(&tree.config(), &yaml).await;

    let plan = admin.plan(Edit::of(job(3).threads(&ThreadPool::Cpu))).await.unwrap();
    admin.apply(&plan).await.unwrap();
    admin.disable(&name("settle")).await.unwrap();

    let stored = site.read(&tree.config()).await.unwrap();
    let expected = yaml
        .replace("shardingTotalCount: 2", "shardingTotalCount: 3")
        .replace("disabled: false", "disabled: true");
    assert_eq!(stored, expected);
    let shown = serde_json::to_string(&admin.job(&name("settle")).await.unwrap()).unwrap();
    assert!(shown.contains("org.acme.Tracing") && !shown.contains("secret"), "{shown}");
}

pub(crate) async fn a_zone_java_cannot_read_is_refused_while_java_is_a_member(ground: &dyn Ground) {
    let site = Site::new(ground, "a-zone-java-cannot").await;
    let java = site.java(1, &job(1)).await;
    let admin = site.admin();

    let refused = admin.plan(Edit::of(job(1).zone("Europe/Paris").unwrap())).await.unwrap_err();
    assert_eq!(refused.exit_code(), 7);
    assert!(
        refused.to_string().contains(&java.id) && refused.to_string().contains("Europe/Paris"),
        "{refused}"
    );
    admin.plan(Edit::of(job(1).zone("GMT+8:00").unwrap())).await.unwrap();
    admin.shutdown(&name("settle")).await.unwrap();
    let plan = admin.plan(Edit::of(job(1).zone("Europe/Paris").unwrap())).await.unwrap();
    let back = site.java(2, &job(1)).await;

    let late = admin.apply(&plan).await.unwrap_err();
    assert!(late.exit_code() == 7 && late.to_string().contains(&back.id), "{late}");
}

pub(crate) async fn a_job_of_another_class_is_a_conflict_that_names_it(ground: &dyn Ground) {
    let site = Site::new(ground, "a-job-of-another").await;
    let _java = site.java(1, &job(1)).await;

    let conflict = site.admin().plan(Edit::of(job(1)).handler(Handler::Script)).await.unwrap_err();

    assert_eq!(conflict.exit_code(), 6);
    assert!(conflict.to_string().contains("com.acme.Settle"), "{conflict}");
    site.write(&site.tree("broken").config(), "cron: [").await;
    let broken = Edit::of(Job::named("broken").unwrap());
    let unreadable = site.admin().plan(broken).await.unwrap_err();
    assert_eq!(unreadable.exit_code(), 7, "{unreadable}");
}

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

pub(crate) async fn a_disabled_job_stays_disabled_for_those_who_come_later(ground: &dyn Ground) {
    let site = Site::new(ground, "a-disabled-job-stays").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let _one = site.rust(1, job(2)).await;
    site.dealt("settle").await;

    let switched = admin.disable(&settle).await.unwrap();
    assert_eq!((switched.servers, switched.stored), (vec!["10.0.0.1".to_owned()], Stored::Written));
    let _two = site.rust(2, job(2)).await;
    assert_eq!(site.read(&tree.server("10.0.0.2")).await.as_deref(), Some("DISABLED"));
    assert_eq!(status(&site, "settle").await, JobStatus::Disabled);
    let again = admin.disable(&settle).await.unwrap();
    assert_eq!((again.servers, again.stored), (vec![], Stored::Same));
    let switched = admin.enable(&settle).await.unwrap();

    assert_eq!(switched.servers, ["10.0.0.1", "10.0.0.2"]);
    site.dealt("settle").await;
    assert_eq!(status(&site, "settle").await, JobStatus::Ok);
    assert!(site.read(&tree.config()).await.unwrap().contains("disabled: false"));
    site.write(&tree.config(), "cron: [").await;
    let switched = admin.disable(&settle).await.unwrap();
    assert!(
        matches!(switched.stored, Stored::Unreadable { .. }) && switched.servers.len() == 2,
        "{switched:?}"
    );
    assert_eq!(site.read(&tree.config()).await.as_deref(), Some("cron: ["), "it is left as it is");
}

pub(crate) async fn a_server_is_switched_in_one_job_or_in_all_and_removed_when_nobody_is_on_it(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-server-is-switched").await;
    let (admin, settle) = (site.admin(), name("settle"));
    let other = Job::named("other").unwrap();
    let (one, two) = (site.java(1, &job(1)).await, site.java(1, &other).await);
    let elsewhere = site.java(2, &other).await;

    assert_eq!(admin.disable_server("10.0.0.1", Some(&settle)).await.unwrap(), ["settle"]);
    let server = admin.server("10.0.0.1").await.unwrap();
    assert_eq!(
        (server.summary.jobs.as_slice(), server.summary.disabled),
        (&["other".to_owned(), "settle".to_owned()][..], 1)
    );
    assert_eq!(server.summary.instances, [&*one.id], "an instance of two jobs is one");
    assert_eq!(admin.disable_server("10.0.0.1", None).await.unwrap(), ["other"]);
    assert_eq!(admin.enable_server("10.0.0.1", None).await.unwrap(), ["other", "settle"]);
    let all = admin.servers().await.unwrap();
    let all: Vec<(&str, usize)> =
        all.iter().map(|server| (server.address.as_str(), server.disabled)).collect();
    assert_eq!(all, [("10.0.0.1", 0), ("10.0.0.2", 0)]);

    let refused = admin.remove_server("10.0.0.1", None).await.unwrap_err();
    assert!(refused.exit_code() == 7 && refused.to_string().contains(&one.id), "{refused}");
    let ended = admin.shutdown_server("10.0.0.1", None).await.unwrap();
    assert_eq!(ended.into_keys().collect::<Vec<_>>(), ["other", "settle"]);
    assert_eq!(admin.remove_server("10.0.0.1", None).await.unwrap(), ["other", "settle"]);
    assert_eq!(admin.server("10.0.0.1").await.unwrap_err().exit_code(), 5);
    assert_eq!(admin.job(&name("other")).await.unwrap().instances[0].id, elsewhere.id);
    drop((one, two));
}

pub(crate) async fn a_disabled_shard_is_shown_before_everything_else(ground: &dyn Ground) {
    let site = Site::new(ground, "a-disabled-shard-is").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    site.write(&tree.config(), &job(2).to_yaml()).await;

    assert!(admin.disable_shard(&settle, 1).await.unwrap(), "before anybody was there");
    assert!(!admin.disable_shard(&settle, 1).await.unwrap());
    let node = site.rust(1, job(2)).await;
    site.dealt("settle").await;
    let claimed = node.claim(&Fire::scheduled(settle.clone(), at("2026-11-15T06:00:00Z"))).await;

    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Running, ShardStatus::Disabled]);
    let shards = admin.shards(&settle).await.unwrap();
    assert_eq!(shards[0].running.as_ref().unwrap().instance, node.id());
    let run = shards[0].last_run.as_ref().unwrap();
    assert_eq!(
        (run.state, run.attempt, run.due_at),
        (RunState::Running, 1, Some(at("2026-11-15T06:00:00Z")))
    );
    node.finish(&claimed).await;
    assert!(admin.enable_shard(&settle, 1).await.unwrap());
    assert!(!admin.enable_shard(&settle, 1).await.unwrap());
    assert_eq!(statuses(&site, "settle").await, [ShardStatus::Pending; 2]);
    assert_eq!(admin.disable_shard(&settle, 2).await.unwrap_err().exit_code(), 2);
}

pub(crate) async fn a_shut_down_job_has_no_members_and_its_shards_can_still_be_looked_at(
    ground: &dyn Ground,
) {
    let site = Site::new(ground, "a-shut-down-job").await;
    let (admin, settle) = (site.admin(), name("settle"));
    let mut node = site.rust(1, job(1).items("0=Beijing").unwrap()).await;
    site.dealt("settle").await;

    assert_eq!(admin.shutdown(&settle).await.unwrap(), [node.id()]);
    node.until(|news| *news == News::ShutDown).await;

    let shards = admin.shards(&settle).await.unwrap();
    assert_eq!(
        (shards[0].status, shards[0].owner.as_ref(), shards[0].is_owner_online),
        (ShardStatus::ShardingFlag, Some(&node.id()), false)
    );
    assert_eq!(
        (shards[0].server.as_deref(), shards[0].parameter.as_deref()),
        (Some("10.0.0.1"), Some("Beijing"))
    );
    assert_eq!(status(&site, "settle").await, JobStatus::Crashed);
    node.member.leave().await;
    node.line.registry.close().await;
}

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
            }
            None => assert_eq!(site.read(tree.root()).await, None, "nothing of it"),
        }
    }
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

pub(crate) async fn a_dump_is_the_ancestors_and_masks_addresses_whole(ground: &dyn Ground) {
    let site = Site::new(ground, "a-dump-is-the").await;
    let tree = site.tree("settle");
    site.write(&tree.config(), "cron: x\njobName: settle\n").await;
    site.write(&tree.server("10.0.0.1"), "ENABLED").await;
    site.write(&tree.server("10.0.0.12"), "DISABLED").await;
    site.write(&tree.shard(0, Part::Owner), "10.0.0.1@-@7").await;
    site.write(&tree.shard(10, Part::Itself), "").await;
    site.write(&tree.shard(2, Part::Itself), "").await;

    let dump = site.admin().dump(&name("settle")).await.unwrap();

    let expected = "/settle/sharding | \n\
        /settle/sharding/2 | \n\
        /settle/sharding/10 | \n\
        /settle/sharding/0 | \n\
        /settle/sharding/0/instance | ip1@-@7\n\
        /settle/servers | \n\
        /settle/servers/ip2 | DISABLED\n\
        /settle/servers/ip1 | ENABLED\n\
        /settle/config | cron: x\njobName: settle\n\n";
    assert_eq!(dump, expected);
    assert_eq!(site.admin().dump(&name("nothing")).await.unwrap_err().exit_code(), 5);
}

pub(crate) async fn an_explanation_names_what_stands_in_the_way(ground: &dyn Ground) {
    let site = Site::new(ground, "an-explanation-names").await;
    let (admin, tree, settle) = (site.admin(), site.tree("settle"), name("settle"));
    let explain = async |shard| admin.explain(&settle, shard, None).await.unwrap();

    assert!(explain(None).await.has(Topic::Missing, None));
    site.write(&tree.config(), "cron: [").await;
    assert!(explain(None).await.has(Topic::Unreadable, None));
    site.write(&tree.config(), &job(3).to_yaml()).await;
    let nobody = explain(None).await;
    assert!(
        nobody.has(Topic::NoInstance, None) && nobody.has(Topic::NoOwner, Some(2)),
        "{}",
        said(&nobody)
    );

    let java = site.java(1, &job(3)).await;
    site.deal("settle", &[0], &java.id).await;
    site.deal("settle", &[1], "10.0.0.8@-@9").await;
    site.write(&tree.necessary(), "").await;
    site.write(&tree.shard(0, Part::Disabled), "").await;
    site.write(&tree.shard(0, Part::Misfire), "").await;
    site.write(&tree.shard(1, Part::Running), "10.0.0.8@-@9").await;
    site.write(&tree.failover_item(2), "").await;
    site.write(&tree.server("10.0.0.1"), "DISABLED").await;
    site.write(&tree.server("10.0.0.2"), "ENABLED").await;
    site.delete(&tree.leader()).await;
    let much = explain(None).await;

    for (topic, shard) in [
        (Topic::ServerDisabled, None),
        (Topic::NoLeader, None),
        (Topic::Resharding, None),
        (Topic::Limits, None),
        (Topic::Schedule, None),
        (Topic::ShardDisabled, Some(0)),
        (Topic::Misfire, Some(0)),
        (Topic::ServerDisabled, Some(0)),
        (Topic::OwnerGone, Some(1)),
        (Topic::Running, Some(1)),
        (Topic::NoOwner, Some(2)),
        (Topic::Failover, Some(2)),
    ] {
        assert!(much.has(topic, shard), "{topic:?} {shard:?} in\n{}", said(&much));
    }
    let gone = much.findings.iter().find(|finding| finding.topic == Topic::Running).unwrap();
    assert!(
        gone.weight == Weight::Matters && gone.says.contains("10.0.0.8@-@9 was running it since"),
        "{gone:?}"
    );
    let one = explain(Some(1)).await;
    assert!(
        one.findings.iter().all(|finding| finding.shard.is_none_or(|shard| shard == 1)),
        "{}",
        said(&one)
    );
    assert!(explain(Some(9)).await.has(Topic::NoShard, Some(9)));
    admin.disable(&settle).await.unwrap();
    assert!(explain(None).await.has(Topic::Disabled, None));
}

pub(crate) async fn an_explanation_knows_what_was_due_and_what_became_of_it(ground: &dyn Ground) {
    let site = Site::new(ground, "an-explanation-knows").await;
    let settle = name("settle");
    let hourly =
        Job::named("settle").unwrap().cron("0 0 * * * ?").unwrap().zone("GMT+0:00").unwrap();
    let node = site.rust(1, hourly.clone()).await;
    site.dealt("settle").await;
    let admin = site.admin_at("2033-11-15T08:00:00Z");
    let explain = async |time: &str| admin.explain(&settle, Some(0), Some(at(time))).await.unwrap();
    let page = site.tree("settle").page(0);
    let due = Fire::scheduled(settle.clone(), at("2033-11-15T06:00:00Z"));
    let kept = Page::default().started(&due, node.member.id());

    // Instances entered before these times, and nothing was started.
    let missed = explain("2033-11-15T06:30:00Z").await;
    assert_eq!(
        (missed.due_at, missed.next_fire),
        (Some(at("2033-11-15T06:00:00Z")), Some(at("2033-11-15T07:00:00Z")))
    );
    assert!(missed.has(Topic::Missed, Some(0)), "{}", said(&missed));
    let future = explain("2033-11-15T09:30:00Z").await;
    assert!(!future.has(Topic::Missed, Some(0)), "{}", said(&future));
    assert!(said(&future).contains("will be due at 2033-11-15T09:00:00Z"), "{}", said(&future));
    let early = explain("2020-11-15T06:30:00Z").await;
    assert!(
        said(&early).contains("nobody of those who are there now was a member"),
        "{}",
        said(&early)
    );
    site.write(&page, std::str::from_utf8(&kept.to_bytes()).unwrap()).await;
    let started = explain("2033-11-15T06:30:00Z").await;
    assert!(
        started.has(Topic::Started, Some(0)) && !started.has(Topic::Missed, Some(0)),
        "{}",
        said(&started)
    );
    assert!(
        said(&started).contains(&format!("was started by {}: it runs, attempt 1", node.id())),
        "{}",
        said(&started)
    );
    let lost = Page { state: State::Lost, attempt: 2, ..kept.clone() };
    site.write(&page, std::str::from_utf8(&lost.to_bytes()).unwrap()).await;
    assert!(
        said(&explain("2033-11-15T06:30:00Z").await)
            .contains("lost, whoever ran it is gone, attempt 2")
    );
    let before = explain("2033-11-15T05:30:00Z").await;
    assert!(before.has(Topic::Limits, Some(0)), "{}", said(&before));
    assert!(explain("2033-11-15T07:00:00Z").await.has(Topic::Missed, Some(0)));
    let asked = Fire::triggered(settle.clone(), at("2033-11-15T06:10:00Z"), RunId::triggered(7));
    let asked = Page { state: State::Done, ..lost.started(&asked, node.member.id()) };
    site.write(&page, std::str::from_utf8(&asked.to_bytes()).unwrap()).await;
    assert!(said(&explain("2033-11-15T06:30:00Z").await).contains("was asked for: done"));

    let _java = site.java(2, &hourly).await;
    let unknown = explain("2033-11-15T07:00:00Z").await;
    assert!(said(&unknown).contains("a Java instance may have run it"), "{}", said(&unknown));
    assert!(!unknown.has(Topic::Missed, Some(0)));
}

pub(crate) async fn a_thousand_jobs_are_listed_in_one_go(ground: &dyn Ground) {
    let site = Site::new(ground, "a-thousand-jobs-are").await;
    let node = ground.join("a-thousand-jobs-are", None).await;
    let session = node.registry.session().id();
    let id = "10.0.0.1@-@7-a";
    let make = async |number: usize| {
        let job = Job::named(&format!("job-{number:04}"))
            .unwrap()
            .cron("0/5 * * * * ?")
            .unwrap()
            .shards(4);
        let tree = site.tree(job.name.as_str());
        let mut creates = vec![
            Create::persistent(tree.root(), ""),
            Create::persistent(&tree.config(), job.to_yaml()),
        ];
        creates.extend(tree.skeleton().iter().map(|path| Create::persistent(path, "")));
        creates.push(Create::persistent(&tree.server("10.0.0.1"), "ENABLED"));
        creates.push(Create::ephemeral(&tree.instance(id), "", session));
        for shard in 0..4 {
            creates.push(Create::persistent(&tree.shard(shard, Part::Itself), ""));
            creates.push(Create::persistent(&tree.shard(shard, Part::Owner), id));
        }
        node.registry
            .multi(creates.into_iter().map(elasticjob::registry::Op::Create).collect())
            .await
    };
    for batch in (0..1_000).collect::<Vec<_>>().chunks(100) {
        try_join_all(batch.iter().map(|number| make(*number))).await.unwrap();
    }

    let jobs = tokio::time::timeout(PATIENCE, site.admin().jobs()).await.unwrap().unwrap();

    assert_eq!(jobs.len(), 1_000);
    assert!(jobs.iter().all(|job| job.status == JobStatus::Ok && job.next_fire.is_some()));
    assert!(jobs.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert_eq!(site.admin().server("10.0.0.1").await.unwrap().jobs.len(), 1_000);
}
