//! Golden tests of the legacy API and of the files that the console stores; see `../golden/README.md`.

use std::{collections::BTreeSet, fmt::Write, fs, sync::Arc};

use elasticjob::{
    Job, Shard,
    history::{AttemptEnded, AttemptStarted, Event, HistoryUrl, Sink, Status, StatusState, Store},
    job::{FencingToken, Fire, Outcome},
    node::RunningNode,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::golden;

use crate::{
    console::{BrowserSession, Console},
    http::{Request, Response, request},
    scene::{ADDRESS, Scene, settle},
};

const R: &str = "/api/v1/r/shop";

/// A registry with a running job, a history, and a console that allows adding both.
struct TestConsole {
    scene: Scene,
    console: Console,
    node: RunningNode,
    _folder: TempDir,
}

impl TestConsole {
    async fn new() -> Self {
        let scene = Scene::with("").await;
        let node = scene.node(settle().cron("0 0 2 1 1 ?").unwrap()).await;
        let folder = TempDir::new().unwrap();
        let url = HistoryUrl::sqlite(folder.path().join("history.db"));
        Store::open(&url).await.unwrap().store(&events()).await.unwrap();
        let file = format!(
            "[addRegistries]\nenabled = true\nhosts = ['127.0.0.1']\n\
             [addHistories]\nenabled = true\nhosts = ['127.0.0.1']\n\
             [histories]\nshop = '{url}'\n"
        );
        let console = Console::with(&[&format!("shop={}", scene.url)], &file);
        let admin = console.admin();
        admin.wait_until(&format!("{R}/jobs"), |jobs| jobs["items"][0]["status"] == "OK");
        Self { scene, console, node, _folder: folder }
    }
}

/// A shard that succeeded, a shard that failed, and the status trace of both.
fn events() -> Vec<Event> {
    let job = Job::named("settle").unwrap().shards(2);
    let due: Timestamp = "2026-03-18T10:00:00Z".parse().unwrap();
    let fire = Fire::scheduled(job.name.clone(), due);
    let task = format!("settle@-@0,1@-@READY@-@{ADDRESS}@-@4711-9f86d081");
    let mut events = Vec::new();
    let results = [(0, Outcome::Succeeded, None), (1, Outcome::Failed, Some("order 4711"))];
    for (item, outcome, message) in results {
        let shard = Shard::of(&job, &fire, task.parse().unwrap(), item, FencingToken::new(9));
        let at = due + SignedDuration::from_secs(i64::from(item));
        let started = Arc::new(AttemptStarted::of(&shard, "host-7".into(), at));
        let at = at + SignedDuration::from_millis(50);
        events.push(Event::Ended(AttemptEnded {
            started,
            at,
            outcome,
            message: message.map(ToOwned::to_owned),
        }));
    }
    let status = Status {
        run: fire.run,
        task: task.parse().unwrap(),
        state: StatusState::Error,
        message: "{1=order 4711}".to_owned(),
        at: due,
    };
    events.push(Event::Status(status));
    events
}

/// Requests with their responses.
struct Transcript(String);

impl Transcript {
    fn add(&mut self, method: &str, path: &str, body: Option<&Value>, response: &Response) {
        let body = body.map(|body| format!(" {}", masked(body.clone()))).unwrap_or_default();
        let _ = writeln!(self.0, "{method} {path}{body}");
        let text = if response.text.is_empty() {
            String::new()
        } else {
            format!(" {:#}", masked(response.json()))
        };
        let _ = writeln!(self.0, "{}{text}\n", response.status);
    }
}

/// Masks secrets, sentences, and values that differ from run to run.
fn masked(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let entries = entries.into_iter().map(|(key, value)| {
                let value = match (&*key, &value) {
                    ("errorMsg", Value::String(_)) => "a sentence".into(),
                    ("accessToken", Value::String(_)) => "a token".into(),
                    ("password", Value::String(text)) if !["", "***"].contains(&&**text) => {
                        "a password".into()
                    }
                    ("instanceId", Value::String(_)) => "PROCESS".into(),
                    ("zkAddressList", Value::String(_)) => "127.0.0.1:PORT".into(),
                    ("url", Value::String(url)) if url.starts_with("sqlite:") => {
                        "sqlite:FILE".into()
                    }
                    _ => masked(value),
                };
                (key, value)
            });
            Value::Object(entries.collect())
        }
        Value::Array(values) => values.into_iter().map(masked).collect(),
        Value::String(text) => masked_text(&text).into(),
        other => other,
    }
}

/// Masks the end of instance ids, and removes latch nodes, which come and go.
fn masked_text(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("latch"));
    let lines = lines.map(|line| {
        let mut parts = line.split("@-@");
        let mut masked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let number = part.find(|c: char| !c.is_ascii_hexdigit() && c != '-');
            let is_process = part.starts_with(|c: char| c.is_ascii_digit()) && part.contains('-');
            let process = if is_process { number.unwrap_or(part.len()) } else { 0 };
            let mask = if is_process { "PROCESS" } else { "" };
            let _ = write!(masked, "@-@{mask}{}", &part[process..]);
        }
        masked
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A client of 3.x, which carries an access token.
struct Client<'c> {
    console: &'c Console,
    token: String,
    transcript: Transcript,
}

impl<'c> Client<'c> {
    fn log_in(console: &'c Console) -> Self {
        let mut transcript = Transcript("# With an access token, as in 3.x\n\n".to_owned());
        let mut login = |password: &str| {
            let body = json!({ "username": "admin", "password": password });
            let response = console.send(&request("POST", "/api/login").json(&body));
            transcript.add("POST", "/api/login", Some(&body), &response);
            response.json()["model"]["accessToken"].as_str().unwrap_or_default().to_owned()
        };
        login("wrong");
        let token = login(&console.password);
        Self { console, token, transcript }
    }

    fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> Response {
        let sent = request(method, path).header("access-token", &self.token);
        let response = self.console.send(&body.into_iter().fold(sent, Request::json));
        self.transcript.add(method, path, body, &response);
        response
    }

    fn get(&mut self, path: &str) {
        self.send("GET", path, None);
    }

    fn post(&mut self, path: &str) {
        self.send("POST", path, None);
    }

    fn delete(&mut self, path: &str) {
        self.send("DELETE", path, None);
    }

    fn send_json(&mut self, method: &str, path: &str, body: &Value) {
        self.send(method, path, Some(body));
    }
}

/// Every property of a configuration, as Java's console sends it.
fn configuration() -> Value {
    json!({
        "jobName": "settle",
        "cron": "0 0 3 1 1 ?",
        "timeZone": "GMT+8:00",
        "shardingTotalCount": 3,
        "shardingItemParameters": "0=a,1=b",
        "jobParameter": "all",
        "monitorExecution": true,
        "failover": true,
        "misfire": false,
        "maxTimeDiffSeconds": 30,
        "reconcileIntervalMinutes": 5,
        "jobShardingStrategyType": "ODEVITY",
        "jobExecutorThreadPoolSizeProviderType": "SINGLE_THREAD",
        "jobErrorHandlerType": "LOG",
        "jobListenerTypes": ["audit"],
        "jobExtraConfigurations": [],
        "description": "edited",
        "props": { "team": "payments" },
        "disabled": false,
        "overwrite": true,
        "label": "payments",
        "staticSharding": true,
    })
}

/// Reads come before all changes, because the console sees a change only a moment later.
fn reads(client: &mut Client<'_>) {
    for path in ["count", "getAllJobsBriefInfo", "settle/sharding", "missing/sharding"] {
        client.get(&format!("/api/jobs/{path}"));
    }
    client.get("/api/jobs");
    for path in ["/count", "", "/getAllServersBriefInfo", &format!("/{ADDRESS}/jobs")] {
        client.get(&format!("/api/servers{path}"));
    }
    client.post(&format!("/api/servers/{ADDRESS}/9888/jobs/settle/dump"));
}

fn changes(client: &mut Client<'_>) {
    client.send_json("PUT", "/api/jobs/config", &configuration());
    client.send_json("PUT", "/api/jobs/config", &json!({ "cron": "0 0 3 1 1 ?" }));
    client.get("/api/jobs/config/settle");
    let elastic = json!({ "jobName": "settle", "staticSharding": false });
    client.send_json("PUT", "/api/jobs/config", &elastic);
    client.post("/api/jobs/settle/trigger");
    client.get("/api/jobs/settle/trigger");
    for path in ["disable", "enable", "sharding/1/disable", "sharding/1/enable"] {
        client.post(&format!("/api/jobs/settle/{path}"));
    }
    for path in ["disable", "sharding/1/disable"] {
        client.delete(&format!("/api/jobs/settle/{path}"));
    }
    client.delete("/api/jobs/config/settle");
    for path in ["disable", "enable", "jobs/settle/disable", "jobs/settle/enable"] {
        client.post(&format!("/api/servers/{ADDRESS}/{path}"));
    }
    for path in ["disable", "jobs/settle/disable", "jobs/settle"] {
        client.delete(&format!("/api/servers/{ADDRESS}/{path}"));
    }
}

fn registries(client: &mut Client<'_>) {
    let center = json!({ "name": "other", "zkAddressList": "127.0.0.1:1", "namespace": "other", "digest": "ann:secret" });
    client.get("/api/registry-center/load");
    client.get("/api/registry-center/activated");
    client.send_json("POST", "/api/registry-center/add", &center);
    client.send_json("POST", "/api/registry-center/add", &center);
    client.get("/api/registry-center/load");
    client.send_json("POST", "/api/registry-center/connect", &json!({ "name": "shop" }));
}

fn history(client: &mut Client<'_>) {
    let execution = "/api/event-trace/execution";
    for filter in [
        json!({}),
        json!({ "pageSize": 1, "pageNumber": 2 }),
        json!({ "jobName": "missing" }),
        json!({ "ip": "10.9.9.9" }),
        json!({ "isSuccess": false }),
        json!({ "startTimeFrom": "2099-01-01T00:00:00Z" }),
        json!({ "startTimeTo": 915_148_800_000_i64 }),
    ] {
        client.send_json("POST", execution, &filter);
    }
    client.get("/api/event-trace/execution/jobNames/se");
    client.get("/api/event-trace/execution/ip/10.");
    let status = "/api/event-trace/status";
    for filter in [
        json!({}),
        json!({ "pageSize": 1, "pageNumber": 2 }),
        json!({ "jobName": "missing" }),
        json!({ "state": "TASK_STAGING" }),
        json!({ "source": "CLOUD_SCHEDULER" }),
        json!({ "executionType": "FAILOVER" }),
        json!({ "creationTimeFrom": "2099-01-01T00:00:00Z" }),
        json!({ "creationTimeTo": 915_148_800_000_i64 }),
    ] {
        client.send_json("POST", status, &filter);
    }
    client.get("/api/event-trace/status/jobNames/se");
    let source = json!({ "name": "other", "driver": "org.postgresql.Driver", "url": "jdbc:postgresql://127.0.0.1:1/jobs", "username": "ann", "password": "secret" });
    for path in ["drivers", "load", "activated"] {
        client.get(&format!("/api/data-source/{path}"));
    }
    for path in ["connectTest", "add"] {
        client.send_json("POST", &format!("/api/data-source/{path}"), &source);
    }
    client.get("/api/data-source/load");
    client.send_json("POST", "/api/data-source/connect", &json!({ "name": "shop" }));
    client.send_json("DELETE", "/api/data-source", &json!({ "name": "other" }));
    client.send_json("DELETE", "/api/registry-center", &json!({ "name": "other" }));
}

/// Requests without an access token, as from 2.x clients.
fn send_without_token(admin: &BrowserSession<'_>, transcript: &mut Transcript) {
    for (method, path) in [
        ("GET", "/api/jobs/count"),
        ("GET", "/api/jobs"),
        ("GET", "/api/jobs/settle/sharding"),
        ("GET", "/api/servers/count"),
        ("GET", "/api/servers"),
        ("POST", "/api/jobs/settle/disable"),
        ("DELETE", "/api/jobs/settle/disable"),
    ] {
        let response = admin.send(request(method, path));
        transcript.add(method, path, None, &response);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_get_responses_as_from_java() {
    let test = TestConsole::new().await;
    let admin = test.console.admin();
    let mut client = Client::log_in(&test.console);
    registries(&mut client);
    history(&mut client);
    reads(&mut client);
    client.transcript.0.push_str("# Without an access token, as in 2.x\n\n");
    send_without_token(&admin, &mut client.transcript);
    client.transcript.0.push_str("# With an access token, as in 3.x\n\n");
    changes(&mut client);

    // Last, because these stop the instance.
    client.post(&format!("/api/servers/{ADDRESS}/jobs/settle/shutdown"));
    test.node.stop().await;
    let _node = test.scene.node(settle()).await;
    client.post(&format!("/api/servers/{ADDRESS}/shutdown"));
    client.post("/api/jobs/settle/shutdown");
    admin.wait_until(&format!("{R}/jobs"), |jobs| jobs["items"][0]["status"] == "CRASHED");
    client.get("/api/jobs");
    client.delete(&format!("/api/servers/{ADDRESS}"));
    client.delete("/api/jobs/config/settle");

    golden!("legacy-api.txt", client.transcript.0);
}

/// Performs every audited action, by the legacy API or by ours.
fn perform_audited_actions(test: &TestConsole, admin: &BrowserSession<'_>) {
    let send = |method: &str, path: &str, body: Value| {
        admin.send(request(method, &format!("/api/v1{path}")).json(&body))
    };
    let registry_path = "/r/shop";
    for path in ["shards/1/disable", "shards/1/enable", "trigger", "cancel", "disable", "enable"] {
        send("POST", &format!("{registry_path}/jobs/settle/{path}"), json!({}));
    }
    let unknown = "46861c8b-90ef-4172-9305-d3e7862768d2";
    send("POST", &format!("{registry_path}/jobs/settle/triggers/{unknown}/withdraw"), json!({}));
    for action in ["disable", "enable"] {
        send("POST", &format!("{registry_path}/servers/{ADDRESS}/{action}"), json!({}));
    }
    admin.get(&format!("{R}/doctor"));
    let config = request("PATCH", &format!("{R}/jobs/settle/config"));
    admin.send(config.json(&json!({ "description": "edited" })).header("if-match", "*"));
    let (registry, history) = ("zookeeper://127.0.0.1:1/other", "postgres://127.0.0.1:1/jobs");
    send("POST", "/registries/test", json!({ "url": registry }));
    send("POST", "/registries", json!({ "name": "other", "url": registry }));
    send("POST", "/histories/test", json!({ "url": history }));
    send("POST", "/histories", json!({ "registry": "other", "url": history }));
    send("DELETE", "/histories/other", json!({}));
    send("DELETE", "/registries/other", json!({}));
    let vera = test.console.add_user("vera", &json!({ "shop": "viewer" }));
    assert_eq!(vera.post(&format!("{R}/jobs/settle/disable")).status, 403);
    let change = json!({ "oldPassword": "correct horse", "newPassword": "battery staple" });
    vera.send(request("POST", "/api/v1/password").json(&change));
    let token = send("POST", "/tokens", json!({ "name": "ci", "role": "operator" })).json();
    let bearer = format!("Bearer {}", token["token"].as_str().unwrap());
    let trigger = request("POST", "/api/jobs/settle/trigger");
    test.console.send(&trigger.clone().header("authorization", &bearer));
    // "vera:battery staple"
    let basic = "Basic dmVyYTpiYXR0ZXJ5IHN0YXBsZQ==";
    test.console.send(&trigger.header("authorization", basic));
    Client::log_in(&test.console).post("/api/jobs/settle/enable");
    send("DELETE", &format!("/tokens/{}", token["id"].as_str().unwrap()), json!({}));
    send("DELETE", "/sessions/vera", json!({}));
    send("DELETE", "/accounts/vera", json!({}));
    let instance = admin.data(&format!("{R}/jobs/settle/shards"))["items"][0]["instanceId"].clone();
    let instance = instance.as_str().unwrap();
    send("POST", &format!("{registry_path}/instances/{instance}/shutdown"), json!({}));
    send("POST", &format!("{registry_path}/servers/{ADDRESS}/shutdown"), json!({}));
    send("POST", &format!("{registry_path}/jobs/settle/shutdown"), json!({}));
    send("DELETE", &format!("{registry_path}/servers/{ADDRESS}"), json!({}));
    send("DELETE", &format!("{registry_path}/jobs/settle"), json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn console_files_and_audit_actions_keep_their_names() {
    let test = TestConsole::new().await;
    let admin = test.console.admin();
    perform_audited_actions(&test, &admin);

    let data = test.console.folder.path().join("data");
    let files = fs::read_dir(&data).unwrap();
    let files: BTreeSet<String> =
        files.map(|file| file.unwrap().file_name().into_string().unwrap() + "\n").collect();
    golden!("console-files.txt", files.into_iter().collect::<String>());

    let audit = fs::read_to_string(data.join("audit.jsonl")).unwrap();
    let entries: Vec<Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words = |key: &str| -> BTreeSet<String> {
        entries.iter().map(|entry| format!("  {}\n", entry[key].as_str().unwrap())).collect()
    };
    let (actions, methods): (String, String) =
        (words("action").into_iter().collect(), words("via").into_iter().collect());
    golden!("audit-actions.txt", format!("action\n{actions}via\n{methods}"));
}
