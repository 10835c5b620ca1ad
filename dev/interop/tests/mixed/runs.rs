//! When shards run, and with which arguments.

use std::{collections::BTreeMap, fs};

use elasticjob::{coordination::trigger::TriggerRequest, job::Job};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::{
    event_log::{Execution, TIMEOUT},
    peer::Peer,
    scenario::{Scenario, TestRegistry, idle, job, ms},
};

/// Executions of one shard that overlapped.
fn overlaps(executions: &[Execution]) -> Vec<(&Execution, &Execution)> {
    let mut found = Vec::new();
    for (index, execution) in executions.iter().enumerate() {
        let Some((_, end)) = execution.end else { continue };
        let later = executions[index + 1..].iter();
        found.extend(
            later
                .filter(|other| other.item == execution.item && other.started_at < end)
                .map(|other| (execution, other)),
        );
    }
    found
}

/// The second instance joins while the first one runs all shards, and gets its share after that run.
async fn joins_during_a_long_run(scenario: &Scenario, first: &mut Peer, second: &mut Peer) {
    let settle = job("settle", "0/3 * * * * ?", 2);
    let old = first.join(&settle, ms(5_000)).await;
    let find = |executions: &[Execution]| (executions.len() >= 2).then(|| executions.to_vec());
    scenario.events.until("both shards run", "settle", find).await;

    let new = second.join(&settle, ms(200)).await;

    let owners = scenario.wait_until_assigned(&settle, &[&old, &new]).await;
    scenario.wait_until_owners_run(&settle, &owners).await;
    let executions = scenario.events.executions("settle");
    assert!(
        executions[..2]
            .iter()
            .all(|execution| execution.instance == old && execution.has_succeeded()),
        "{executions:?}"
    );
    assert!(overlaps(&executions).is_empty(), "{executions:?}");
}

pub(crate) async fn rust_joins_during_a_long_run_of_java(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "long-java").await;
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    joins_during_a_long_run(&scenario, &mut java, &mut rust).await;
}

pub(crate) async fn java_joins_during_a_long_run_of_rust(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "long-rust").await;
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    joins_during_a_long_run(&scenario, &mut rust, &mut java).await;
}

pub(crate) async fn misfires_are_compensated_by_both_sides(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "misfire").await;
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let settle = job("settle", "0/4 * * * * ?", 2);
    // A run is longer than the interval.
    let [java_id, rust_id] =
        scenario.join_in_turn(&settle, [&mut java, &mut rust], ms(4_500)).await;

    // Right after the run that caused the misfire: sooner than the next fire.
    let compensates = |executions: &[Execution], instance: &str| {
        let of: Vec<&Execution> =
            executions.iter().filter(|execution| execution.instance == instance).collect();
        let mut pairs = of.windows(2).map(|pair| (pair[0].end.as_ref(), pair[1]));
        pairs.any(|(end, next)| {
            let is_right_after = end.is_some_and(|(_, at)| next.started_at - at < 400);
            is_right_after && next.reason.as_deref().is_none_or(|reason| reason == "Misfire")
        })
    };
    let find = |executions: &[Execution]| {
        (compensates(executions, &java_id) && compensates(executions, &rust_id))
            .then(|| executions.to_vec())
    };
    let executions = scenario.events.until("both compensate", "settle", find).await;
    assert!(overlaps(&executions).is_empty(), "{executions:?}");
}

pub(crate) async fn once_listener_is_called_once_per_fire_across_both_sides(
    registry: TestRegistry,
) {
    const INTERVAL_MS: i64 = 5_000;
    let scenario = Scenario::new(&registry, "once").await;
    let (mut java, mut rust) = (scenario.java("java").await, scenario.rust(1).await);
    let settle = job("settle", "0/5 * * * * ?", 4).java_listeners(["ONCE"]);
    let rust_id = rust.join(&settle, ms(200)).await;
    let java_id = java.join(&settle, ms(200)).await;
    let owners = scenario.wait_until_assigned(&settle, &[&java_id, &rust_id]).await;
    scenario.wait_until_owners_run(&settle, &owners).await;

    // The events of each fire.
    let events_by_fire = || {
        let mut fires: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for event in scenario.events.all() {
            let (at, kind) = (event.fields["at"].as_i64().unwrap(), &event.fields["event"]);
            fires.entry(at / INTERVAL_MS).or_default().push(kind.as_str().unwrap().to_owned());
        }
        fires
    };
    let counts = |events: &[String]| {
        let count = |kind: &str| events.iter().filter(|event| *event == kind).count();
        [count("before"), count("started"), count("ended"), count("after")]
    };
    let current = *events_by_fire().keys().last().unwrap();
    // In a row: an instance that missed the others and hangs would never complete a fire again.
    scenario
        .until("three complete fires in a row", async || {
            let fires = events_by_fire();
            let later: Vec<_> =
                fires.range(current + 1..).map(|(_, events)| counts(events)).collect();
            later.windows(3).any(|three| three == [[1, 4, 4, 1]; 3])
        })
        .await;
    for (fire, events) in events_by_fire().range(current + 1..) {
        let [before, started, ended, after] = counts(events);
        assert!(before <= 1 && after <= 1, "{fire}: {events:?}");
        if [before, started, ended, after] == [1, 4, 4, 1] {
            assert_eq!(
                (&*events[0], &*events[events.len() - 1]),
                ("before", "after"),
                "{events:?}"
            );
        }
    }
}

/// Lets each side run the job alone. Returns the instance ids of Java and Rust.
async fn run_on_each_side(
    scenario: &Scenario,
    kind: &str,
    job: &Job,
    count: impl Fn() -> usize,
) -> [String; 2] {
    let mut ids = Vec::new();
    for mut peer in [scenario.java("java").await, scenario.rust(1).await] {
        let (before, id) = (count(), peer.join_as(kind, job, ms(0)).await);
        scenario.admin().trigger(&job.name, TriggerRequest::default()).await.unwrap();
        scenario.until("the job has run", async || count() > before).await;
        scenario.wait_until_quiescent(job).await;
        peer.leave(job).await;
        ids.push(id);
    }
    ids.try_into().unwrap()
}

/// A job whose parameters contain characters that are special in JSON, shells and headers.
fn job_with_special_characters(name: &str) -> Job {
    idle(name, 1).items("0=a<b>&'c' \"d\"").unwrap().parameter("p=1&q=\\")
}

pub(crate) async fn script_gets_the_same_arguments_to_the_byte(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "script").await;
    let folder = tempfile::tempdir().unwrap();
    let (script, output) = (folder.path().join("script.sh"), folder.path().join("output"));
    // Written in one piece at the end, so that the test never reads half of it.
    let body = "output=$1\nshift\nall=$(printf '[%s]\\n' \"$@\")\nprintf '%s\\0' \"$all\" >> \"$output\"\n";
    fs::write(&script, body).unwrap();
    let line = format!("sh {} {} 'c d' \"e f\" plain", script.display(), output.display());
    let job = job_with_special_characters("script").prop("script.command.line", line).unwrap();
    let recorded = || -> Vec<String> {
        let text = fs::read_to_string(&output).unwrap_or_default();
        text.split_terminator('\0').map(ToOwned::to_owned).collect()
    };

    let [java, rust] = run_on_each_side(&scenario, "SCRIPT", &job, || recorded().len()).await;

    let recorded = recorded();
    assert_eq!(recorded[0].replace(&java, "ID"), recorded[1].replace(&rust, "ID"));
    assert!(recorded[0].contains("[plain]\n[{\"jobName\":\"script\""), "{}", recorded[0]);
}

pub(crate) async fn http_request_is_the_same_to_the_byte(registry: TestRegistry) {
    let scenario = Scenario::new(&registry, "http").await;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let job = job_with_special_characters("http")
        .prop("http.uri", format!("http://{}/settle?day=1", server.local_addr().unwrap()))
        .unwrap()
        .prop("http.method", "POST")
        .unwrap()
        .prop("http.data", "day=1&name=上海")
        .unwrap()
        .prop("http.content.type", "application/x-www-form-urlencoded")
        .unwrap();
    let requests = std::sync::Mutex::new(Vec::new());

    let serve = async {
        loop {
            let request = answer(&server).await;
            requests.lock().unwrap().push(request);
        }
    };
    let run = run_on_each_side(&scenario, "HTTP", &job, || requests.lock().unwrap().len());
    let [java, rust] = tokio::select! {
        () = serve => unreachable!(),
        ids = run => ids,
    };

    let requests = requests.into_inner().unwrap();
    let (java_request, rust_request) = (&requests[0], &requests[1]);
    assert_eq!(java_request.line, rust_request.line);
    assert_eq!(java_request.body, rust_request.body);
    assert_eq!(java_request.headers["content-type"], rust_request.headers["content-type"]);
    let java_context = &java_request.headers["shardingcontext"];
    let rust_context = &rust_request.headers["shardingcontext"];
    assert_eq!(java_context.replace(&java, "ID"), rust_context.replace(&rust, "ID"));
    assert!(java_context.starts_with("{\"jobName\":\"http\""), "{java_context}");
}

struct Request {
    line: String,
    /// By their names in lower case, since header names are case-insensitive.
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

async fn answer(server: &TcpListener) -> Request {
    let (mut stream, _) = server.accept().await.unwrap();
    let mut bytes = Vec::new();
    let read = async {
        loop {
            assert_ne!(
                stream.read_buf(&mut bytes).await.unwrap(),
                0,
                "the connection closed before the end of the request"
            );
            let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
                continue;
            };
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let (line, rest) = head.split_once("\r\n").unwrap();
            let headers: BTreeMap<String, String> = rest
                .split("\r\n")
                .filter_map(|header| header.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            let body = bytes[end + 4..].to_vec();
            if body.len() >= headers["content-length"].parse().unwrap() {
                return Request { line: line.to_owned(), headers, body };
            }
        }
    };
    let request = tokio::time::timeout(TIMEOUT, read).await.expect("a request in time");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        .await
        .unwrap();
    request
}
