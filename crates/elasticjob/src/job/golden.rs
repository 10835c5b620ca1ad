//! The words of stored jobs and instances, frozen: `tests/golden/README.md` says why.
//!
//! Values are written out field by field and enums are walked variant by variant, so that an addition does not compile until it is frozen, too.

use std::{fmt::Display, iter::successors, num::NonZeroU32, time::Duration};

use testbed::{golden, golden_input};

use super::{
    Alert, Backoff, CatchUp, Context, Dingtalk, Email, Failover, Handler, Instance, InstanceId,
    Job, JobName, KeySpelling, LeaseLoss, LegacyJob, LegacyKind, MaxTimeDiff, Misfire, Monitor,
    Overwrite, Policies, Props, Reconcile, Resharding, Retry, RunId, Strategy, TaskId, ThreadPool,
    Webhook, foreign_config::ForeignConfig, job::EmptyValues, props::keys, yaml::load,
};
use crate::schedule::Dst;

const SECOND: Duration = Duration::from_secs(1);

fn name() -> JobName {
    "settle".parse().unwrap()
}

fn text<T: Display>(value: &T) -> String {
    value.to_string()
}

/// Of others, as Java stores its tracing.
fn foreign_config() -> ForeignConfig {
    let node = load(
        "- !!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration\n  type: RDB\n",
    );
    ForeignConfig::from_node(&node.unwrap().unwrap()).unwrap()
}

/// Every property of ours, as the builder writes it.
fn props() -> Props {
    let job = Job::named("settle")
        .unwrap()
        .dst(Dst::Quartz)
        .timeout(90 * SECOND)
        .retry(Retry::attempts(3).backoff(2 * SECOND, 60 * SECOND))
        .catch_up(CatchUp::All { window: Duration::from_hours(6) })
        .on_lease_loss(LeaseLoss::FinishFenced)
        .strategy(&Strategy::Sticky)
        .alert("WEBHOOK")
        .handler("shop::settle");
    let mut props = job.props;
    for (key, value) in [
        (keys::SCRIPT_SHELL, "true"),
        (keys::SCRIPT_INHERIT_ENVIRONMENT, "true"),
        (keys::HTTP_LOG_ONLY, "true"),
        (keys::WEBHOOK_URL, "https://alerts.example.com/settle"),
        (keys::WEBHOOK_CONNECT_TIMEOUT, "1500"),
        (keys::WEBHOOK_READ_TIMEOUT, "2500"),
        ("team", "payments"),
    ] {
        props.set(key, value).unwrap();
    }
    props
}

/// A job that has everything, and nothing as it is by default.
fn full(spelling: KeySpelling) -> Job {
    Job {
        name: name(),
        cron: Some("0/5 * * * * ?".parse().unwrap()),
        zone: Some("GMT+8:00".parse().unwrap()),
        shards: 3.try_into().unwrap(),
        items: "0=Beijing,1=Shanghai".parse().unwrap(),
        parameter: "all".to_owned(),
        monitor: Monitor::Nothing,
        failover: Failover::TakeOver,
        misfire: Misfire::Skip,
        max_time_diff: MaxTimeDiff::seconds(30),
        reconcile: Reconcile::minutes(5),
        strategy_type: Some("ODEVITY".into()),
        thread_pool_type: Some("SINGLE_THREAD".into()),
        error_handler_type: Some("LOG".into()),
        listener_types: vec!["audit".to_owned(), "metrics".to_owned()],
        foreign_config: foreign_config(),
        description: "settles orders".to_owned(),
        props: props(),
        disabled: true,
        overwrite: Overwrite::LocalWins,
        label: Some("payments".to_owned()),
        resharding: Resharding::Static,
        spelling,
        empty_values: EmptyValues { cron: false, zone: false },
    }
}

#[test]
fn job_is_stored_in_the_same_words() {
    let jobs = [
        ("job.yaml", full(KeySpelling::Since305)),
        ("job-up-to-3.0.4.yaml", full(KeySpelling::UpTo304)),
        ("job-default.yaml", Job::new(name())),
    ];
    for (file, job) in jobs {
        let stored = golden!(file, job.to_yaml());

        assert_eq!(Job::read(&name(), stored.as_bytes()).unwrap(), job, "{file}");
    }
}

#[test]
fn job_with_empty_keys_is_stored_as_it_was_read() {
    let empty_values = EmptyValues { cron: true, zone: true };
    let job = Job { empty_values, ..Job::new(name()) };

    let stored = golden!("job-blank.yaml", job.to_yaml());

    assert_eq!(Job::read(&name(), stored.as_bytes()).unwrap().to_yaml(), stored);
}

#[test]
fn stored_props_mean_the_same_policies() {
    let stored = golden!("job.yaml", full(KeySpelling::Since305).to_yaml());

    let job = Job::read(&name(), stored.as_bytes()).unwrap();

    let expected = Policies {
        timeout: Some(90 * SECOND),
        retry: Retry {
            max_attempts: NonZeroU32::new(3).unwrap(),
            backoff: Backoff { first: 2 * SECOND, longest: 60 * SECOND },
        },
        catch_up: CatchUp::All { window: Duration::from_hours(6) },
        on_lease_loss: LeaseLoss::FinishFenced,
        strategy: Some(Strategy::Sticky),
        alert: Some("WEBHOOK".into()),
        handler: Some("shop::settle".to_owned()),
        dst: Dst::Quartz,
        script_shell: true,
        script_inherit_environment: true,
        http_log_only: true,
    };
    assert_eq!(job.props.policies(), &expected);
    let webhook = Webhook {
        url: "https://alerts.example.com/settle".to_owned(),
        connect_timeout: Duration::from_millis(1500),
        read_timeout: Duration::from_millis(2500),
    };
    assert_eq!(Alert::of(&job).unwrap(), Alert::Webhook(webhook));
    let written: Vec<&str> = job.props.iter().map(|(key, _)| key).collect();
    let missing: Vec<&str> = keys::ALL.into_iter().filter(|key| !written.contains(key)).collect();
    assert!(missing.is_empty(), "freeze these keys, too: {missing:?}");
}

#[test]
fn values_of_properties_keep_their_spelling() {
    let leases = successors(Some(LeaseLoss::Cancel), |policy| match policy {
        LeaseLoss::Cancel => Some(LeaseLoss::FinishFenced),
        LeaseLoss::FinishFenced => Some(LeaseLoss::Continue),
        LeaseLoss::Continue => None,
    });
    let catch_up = successors(Some(CatchUp::None), |policy| match policy {
        CatchUp::None => Some(CatchUp::Last),
        CatchUp::Last => Some(CatchUp::All { window: Duration::from_hours(6) }),
        CatchUp::All { .. } => None,
    });
    let backoffs = [Backoff::DEFAULT, Backoff { first: 5 * SECOND, longest: 5 * SECOND }];
    let dst = successors(Some(Dst::Default), |rule| match rule {
        Dst::Default => Some(Dst::Quartz),
        Dst::Quartz => None,
    });
    let strategies = successors(Some(Strategy::AvgAllocation), |strategy| match strategy {
        Strategy::AvgAllocation => Some(Strategy::Odevity),
        Strategy::Odevity => Some(Strategy::RoundRobin),
        Strategy::RoundRobin => Some(Strategy::SingleShardingBalance),
        Strategy::SingleShardingBalance => Some(Strategy::Sticky),
        Strategy::Sticky => Some(Strategy::Weighted),
        Strategy::Weighted => Some(Strategy::Named("mine".into())),
        Strategy::Named(_) => None,
    });
    let pools = successors(Some(ThreadPool::Cpu), |pool| match pool {
        ThreadPool::Cpu => Some(ThreadPool::SingleThread),
        ThreadPool::SingleThread => Some(ThreadPool::Named("mine".into())),
        ThreadPool::Named(_) => None,
    });
    let handlers = successors(Some(Handler::Script), |handler| match handler {
        Handler::Script => Some(Handler::Http),
        Handler::Http => Some(Handler::Code { java_class: Some("com.acme.Settle".to_owned()) }),
        Handler::Code { .. } => None,
    });
    let lines: Vec<(&str, Vec<String>)> = vec![
        (keys::ON_LEASE_LOSS, leases.clone().map(|it| text(&it)).collect()),
        (keys::CATCH_UP, catch_up.clone().map(|it| text(&it)).collect()),
        (keys::RETRY_BACKOFF, backoffs.iter().map(text).collect()),
        (keys::DST, dst.clone().map(|it| text(&it)).collect()),
        ("jobShardingStrategyType", strategies.clone().map(|it| text(&it)).collect()),
        ("jobExecutorThreadPoolSizeProviderType", pools.clone().map(|it| text(&it)).collect()),
        ("root", handlers.map(|it| it.root_data().to_owned()).collect()),
    ];
    let lines = lines.into_iter().map(|(key, words)| format!("{key}: {}\n", words.join(" | ")));

    golden!("job-values.txt", lines.collect::<String>());

    assert!(leases.clone().all(|it| text(&it).parse() == Ok(it)));
    assert!(catch_up.clone().all(|it| text(&it).parse() == Ok(it)));
    assert!(backoffs.iter().all(|it| text(it).parse() == Ok(*it)));
    assert!(dst.clone().all(|it| text(&it).parse().is_ok_and(|parsed: Dst| parsed == it)));
    assert!(strategies.clone().all(|it| Strategy::from(text(&it).as_str()) == it));
    assert!(pools.clone().all(|it| ThreadPool::from(text(&it).as_str()) == it));
}

#[test]
fn javas_error_handlers_read_their_own_properties() {
    let alert = |file: &str| {
        let stored = golden_input!(file);
        Alert::of(&Job::read(&name(), stored.as_bytes()).unwrap()).unwrap()
    };
    let webhook = |url: &str| Webhook {
        url: url.to_owned(),
        connect_timeout: Duration::from_millis(1500),
        read_timeout: Duration::from_millis(2500),
    };

    let email = Email {
        host: "mail.example.com".to_owned(),
        port: 465,
        username: "ann".to_owned(),
        password: "hunter2".to_owned(),
        use_ssl: false,
        ssl_trust: Some("mail.example.com".to_owned()),
        subject: "settling failed".to_owned(),
        from: "jobs@example.com".to_owned(),
        to: vec!["ann@example.com".to_owned(), "bob@example.com".to_owned()],
        cc: Some("cc@example.com".to_owned()),
        bcc: Some("bcc@example.com".to_owned()),
        debug: true,
    };
    let dingtalk = Dingtalk {
        webhook: webhook("https://oapi.dingtalk.com/robot/send?access_token=x"),
        keyword: Some("ElasticJob".to_owned()),
        secret: Some("SEC0".to_owned()),
    };
    let wechat = webhook("https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x");
    assert_eq!(alert("job-email.yaml"), Alert::Email(Box::new(email)));
    assert_eq!(alert("job-dingtalk.yaml"), Alert::Dingtalk(dingtalk));
    assert_eq!(alert("job-wechat.yaml"), Alert::Wechat(wechat));
    for (word, expected) in
        [("LOG", Alert::Log), ("IGNORE", Alert::Ignore), ("THROW", Alert::Throw)]
    {
        assert_eq!(Alert::of(&Job::new(name()).alert(word)).unwrap(), expected);
    }
}

#[test]
fn job_of_2_1_5_is_imported_under_the_same_words() {
    for (file, kind) in [
        ("job-2.1.5-simple.json", LegacyKind::Simple),
        ("job-2.1.5-dataflow.json", LegacyKind::Dataflow),
        ("job-2.1.5-script.json", LegacyKind::Script),
    ] {
        let stored = golden_input!(file);

        let LegacyJob { job, class, kind: read, dropped } =
            LegacyJob::read(&name(), stored.as_bytes()).unwrap();

        assert_eq!(read, kind);
        let class = class.unwrap_or_default();
        let keys = dropped.iter().map(|line| line.split(':').next().unwrap_or_default());
        let keys = keys.collect::<Vec<_>>().join(", ");
        let imported = format!("# class: {class}\n# dropped: {keys}\n{}", job.to_yaml());
        golden!(&file.replace(".json", ".imported.yaml"), imported);
    }
}

#[test]
fn instance_is_stored_in_the_same_words() {
    let id = InstanceId::new([10, 0, 0, 7].into(), 4711, 0x9f86_d081);
    let instance = Instance {
        id: id.clone(),
        labels: Some("weight=3,zone=a".to_owned()),
        server: "10.0.0.7".to_owned(),
    };

    let stored = golden!("instance.yaml", instance.to_yaml());

    let read = Instance::read(&name(), &id, stored.as_bytes()).unwrap();
    assert_eq!(read, instance);
    assert_eq!(read.weight(), 3, "the label weight");
}

#[test]
fn ids_keep_their_form() {
    let instance = InstanceId::new([10, 0, 0, 7].into(), 4711, 0x9f86_d081);
    let scheduled = RunId::scheduled(name(), "2026-11-15T06:36:07Z".parse().unwrap());
    let triggered = RunId::triggered(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    let task = TaskId { job: name(), items: vec![0, 2], instance: instance.clone() };
    let ids = [text(&instance), text(&scheduled), text(&triggered), text(&task)];
    let [a, b, c, d] = &ids;

    golden!("ids.txt", format!("instance {a}\nscheduled run {b}\ntriggered run {c}\ntask {d}\n"));

    assert_eq!(a.parse(), Ok(instance));
    assert_eq!(b.parse(), Ok(scheduled));
    assert_eq!(c.parse(), Ok(triggered));
    assert_eq!(d.parse(), Ok(task));
}

#[test]
fn sharding_context_is_told_in_javas_words() {
    let context = Context {
        job_name: "settle".to_owned(),
        task_id: "settle@-@0@-@READY@-@10.0.0.7@-@4711".to_owned(),
        sharding_total_count: 3,
        job_parameter: Some("all".to_owned()),
        sharding_item: 1,
        sharding_parameter: Some("Shanghai".to_owned()),
    };

    golden!("sharding-context.json", context.to_json() + "\n");
}
