//! Configurations: plan, apply, conflicts.

use elasticjob::{
    admin::{ConfigChange, Edit},
    job::{Handler, Job, KeySpelling, ThreadPool},
    testing::conformance::TestServer,
};

use crate::fixture::{Fixture, job, name};
use elasticjob::admin::AdminError;

pub(crate) async fn plan_shows_changes_and_lost_race_is_a_conflict_with_details(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "plan-and-conflict").await;
    let admin = fixture.admin();

    let plan = admin.plan(Edit::new(job(2)).handler(Handler::Script)).await.unwrap();
    assert_eq!(plan.change, ConfigChange::New);
    assert_eq!(fixture.read(&fixture.tree("settle").config()).await, None, "a plan writes nothing");
    assert!(admin.apply(&plan).await.unwrap().is_changed);
    assert_eq!(fixture.read(fixture.tree("settle").root()).await.as_deref(), Some("SCRIPT"));
    let same = admin.plan(Edit::new(job(2)).handler(Handler::Script)).await.unwrap();
    assert_eq!(same.change, ConfigChange::Same);
    let applied = admin.apply(&same).await.unwrap();
    assert!(!applied.is_changed);

    let seen = admin.job(&name("settle")).await.unwrap().configuration.version;
    assert_eq!(applied.version, seen);
    let mine = admin.plan(Edit::new(job(3)).seen(seen)).await.unwrap();
    let theirs = admin.plan(Edit::new(job(2).parameter("all"))).await.unwrap();
    let ConfigChange::Changed(differences) = &mine.change else { panic!("{mine:?}") };
    assert_eq!(differences[0].to_string(), r#"shardingTotalCount: here "3", stored "2""#);
    admin.apply(&theirs).await.unwrap();
    let conflict = admin.apply(&mine).await.unwrap_err();

    assert!(matches!(conflict, AdminError::Conflict { .. }));
    assert!(conflict.to_string().contains(r#"jobParameter from nothing to "all""#), "{conflict}");
    let outdated = admin.plan(Edit::new(job(3)).seen(seen)).await.unwrap_err();
    assert!(matches!(outdated, AdminError::Conflict { .. }), "{outdated}");
    let again = admin.plan(Edit::new(job(3).parameter("all"))).await.unwrap();
    admin.remove(&name("settle"), false).await.unwrap();
    let removed = admin.apply(&again).await.unwrap_err();
    assert!(
        matches!(removed, AdminError::Conflict { .. }) && removed.to_string().contains("removed"),
        "{removed}"
    );
    let created = admin.apply(&plan).await;
    created.unwrap();
    let applied_twice = admin.apply(&plan).await.unwrap_err();
    assert!(matches!(applied_twice, AdminError::Conflict { .. }), "{applied_twice}");
}

pub(crate) async fn edit_keeps_settings_of_other_programs(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "foreign-settings").await;
    let (admin, tree) = (fixture.admin(), fixture.tree("settle"));
    let extra = "jobExtraConfigurations:\n- !!org.acme.Tracing\n  password: secret\n";
    let mut older = job(2).threads(&ThreadPool::Cpu);
    older.spelling = KeySpelling::UpTo304;
    let yaml = older.to_yaml().replace("jobName:", &format!("{extra}jobName:"));
    fixture.write(&tree.config(), &yaml).await;

    let plan = admin.plan(Edit::new(job(3).threads(&ThreadPool::Cpu))).await.unwrap();
    admin.apply(&plan).await.unwrap();
    admin.disable(&name("settle")).await.unwrap();

    let stored = fixture.read(&tree.config()).await.unwrap();
    let expected = yaml
        .replace("shardingTotalCount: 2", "shardingTotalCount: 3")
        .replace("disabled: false", "disabled: true");
    assert_eq!(stored, expected);
    let shown = serde_json::to_string(&admin.job(&name("settle")).await.unwrap()).unwrap();
    assert!(shown.contains("org.acme.Tracing") && !shown.contains("secret"), "{shown}");
}

pub(crate) async fn zone_unreadable_by_java_is_refused_while_job_has_java_instance(
    ground: &dyn TestServer,
) {
    let fixture = Fixture::new(ground, "zone-unreadable").await;
    let java = fixture.java(1, &job(1)).await;
    let admin = fixture.admin();

    let refused = admin.plan(Edit::new(job(1).zone("Europe/Paris").unwrap())).await.unwrap_err();
    assert!(matches!(refused, AdminError::Refused { .. }));
    assert!(
        refused.to_string().contains(&java.id) && refused.to_string().contains("Europe/Paris"),
        "{refused}"
    );
    admin.plan(Edit::new(job(1).zone("GMT+8:00").unwrap())).await.unwrap();
    admin.shutdown(&name("settle")).await.unwrap();
    let plan = admin.plan(Edit::new(job(1).zone("Europe/Paris").unwrap())).await.unwrap();
    let joined_later = fixture.java(2, &job(1)).await;

    let refused = admin.apply(&plan).await.unwrap_err();
    assert!(
        matches!(refused, AdminError::Refused { .. })
            && refused.to_string().contains(&joined_later.id),
        "{refused}"
    );
}

pub(crate) async fn job_of_another_class_is_a_conflict_naming_the_class(ground: &dyn TestServer) {
    let fixture = Fixture::new(ground, "job-of-another-class").await;
    let _java = fixture.java(1, &job(1)).await;

    let conflict =
        fixture.admin().plan(Edit::new(job(1)).handler(Handler::Script)).await.unwrap_err();

    assert!(matches!(conflict, AdminError::Conflict { .. }));
    assert!(conflict.to_string().contains("com.acme.Settle"), "{conflict}");
    fixture.write(&fixture.tree("broken").config(), "cron: [").await;
    let broken = Edit::new(Job::named("broken").unwrap());
    let unreadable = fixture.admin().plan(broken).await.unwrap_err();
    assert!(matches!(unreadable, AdminError::Refused { .. }), "{unreadable}");
}
