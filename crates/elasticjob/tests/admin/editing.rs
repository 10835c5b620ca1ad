//! Configurations are planned, changed, and not lost.

use elasticjob::{
    admin::{Change, Edit},
    job::{Handler, Job, Spelling, ThreadPool},
    testing::conformance::Ground,
};

use crate::site::{Site, job, name};

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
