//! Compares the stored formats of `job` with vectors recorded from Java ElasticJob and SnakeYAML; see `vectors/README.md`.

use std::{collections::BTreeMap, env, fmt::Write, fs, time::Duration};

use elasticjob::job::{
    CatchUp, Context, Failover, Instance, InstanceId, ItemParameters, Job, JobName, KeySpelling,
    LeaseLoss, LegacyJob, MaxTimeDiff, Misfire, Monitor, Overwrite, Reconcile, Resharding, Retry,
    Strategy, keys,
};
use proptest::{
    collection::vec, option, prelude::*, sample::select, strategy::Strategy as Generate,
};
use serde_json::Value;

/// The lines of a vector file. An environment variable (`YAML_READ=…`) names another file.
fn vectors(name: &str) -> Vec<Value> {
    let path = env::var(name.replace('-', "_").to_uppercase())
        .unwrap_or_else(|_| format!("{}/tests/vectors/{name}.jsonl", env!("CARGO_MANIFEST_DIR")));
    let text = fs::read_to_string(path).unwrap();
    let vectors: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!vectors.is_empty(), "{name}");
    vectors
}

fn vectors_of_kind(kind: &str) -> Vec<Value> {
    let found: Vec<Value> =
        vectors("wire").into_iter().filter(|vector| vector["kind"] == kind).collect();
    assert!(!found.is_empty(), "{kind}");
    found
}

fn name(text: &str) -> JobName {
    text.parse().unwrap()
}

fn read(document: &str) -> Job {
    Job::read(&name("j"), document.as_bytes()).unwrap()
}

#[test]
fn job_is_written_as_java_writes_it() {
    for vector in vectors_of_kind("config") {
        let job = job_from_java_settings(&vector["input"]);

        assert_eq!(job.to_yaml(), vector["yaml"].as_str().unwrap());
    }
}

/// A job built from the settings of a Java builder.
fn job_from_java_settings(input: &Value) -> Job {
    let mut job = Job::named(input["jobName"].as_str().unwrap()).unwrap();
    for (key, value) in input.as_object().unwrap() {
        let text = || value.as_str().unwrap();
        let number = || i32::try_from(value.as_i64().unwrap()).unwrap();
        job = match (key.as_str(), value) {
            ("jobName", _)
            | ("misfire" | "monitorExecution", Value::Bool(true))
            | ("failover" | "disabled" | "overwrite" | "staticSharding", Value::Bool(false)) => job,
            ("shardingTotalCount", _) => job.shards(number().try_into().unwrap()),
            ("cron", _) => job.cron(text()).unwrap(),
            ("timeZone", _) => job.zone(text()).unwrap(),
            ("shardingItemParameters", _) => job.items(text()).unwrap(),
            ("jobParameter", _) => job.parameter(text()),
            ("monitorExecution", _) => job.monitor(Monitor::Nothing),
            ("failover", _) => job.failover(Failover::TakeOver),
            ("misfire", _) => job.misfire(Misfire::Skip),
            ("maxTimeDiffSeconds", _) => job.max_time_diff(MaxTimeDiff::seconds(number())),
            ("reconcileIntervalMinutes", _) => job.reconcile(Reconcile::minutes(number())),
            ("jobShardingStrategyType", _) => job.strategy(&Strategy::Odevity),
            ("jobExecutorThreadPoolSizeProviderType", _) => {
                job.thread_pool_type = Some(text().into());
                job
            }
            ("jobErrorHandlerType", _) => job.alert(text()),
            ("jobListenerTypes", Value::Array(names)) => {
                job.java_listeners(names.iter().map(|name| name.as_str().unwrap()))
            }
            ("description", _) => job.description(text()),
            ("props", Value::Object(props)) => props
                .iter()
                .fold(job, |job, (key, value)| job.prop(key, value.as_str().unwrap()).unwrap()),
            ("disabled", _) => job.disabled(),
            ("overwrite", _) => job.overwrite(Overwrite::LocalWins),
            ("label", _) => job.label(text()),
            ("staticSharding", _) => job.resharding(Resharding::Static),
            other => panic!("{other:?}"),
        };
    }
    // Java has only one DST rule and does not store it.
    job.props.remove(keys::DST);
    job
}

#[test]
fn document_of_java_round_trips_byte_for_byte() {
    for vector in vectors_of_kind("config") {
        let yaml = vector["yaml"].as_str().unwrap();
        let job = Job::read(&name(vector["input"]["jobName"].as_str().unwrap()), yaml.as_bytes());

        assert_eq!(job.unwrap().to_yaml(), yaml);
    }
}

#[test]
fn document_is_read_or_refused_as_java_does() {
    let mut different = Vec::new();
    for vector in vectors("yaml-read") {
        let document = vector["document"].as_str().unwrap();
        let ours = Job::read(&name("j"), document.as_bytes()).map(|job| job.to_yaml());
        let is_same = match (&ours, vector["yaml"].as_str()) {
            (Ok(ours), Some(java)) => lines(ours) == lines(java),
            (Err(_), None) => true,
            _ => false,
        };
        if !is_same {
            different.push(format!("{document:?}\n  java {vector}\n  ours {ours:?}\n"));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

/// The lines, sorted, because Java writes `props` in the order of its hash table.
fn lines(yaml: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = yaml.split('\n').collect();
    lines.sort_unstable();
    lines
}

#[test]
fn instance_is_written_and_read_as_java_does() {
    for vector in vectors_of_kind("instance") {
        let (input, yaml) = (&vector["input"], vector["yaml"].as_str().unwrap());
        let id: InstanceId = input["jobInstanceId"].as_str().unwrap().parse().unwrap();
        let mut instance = Instance::new(id.clone());
        if let Some(labels) = input["labels"].as_str() {
            instance = instance.labels(labels);
        }

        assert_eq!(instance.to_yaml(), yaml);
        assert_eq!(Instance::read(&name("j"), &id, yaml.as_bytes()).unwrap(), instance);
    }
}

#[test]
fn context_is_written_as_java_writes_it() {
    for vector in vectors_of_kind("context") {
        let input = &vector["input"];
        let text = |key: &str| input[key].as_str().map(ToOwned::to_owned);
        let number = |key: &str| u32::try_from(input[key].as_u64().unwrap()).unwrap();
        let context = Context {
            job_name: text("jobName").unwrap(),
            task_id: text("taskId").unwrap(),
            sharding_total_count: number("shardingTotalCount"),
            job_parameter: text("jobParameter"),
            sharding_item: number("shardingItem"),
            sharding_parameter: text("shardingParameter"),
        };

        assert_eq!(context.to_json(), vector["json"].as_str().unwrap());
    }
}

#[test]
fn item_parameters_are_parsed_as_java_does() {
    for vector in vectors_of_kind("itemParameters") {
        let text = vector["input"].as_str().unwrap();
        let items = text.parse::<ItemParameters>();

        match vector["result"].as_object() {
            None => assert!(items.is_err(), "{text:?}"),
            Some(expected) => {
                let items = items.unwrap();
                let found: BTreeMap<String, String> = (0..10)
                    .filter_map(|item| Some((item.to_string(), items.get(item)?.to_owned())))
                    .collect();
                assert_eq!(serde_json::to_value(found).unwrap(), Value::Object(expected.clone()));
            }
        }
    }
}

/// Covers both packages of the class. The block is written by 3.0.5 and has a number that must stay a number.
#[test]
fn extra_configuration_is_preserved_unchanged() {
    for package in ["kernel.tracing", "tracing"] {
        let tag = format!(
            "!!org.apache.shardingsphere.elasticjob.{package}.yaml.YamlTracingConfiguration"
        );
        let document = format!(
            "\
description: ''
disabled: false
failover: false
jobExtraConfigurations:
- {tag}
  tracingStorageConfiguration: !!org.apache.shardingsphere.elasticjob.tracing.rdb.yaml.YamlDataSourceConfiguration
    dataSourceClassName: com.zaxxer.hikari.HikariDataSource
    props:
      jdbcUrl: jdbc:postgresql://h/d
      maximumPoolSize: 10
      minimumIdle: '10'
      password: hunter2
      username: u
  type: RDB
jobName: j
jobParameter: ''
maxTimeDiffSeconds: -1
misfire: true
monitorExecution: true
overwrite: false
reconcileIntervalMinutes: 10
shardingItemParameters: ''
shardingTotalCount: 3
staticSharding: false
"
        );

        let job = read(&document);

        assert_eq!(job.to_yaml(), document);
        assert_eq!(job.foreign_config.tags(), [tag]);
        assert!(!format!("{job:?}").contains("hunter2"));
    }
}

#[test]
fn configuration_of_3_0_4_keeps_its_spelling() {
    let document = read("{jobName: j, shardingTotalCount: 1, jobExecutorServiceHandlerType: CPU}");

    assert_eq!(document.spelling, KeySpelling::UpTo304);
    assert!(document.to_yaml().contains("\njobExecutorServiceHandlerType: CPU\n"));
    assert!(!document.to_yaml().contains("jobExecutorThreadPoolSizeProviderType"));
}

#[test]
fn missing_keys_mean_what_they_mean_to_java() {
    let job = read("jobName: j\nshardingTotalCount: 1\n");

    assert_eq!(
        (job.monitor, job.misfire, job.failover),
        (Monitor::Nothing, Misfire::Skip, Failover::Wait)
    );
    assert_eq!((job.reconcile.get(), job.max_time_diff.get()), (0, -1));
}

#[test]
fn empty_values_mean_unset_and_are_written_back() {
    let document =
        "jobName: j\nshardingTotalCount: 1\ncron: ''\ntimeZone: ''\njobErrorHandlerType: ''\n";

    let job = read(document);

    assert!(job.cron.is_none() && job.zone.is_none());
    assert_eq!(read(&job.to_yaml()), job);
    for line in ["cron: ''", "timeZone: ''", "jobErrorHandlerType: ''"] {
        assert!(job.to_yaml().lines().any(|written| written == line), "{line}");
    }
}

#[test]
fn unreadable_document_names_job_line_and_key() {
    for (document, location) in [
        ("", ": it is empty"),
        ("~", ", line 1: it is empty"),
        ("- a", ", line 1: it is not a map"),
        ("a: 'b", ", line 1: "),
        ("shardingTotalCount: 1", ": it has no jobName"),
        ("jobName: j", ": it has no shardingTotalCount"),
        ("jobName: k", ", line 1, key jobName: the document is for job \"k\""),
        (
            "jobName: j\nshardingTotalCount: 0",
            ", line 2, key shardingTotalCount: a job has at least",
        ),
        (
            "jobName: j\nshardingTotalCount: many",
            ", line 2, key shardingTotalCount: \"many\" is not",
        ),
        ("jobName: j\n\ncron: x", ", line 3, key cron: "),
        ("timeZone: Mars/Base", ", line 1, key timeZone: "),
        ("shardingItemParameters: 0=a,b", ", line 1, key shardingItemParameters: "),
        ("failover: maybe", ", line 1, key failover: \"maybe\" is neither"),
        ("description: [a]", ", line 1, key description: it is a list and should be text"),
        ("mood: good", ", line 1, key mood: the key is unknown, also to Java"),
        ("props:\n  a: b\n  c:\n", ", line 3, key props.c: it has no value"),
        (
            "props:\n  elasticjob.timeout: soon",
            ", line 2, key props.elasticjob.timeout: a number and",
        ),
        ("props: a", ", line 1, key props: it is a single value and should be a map"),
        ("jobName: j\n---\njobName: j", ", line 2: there is a second document"),
    ] {
        let error = Job::read(&name("j"), document.as_bytes()).unwrap_err().to_string();

        let expected = format!("job j: the stored config cannot be read{location}");
        assert!(error.starts_with(&expected), "{document:?}\n{error}\n{expected}");
        assert!(error.ends_with("; it is left unchanged"), "{error}");
    }
    assert!(Job::read(&name("j"), b"\xff").unwrap_err().to_string().contains("UTF-8"));
}

#[test]
fn alias_bomb_and_deep_nesting_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}", level - 1);
        writeln!(bomb, "a{level}: &a{level} [{}]", vec![before; 10].join(", ")).unwrap();
    }
    let deep = "[".repeat(100_000);

    for document in [bomb, deep] {
        assert!(Job::read(&name("j"), document.as_bytes()).is_err());
    }
}

fn text() -> impl Generate<Value = String> {
    prop_oneof![
        3 => "[a-z=:#,. *?/-]{0,30}",
        2 => "\\PC{0,100}",
        1 => "(?s).{0,20}",
        1 => select(vec!["yes", "~", "0x1F", "12", "1.5", "2020-01-01", " a", "a\nb\n", "\u{2028}", "''"])
            .prop_map(ToOwned::to_owned),
    ]
}

prop_compose! {
    fn job()(
        name in "[a-zA-Z0-9._-]{1,20}|[\\u4e00-\\u9fa5]{1,5}".prop_filter("a name", |name| name.parse::<JobName>().is_ok()),
        cron in option::of(select(vec!["0/5 * * * * ?", "*/10 * * * * ?", "0 0 12 ? * MON-FRI", "0 0 0 L * ? 2099"])),
        zone in option::of(select(vec!["GMT+8:00", "Europe/Paris"])),
        (shards, items) in (1_u32..100, select(vec!["", "0=a", "0=a, 1=b c,", "7=中文"])),
        (parameter, description, label) in (text(), text(), option::of(text())),
        (error_handler, thread_pool, strategy) in (option::of(text()), option::of(text()), option::of(text())),
        listeners in vec(text(), 0..3),
        props in vec((text(), text()), 0..6),
        flags in any::<[bool; 7]>(),
        (time_diff, reconcile) in (i32::MIN..=315_360_000, i32::MIN..=5_256_000),
        (timeout, attempts, window) in (1_u64..10_000_000, 0_u32..9, 1_u64..1_000_000),
    ) -> Job {
        let mut job = Job::named(&name).unwrap().shards(shards).items(items).unwrap();
        for (key, value) in props {
            // `set` refuses an invalid value of an `elasticjob.` key; other keys accept any value.
            let _ = job.props.set(key, value);
        }
        if flags[6] {
            job = job
                .timeout(Duration::from_millis(timeout))
                .retry(Retry::attempts(attempts).backoff(Duration::from_millis(timeout), Duration::from_mins(1)))
                .catch_up(CatchUp::All { window: Duration::from_secs(window) })
                .on_lease_loss(LeaseLoss::Continue)
                .strategy(&Strategy::Weighted)
                .handler("shop::settle");
        }
        if let Some(cron) = cron {
            job = job.cron(cron).unwrap();
        }
        if let Some(zone) = zone {
            job = job.zone(zone).unwrap();
        }
        job = job.max_time_diff(MaxTimeDiff::seconds(time_diff)).reconcile(Reconcile::minutes(reconcile));
        (job.parameter, job.description, job.label) = (parameter, description, label);
        job.error_handler_type = error_handler.map(Into::into);
        job.thread_pool_type = thread_pool.map(Into::into);
        job.strategy_type = strategy.map(Into::into);
        job.listener_types = listeners;
        job.disabled = flags[0];
        if flags[1] { job.failover = Failover::TakeOver; }
        if flags[2] { job.misfire = Misfire::Skip; }
        if flags[3] { job.monitor = Monitor::Nothing; }
        if flags[4] { job.overwrite = Overwrite::LocalWins; }
        if flags[5] { job.resharding = Resharding::Static; }
        job
    }
}

proptest! {
    #[test]
    fn written_job_reads_back(job in job()) {
        let yaml = job.to_yaml();

        let read = Job::read(&job.name, yaml.as_bytes());

        prop_assert_eq!(read.as_ref(), Ok(&job), "{}", yaml);
        prop_assert_eq!(read.unwrap().to_yaml(), yaml);
    }

    #[test]
    fn reading_never_panics_on_text(text in "(?s).{0,200}|[a-zA-Z0-9 :\\n'\"|>{}\\[\\],&*!?%#@`~<=-]{0,120}") {
        let _ = Job::read(&name("j"), text.as_bytes());
        let _ = LegacyJob::read(&name("j"), text.as_bytes());
        let _ = Instance::read(&name("j"), &"1.2.3.4@-@5".parse().unwrap(), text.as_bytes());
        let _ = text.parse::<ItemParameters>();
        let _ = text.parse::<InstanceId>();
    }

    #[test]
    fn reading_never_panics_on_bytes(bytes in vec(any::<u8>(), 0..100)) {
        let _ = Job::read(&name("j"), &bytes);
        let _ = LegacyJob::read(&name("j"), &bytes);
    }

    #[test]
    fn damaged_document_is_refused_or_round_trips(job in job(), at in any::<prop::sample::Index>(), with in any::<char>()) {
        let mut yaml = job.to_yaml();
        let at = yaml.floor_char_boundary(at.index(yaml.len()));
        yaml.insert(at, with);

        // Either an error, or a job that reads back the same after being written.
        if let Ok(read) = Job::read(&job.name, yaml.as_bytes()) {
            prop_assert_eq!(Job::read(&job.name, read.to_yaml().as_bytes()), Ok(read));
        }
    }
}
