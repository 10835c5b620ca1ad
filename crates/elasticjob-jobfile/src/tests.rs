//! Files as users write them, and the jobs they define.

use elasticjob::{
    job::{Failover, Misfire, Monitor, Overwrite},
    schedule::Dst,
};

use proptest::prelude::*;

use super::*;

fn variable(name: &str) -> Option<String> {
    match name {
        "ZK_HOST" => Some("zk1".to_owned()),
        "ELASTIC_JOB_ZK_HOST" => Some("zk9:2181".to_owned()),
        _ => None,
    }
}

fn parsed(files: &[(&str, &str)]) -> Result<Jobs, Vec<Problem>> {
    let files: Vec<(String, String)> =
        files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
    parse_sources(&files, &variable)
}

fn read(file: &str, text: &str) -> Jobs {
    parsed(&[(file, text)]).unwrap()
}

fn problems(file: &str, text: &str) -> Vec<String> {
    let problems = parsed(&[(file, text)]).unwrap_err();
    problems.iter().map(ToString::to_string).collect()
}

const SPRING: &str = "\
server:
  port: ${random.int[10000,19999]}
spring:
  application: {name: shop}
elasticjob:
  regCenter:
    serverLists: ${ZK_HOST:localhost}:2181, zk2:2182
    namespace: ${spring.application.name}
    session-timeout-milliseconds: 5000
    digest: jane:p@ss/word
  tracing:
    type: RDB
    dataSource:
      url: jdbc:mysql://${DB_HOST:db}:3306/jobs?useSSL=false
      username: jane
      password: p@ss
  jobs:
    settle-orders:
      elasticJobType: SCRIPT
      cron: 0/5 * * * * ?
      timeZone: GMT+8:00
      shardingTotalCount: 3
      shardingItemParameters: 0=Beijing,1=Shanghai,2=Guangzhou
      jobErrorHandlerType: LOG
      jobListenerTypes: audit, metrics
      failover: true
      overwrite: yes
      props:
        script.command.line: sh settle.sh
        elasticjob:
          timeout: 90s
    ping:
      elastic-job-type: HTTP
      sharding-total-count: 1
      props:
        http:
          uri: http://shop/ping
          method: GET
";

#[test]
fn spring_application_yml_is_read_unchanged() {
    let jobs = read("application.yml", SPRING);

    let (location, url) = jobs.registry.unwrap();
    assert_eq!(location.to_string(), "application.yml:6");
    assert_eq!(url, "zookeeper://jane:p%40ss%2Fword@zk1:2181,zk2:2182/shop?sessionTimeout=5000ms");
    let [settle, ping] = &jobs.entries[..] else { panic!("{:?}", jobs.entries) };
    assert_eq!((&settle.kind, &ping.kind), (&Kind::Script, &Kind::Http));
    assert_eq!(settle.job.name.as_str(), "settle-orders");
    assert_eq!(settle.job.shards.get(), 3);
    assert_eq!(settle.job.items.get(2), Some("Guangzhou"));
    assert_eq!(settle.job.zone.as_ref().unwrap().as_str(), "GMT+8:00");
    assert_eq!(settle.job.listener_types, ["audit", "metrics"]);
    assert_eq!(settle.job.overwrite, Overwrite::LocalWins);
    assert_eq!(settle.job.props.policies().timeout.unwrap().as_secs(), 90);
    assert_eq!(ping.job.props.get("http.uri"), Some("http://shop/ping"));
    let (location, url) = jobs.history.unwrap();
    assert_eq!(location.to_string(), "application.yml:13");
    assert_eq!(url, "mysql://jane:p%40ss@db:3306/jobs");
    assert!(jobs.notes.is_empty(), "{:?}", jobs.notes);
}

#[test]
fn omitted_properties_have_documented_defaults() {
    let jobs = read("application.yml", SPRING);

    let ping = &jobs.entries[1].job;
    assert_eq!(
        (ping.monitor, ping.failover, ping.misfire, ping.overwrite),
        (Monitor::Executions, Failover::Wait, Misfire::RunOnce, Overwrite::StoredWins)
    );
    assert_eq!((ping.reconcile.get(), ping.max_time_diff.get()), (10, -1));
    assert_eq!(jobs.entries[0].job.props.policies().dst, Dst::Default);
}

#[test]
fn json_toml_and_properties_define_the_same_job() {
    let yaml = "elasticjob:\n  jobs:\n    a.b:\n      cron: 0 0 2 * * ?\n      props: {script.command.line: echo hi}\n";
    let json = r#"{"elasticjob": {"jobs": {"a.b": {"cron": "0 0 2 * * ?", "props": {"script.command.line": "echo hi"}}}}}"#;
    let toml = "[elasticjob.jobs.\"a.b\"]\ncron = '0 0 2 * * ?'\n[elasticjob.jobs.\"a.b\".props]\n'script.command.line' = 'echo hi'\n";
    let properties = "elasticjob.jobs.[a.b].cron=0 0 2 * * ?\nelasticjob.jobs.[a.b].props.script.command.line=echo hi\n";

    let expected = read("a.yml", yaml).entries[0].job.clone();
    assert_eq!(expected.name.as_str(), "a.b");
    for (file, text) in [("a.json", json), ("a.toml", toml), ("a.properties", properties)] {
        assert_eq!(read(file, text).entries[0].job, expected, "{file}");
    }
}

#[test]
fn group_name_is_the_job_name_in_older_properties() {
    let text = "\
server.port=${random.int[10000,19999]}
regCenter.serverList = localhost:2181
regCenter.namespace = ejob-springboot

elasticJob.cron = 0/3 * * * * ?
elasticJob.shardingTotalCount = 4
elasticJob.shardingItemParameters = 0=aaa,1=bbb, 2=mic, 3=ccc
elasticJob.jobParameter = 2673
elasticJob.scriptCommandLine = D:/1.bat
elasticJob.nightly.cron = 0 0 2 * * ?
elasticJob.nightly.elasticJobClass = com.acme.Nightly
";

    let jobs = read("application.properties", text);

    assert_eq!(jobs.registry.unwrap().1, "zookeeper://localhost:2181/ejob-springboot");
    let [alone, nightly] = &jobs.entries[..] else { panic!("{:?}", jobs.entries) };
    assert_eq!((alone.job.name.as_str(), alone.job.shards.get()), ("elasticJob", 4));
    assert_eq!((alone.job.items.get(3), &*alone.job.parameter), (Some("ccc"), "2673"));
    assert_eq!(alone.kind, Kind::Script);
    assert_eq!(nightly.job.name.as_str(), "nightly");
    assert_eq!(nightly.kind, Kind::Java("com.acme.Nightly".to_owned()));
}

#[test]
fn spring_xml_snippet_is_imported() {
    let text = r#"
<reg:zookeeper id="regCenter"
               server-lists="${elastic.job.zk.host}"
               namespace="viptrade-job"
               base-sleep-time-milliseconds="1000"
               max-retries="3"
               session-timeout-milliseconds="5000"/>
<job:simple id="mySimpleElasticJob" class="com.acme.MySimpleElasticJob"
    registry-center-ref="regCenter"
    cron="0/10 * * * * ?"
    job-parameter="name=sky;age=21"
    sharding-total-count="3"
    sharding-item-parameters="0=A,1=B,2=C"/>
<job:script id="backup" registry-center-ref="regCenter" cron="0 0 2 * * ?" sharding-total-count="1"
    script-command-line="sh backup.sh" failover="true" monitor-port="9888"
    job-sharding-strategy-class="com.dangdang.ddframe.job.lite.api.strategy.impl.OdevitySortByNameJobShardingStrategy"/>
"#;

    let jobs = read("jobs.xml", text);

    assert_eq!(
        jobs.registry.unwrap().1,
        "zookeeper://zk9:2181/viptrade-job?baseSleepTime=1000ms&maxRetries=3&sessionTimeout=5000ms"
    );
    let [simple, backup] = &jobs.entries[..] else { panic!("{:?}", jobs.entries) };
    assert_eq!(simple.kind, Kind::Java("com.acme.MySimpleElasticJob".to_owned()));
    assert_eq!((simple.location.line, simple.job.items.get(1)), (8, Some("B")));
    assert_eq!(backup.kind, Kind::Script);
    assert_eq!(backup.job.failover, Failover::TakeOver);
    assert_eq!(backup.job.strategy_type.as_ref().unwrap().as_str(), "ODEVITY");
    assert_eq!(backup.job.props.policies().dst, Dst::Quartz, "Quartz scheduled it until now");
    assert_eq!(jobs.notes.len(), 1, "{:?}", jobs.notes);
}

#[test]
fn xml_problems_are_reported_with_their_line() {
    let whole = r#"<beans xmlns:job="http://www.dangdang.com/schema/ddframe/job">
<job:script id="a"
  shardingtotalcont="1"/>
</beans>"#;

    assert_eq!(
        problems("a.xml", whole),
        [
            "a.xml:3: the attribute shardingtotalcont is unknown; hint: did you mean sharding-total-count?"
        ]
    );
    assert!(
        problems("a.xml", "<beans xmlns='x'>\n<a>\n</beans>")[0].starts_with("a.xml:3: not XML")
    );
}

#[test]
fn xml_error_names_a_column_that_the_line_has() {
    for (text, problem) in [
        ("<job:script id='a' cron=x/>", "a.xml:1: not XML: expected a quote not 'x', column 25"),
        ("<job:script id='a'>", "a.xml:1: not XML: the element \"job:script\" is not closed"),
        ("<job:script\n id='a'>\n", "a.xml:2: not XML: the element \"job:script\" is not closed"),
        ("\n<job:script id='a' &/>", "a.xml:2: not XML: invalid name token, column 20"),
        (
            "<beans xmlns='x'>\n<a>\n</beans>",
            "a.xml:3: not XML: expected 'a' tag, not 'beans', column 1",
        ),
    ] {
        assert_eq!(problems("a.xml", text), [problem]);
    }
}

#[test]
fn unquoted_cron_that_begins_with_an_asterisk_is_named() {
    for (cron, key) in
        [("* * * * * ?", "cron: "), ("*/5 * * * * ?", "cron: "), ("* * * * *", "cron:    ")]
    {
        let text =
            format!("elasticjob:\n  jobs:\n    a:\n      {key}{cron}\n      misfire: true\n");

        assert_eq!(
            problems("a.yml", &text),
            [format!(
                "a.yml:4: \"{cron}\" is not quoted, and YAML reads text that begins with * as an alias; hint: put it in quotes: {key}\"{cron}\""
            )]
        );
    }
    let other = problems("a.yml", "a: [1\nb: '*'\n");
    assert!(!other[0].contains("alias"), "{other:?}");
}

#[test]
fn toml_error_names_file_and_line() {
    assert_eq!(
        problems("a.toml", "[elasticjob]\njobs = \n")[0].split(": ").next(),
        Some("a.toml:2")
    );
}

#[test]
fn stored_configuration_of_2_1_5_is_imported() {
    let text = r#"{"jobName":"j","jobClass":"","jobType":"SCRIPT","cron":"0 0 * * * ?","shardingTotalCount":2,"scriptCommandLine":"sh a.sh"}"#;

    let jobs = read("j.json", text);

    assert_eq!(jobs.entries[0].kind, Kind::Script);
    assert_eq!(jobs.entries[0].job.shards.get(), 2);
}

#[test]
fn every_problem_is_reported_with_line_and_suggestion() {
    let text = "\
elasticjob:
  regCentre: {}
  jobs:
    a:
      elasticJobType: SCRIPT
      crom: 0 0 2 * * ?
      misfire: perhaps
      cron: 0 0 24 * * ?
      props:
        elasticjob.timout: 1s
    b:
      elasticJobType: SCRPT
    c:
      cron: ${UNSET}
    d: {elasticJobType: HTTP, props: {http.method: GET}}
";

    assert_eq!(
        problems("a.yml", text),
        [
            "a.yml:2: elasticjob.regCentre is unknown; hint: did you mean regCenter?",
            "a.yml:6: job a: crom is unknown; hint: did you mean cron?",
            "a.yml:7: job a: misfire \"perhaps\": it is neither true nor false",
            "a.yml:8: job a: cron \"0 0 24 * * ?\": hours \"24\" is out of range; hint: hours are 0 to 23",
            "a.yml:10: job a: props.elasticjob.timout is unknown; hint: did you mean elasticjob.timeout?",
            "a.yml:12: job b: elasticJobType SCRPT is unknown; hint: did you mean SCRIPT?",
            "a.yml:14: job c: cron: placeholder ${UNSET} has no value; hint: set the environment variable UNSET, or write ${UNSET:a default}",
            "a.yml:13: job c: no handler is configured; hint: elasticJobType SCRIPT with script.command.line in props, or HTTP with http.uri and http.method",
            "a.yml:15: job d: the property http.uri is missing",
        ]
    );
}

#[test]
fn invalid_registry_is_reported_without_its_password() {
    for (group, problem) in [
        (
            "{serverLists: 'zk1:x', namespace: n}",
            "a.yml:1: regCenter: \"x\" is not a valid port for \"zk1\"",
        ),
        ("{serverLists: zk1}", "a.yml:1: regCenter needs both serverLists and namespace"),
        (
            "{serverLists: zk1, namespace: n, digest: secret}",
            "a.yml:1: regCenter.digest is not user:password",
        ),
        (
            "{serverLists: zk1, namespace: n, maxRetries: many}",
            "a.yml:1: regCenter.maxRetries \"many\" is not a whole number",
        ),
    ] {
        let text = format!("elasticjob: {{regCenter: {group}}}");

        assert_eq!(problems("a.yml", &text), [problem]);
    }
}

#[test]
fn job_defined_in_two_files_is_a_problem() {
    let text = "elasticjob:\n  jobs:\n    a: {props: {script.command.line: echo}}\n";

    let problems = parsed(&[("a.yml", text), ("b.yml", text)]).unwrap_err();

    assert!(problems[0].message.starts_with("b.yml:3: job a is already defined at a.yml:3"));
}

#[test]
fn document_for_a_profile_is_read_if_the_profile_is_active() {
    let text = "\
elasticjob: {regCenter: {serverLists: zk1, namespace: a}}
---
spring: {config: {activate: {on-profile: production}}}
elasticjob: {regCenter: {namespace: b}}
";
    let files = [("a.yml".to_owned(), text.to_owned())];
    let active =
        |name: &str| (name == "SPRING_PROFILES_ACTIVE").then(|| "x, production".to_owned());

    let url = |jobs: Result<Jobs, _>| jobs.unwrap().registry.unwrap().1;
    assert_eq!(url(parse_sources(&files, &|_| None)), "zookeeper://zk1/a");
    assert_eq!(url(parse_sources(&files, &active)), "zookeeper://zk1/b");
}

#[test]
fn jobs_of_a_disabled_section_are_ignored_with_a_note() {
    let text =
        "elasticjob:\n  enabled: false\n  jobs:\n    a: {props: {script.command.line: echo}}\n";

    let jobs = read("a.yml", text);

    assert!(jobs.entries.is_empty() && jobs.notes.len() == 1);
}

proptest! {
    /// A damaged file is read or reported; it never causes a panic.
    #[test]
    fn damaged_file_never_panics(
        at in any::<prop::sample::Index>(),
        length in 0..40_usize,
        instead in "[ -~\\n\\t\u{e9}\u{1f600}]{0,12}",
        extension in prop::sample::select(vec!["yml", "json", "toml", "properties", "xml"]),
    ) {
        const SAMPLE: &str = "{\"elasticjob\": {\"jobs\": {\"a\": {\"cron\": \"${X:\\ud83d\\ude00}\", \"props\": {\"script.command.line\": \"echo\"}}}}}";
        let whole = match extension {
            "json" => SAMPLE.to_owned(),
            "toml" => "[elasticjob.jobs.a]\ncron = '0 0 2 * * ?'\nprops.script.command.line = \"echo\"\n".to_owned(),
            "properties" => "elasticJob.a.cron = 0 0 2 * * ?\nelasticjob.jobs.[b.c].jobListenerTypes[0]=\\u6e05\\\n x\n".to_owned(),
            "xml" => "<job:script id=\"a\" cron=\"0 0 2 * * ?\"\n script-command-line=\"${X:echo}\" sharding-total-count=\"1\"/>".to_owned(),
            _ => SPRING.to_owned(),
        };
        let mut characters: Vec<char> = whole.chars().collect();
        let start = at.index(characters.len());
        let end = (start + length).min(characters.len());
        characters.splice(start..end, instead.chars());
        let damaged: String = characters.into_iter().collect();

        let _ = parsed(&[(&format!("a.{extension}"), &damaged)]);
    }
}
