//! Run history: runs, output, figures, exports.

use std::{
    io::{BufRead, BufReader},
    sync::Arc,
};

use elasticjob::{
    Job, Node, Shard,
    history::{
        AttemptEnded, AttemptId, AttemptStarted, Event, HistoryUrl, Line, OutputPrinted, Recorder,
        Retention, Sink, Store,
    },
    job::{FencingToken, Fire, Outcome},
    runtime::{Clock, SystemClock},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{MariaDb, Postgres, free_port};

use crate::{
    console::{BrowserSession, Console},
    http::request,
    scene::{Scene, settle},
};

/// Nothing listens there: history does not need a registry.
const UNREACHABLE_REGISTRY: &str = "zookeeper://127.0.0.1:1/shop?connectionTimeout=1s&maxRetries=0";

/// A history store and a console that shows it.
struct HistoryFixture {
    store: Store,
    url: HistoryUrl,
    console: Console,
    _folder: TempDir,
}

impl HistoryFixture {
    async fn new() -> Self {
        Self::of(UNREACHABLE_REGISTRY).await
    }

    async fn of(registry: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let url = HistoryUrl::sqlite(folder.path().join("history.db"));
        let store = Store::open(&url).await.unwrap();
        let file = format!("[histories]\nshop = \"{url}\"\n");
        let console = Console::with(&[&format!("shop={registry}")], &file);
        Self { store, url, console, _folder: folder }
    }

    async fn keep(&self, events: &[Event]) {
        self.store.store(events).await.unwrap();
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(SystemClock.now().as_second()).unwrap()
}

/// A shard of a run that was due this many seconds ago.
fn shard(job: &str, seconds_ago: i64, item: u32, now: Timestamp) -> Shard {
    let job = Job::named(job).unwrap().shards(2);
    let fire = Fire::scheduled(job.name.clone(), now - SignedDuration::from_secs(seconds_ago));
    let task = format!("{}@-@{item}@-@READY@-@10.0.0.7@-@4711-00000001", job.name);
    Shard::of(&job, &fire, task.parse().unwrap(), item, FencingToken::new(9))
}

fn started(shard: &Shard, late: i64) -> Arc<AttemptStarted> {
    let at = shard.due_at + SignedDuration::from_millis(late);
    Arc::new(AttemptStarted::of(shard, "machine".into(), at))
}

fn ended(shard: &Shard, late: i64, (outcome, message): (Outcome, Option<&str>)) -> Event {
    let started = started(shard, late);
    Event::Ended(AttemptEnded {
        at: started.at + SignedDuration::from_millis(40),
        started,
        outcome,
        message: message.map(ToOwned::to_owned),
    })
}

fn printed(shard: &Shard, part: u32, text: &str) -> Event {
    let lines = vec![Line { at: shard.due_at, stream: "stdout", text: text.to_owned() }];
    let id = AttemptId::of(shard);
    Event::Printed(OutputPrinted { id, run: shard.run.clone(), item: shard.item, part, lines })
}

fn sample_events(now: Timestamp) -> Vec<Event> {
    let (good, bad, other) = (120, 60, 30);
    vec![
        ended(&shard("settle", good, 0, now), 3, (Outcome::Succeeded, None)),
        ended(&shard("settle", good, 1, now), 3, (Outcome::Succeeded, None)),
        ended(&shard("settle", bad, 0, now), 7_000, (Outcome::Succeeded, None)),
        ended(&shard("settle", bad, 1, now), 7_000, (Outcome::Failed, Some("=no order 17\nat 3"))),
        printed(&shard("settle", bad, 1, now), 0, "looking"),
        ended(&shard("report", other, 0, now), 3, (Outcome::Succeeded, None)),
    ]
}

fn path(run: &str) -> String {
    format!("/api/v1/r/shop/runs/{}", run.replace('/', "~"))
}

fn names(rows: &Value, key: &str) -> Vec<String> {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[key].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_filtered_and_shown_with_shards() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    fixture.keep(&sample_events(now)).await;
    let admin = fixture.console.admin();
    let list = |query: &str| admin.data(&format!("/api/v1/r/shop/runs?{query}"));

    assert_eq!(names(&list("")["items"], "jobName"), ["report", "settle", "settle"]);
    let bad = list("job=settle&state=failed&source=schedule");
    assert_eq!(bad["items"].as_array().unwrap().len(), 1, "{bad:#}");
    let bad = bad["items"][0]["runId"].as_str().unwrap().to_owned();
    assert_eq!(list("instance=10.0.0.7@-@4711-00000001&job=report")["items"][0]["shards"], 1);
    let since = now - SignedDuration::from_secs(40);
    assert_eq!(names(&list(&format!("from={since}"))["items"], "jobName"), ["report"]);

    let first = list("limit=2");
    let rest = list(&format!("limit=2&after={}", first["next"].as_str().unwrap()));
    assert_eq!((rest["items"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));

    let shown = admin.data(&path(&bad));
    assert_eq!((&shown["state"], &shown["latenessMs"]), (&json!("failed"), &json!(7000)));
    assert_eq!(shown["executions"][1]["failureCause"], "=no order 17\nat 3");
    assert_eq!(
        shown["executions"][1]["token"], "9",
        "sent as text, so that JavaScript reads it exactly"
    );
    assert_eq!(names(&shown["items"], "state"), ["done", "failed"]);
    assert_eq!(
        admin.data(&path(&bad.replace('/', "%2F"))),
        shown,
        "%2F works where proxies pass it"
    );

    let matrix = admin.data("/api/v1/r/shop/jobs/settle/matrix?limit=1");
    assert_eq!(matrix["runs"][0]["run"]["runId"], bad);
    assert_eq!(names(&matrix["runs"][0]["items"], "state"), ["done", "failed"]);
    let next = matrix["next"].as_str().unwrap();
    let matrix = admin.data(&format!("/api/v1/r/shop/jobs/settle/matrix?after={next}"));
    assert_eq!(matrix["runs"].as_array().unwrap().len(), 1);

    for (path, status) in [
        ("/api/v1/r/shop/runs/settle~1", 404),
        ("/api/v1/r/shop/runs?state=odd", 422),
        ("/api/v1/r/shop/runs?after=odd", 422),
        ("/api/v1/r/shop/runs?limit=0", 422),
        ("/api/v1/r/shop/runs?from=yesterday", 422),
        ("/api/v1/r/shop/runs?odd=1", 400),
        ("/api/v1/r/never/runs", 404),
    ] {
        assert_eq!(admin.get(path).problem().0, status, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_of_several_jobs_include_their_last_runs() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    fixture.keep(&sample_events(now)).await;
    let admin = fixture.console.admin();

    let figures = admin.data("/api/v1/r/shop/figures?job=settle&job=never&job=report&last=1");
    assert_eq!(names(&figures, "jobName"), ["settle", "never", "report"]);
    let settle = &figures[0];
    assert_eq!(
        (&settle["figures"]["runs"], &settle["figures"]["successPermille"]),
        (&json!(2), &json!(500))
    );
    assert_eq!(settle["figures"]["latenessMs"]["p99"], 7000);
    assert_eq!(names(&settle["lastRuns"], "state"), ["failed"]);
    assert_eq!((&figures[1]["figures"], &figures[1]["lastRuns"]), (&Value::Null, &json!([])));
    let one = admin.data("/api/v1/r/shop/jobs/settle/figures");
    assert_eq!(names(&one["lastRuns"], "state"), ["failed", "done"]);

    let buckets = admin.data("/api/v1/r/shop/buckets?job=settle&bucketMs=3600000");
    let runs = buckets["items"].as_array().unwrap().iter();
    assert_eq!(runs.map(|bucket| bucket["runs"].as_i64().unwrap()).sum::<i64>(), 2);
    let latest = buckets["items"].as_array().unwrap().iter().map(|bucket| &bucket["latestMs"]);
    assert!(latest.clone().any(|latest| *latest == 7000), "{buckets:#}");
    let failures = admin.data("/api/v1/r/shop/failures");
    assert_eq!((&failures[0]["count"], &failures[0]["jobName"]), (&json!(1), &json!("settle")));
    assert_eq!(admin.data("/api/v1/r/shop/missed"), json!([]));

    for path in ["figures", "figures?job=a&last=0", "buckets?bucketMs=1"] {
        assert_eq!(admin.get(&format!("/api/v1/r/shop/{path}")).problem().0, 422, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_and_traces_are_paged_and_exported() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    fixture.keep(&sample_events(now)).await;
    let admin = fixture.console.admin();

    let failed = admin.data("/api/v1/r/shop/executions?success=false&ip=10.0.0.7&job=settle");
    assert_eq!(failed["items"].as_array().unwrap().len(), 1);
    let csv = admin.get("/api/v1/r/shop/executions.csv?job=settle");
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(csv.header("content-disposition").unwrap().contains("executions.csv"));
    assert!(csv.text.contains("id,jobName,runId,"), "{}", csv.text);
    assert!(csv.text.contains("\"'=no order 17\nat 3\""), "no formula: {}", csv.text);
    let accepted = admin.send(request("GET", "/api/v1/r/shop/traces").header("accept", "text/csv"));
    assert!(accepted.text.contains("id,jobName,runId,originalTaskId"), "{accepted:?}");
    let all = admin.get("/api/v1/r/shop/executions.json").text;
    assert_eq!(all.matches("\"jobName\"").count(), 5, "{all}");
    assert_eq!(admin.data("/api/v1/r/shop/traces")["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_run_is_streamed_live() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    let shard = shard("settle", 5, 0, now);
    fixture.keep(&[Event::Started(started(&shard, 3)), printed(&shard, 0, "first")]).await;
    let admin = fixture.console.admin();
    let output = format!("{}/output", path(&shard.run.to_string()));

    let first = admin.data(&output);
    assert_eq!((&first["lines"][0]["text"], &first["isRunning"]), (&json!("first"), &json!(true)));
    let position = first["position"].as_str().unwrap();
    assert_eq!(admin.data(&format!("{output}?after={position}"))["lines"], json!([]));
    assert_eq!(admin.data(&format!("{output}?shard=1"))["lines"], json!([]));

    let mut events = events(&fixture.console, &admin, &format!("{output}/events?after={position}"));
    fixture.keep(&[printed(&shard, 1, "second")]).await;
    assert!(next(&mut events, "lines").contains("second"));
    fixture.keep(&[printed(&shard, 2, "last"), ended(&shard, 3, (Outcome::Succeeded, None))]).await;
    assert!(next(&mut events, "lines").contains("last"));
    next(&mut events, "end");
    assert_eq!(admin.get("/api/v1/r/shop/runs/settle~1/output").problem().0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_stream_sends_no_line_once_its_session_has_ended() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    let shard = shard("settle", 5, 0, now);
    fixture.keep(&[Event::Started(started(&shard, 3)), printed(&shard, 0, "first")]).await;
    let viewer = fixture.console.add_user("ann", &json!({ "shop": "viewer" }));
    let output = format!("{}/output/events", path(&shard.run.to_string()));
    let mut events = events(&fixture.console, &viewer, &output);
    assert!(next(&mut events, "lines").contains("first"));

    assert_eq!(viewer.post("/api/v1/logout").status, 204);
    fixture.keep(&[printed(&shard, 1, "second")]).await;

    assert_eq!(events.find(|line| line.contains("second")), None);
}

fn events(
    console: &Console,
    user: &BrowserSession<'_>,
    path: &str,
) -> impl Iterator<Item = String> + use<> {
    let stream = request("GET", path).header("cookie", &user.cookie).open(&console.address);
    BufReader::new(stream).lines().map_while(Result::ok)
}

/// The data line of the next event of this name.
fn next(lines: &mut impl Iterator<Item = String>, name: &str) -> String {
    lines.find(|line| *line == format!("event: {name}")).expect(name);
    lines.next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn new_and_changed_runs_are_streamed_and_counted() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let (fixture, now) = (HistoryFixture::of(&scene.url).await, now());
    fixture.keep(&sample_events(now)).await;
    let admin = fixture.console.admin();

    let overview = admin.data("/api/v1/r/shop/overview");
    let counts = ["runs", "failed", "late", "missed"].map(|key| overview["lastHours"][key].clone());
    assert_eq!(counts, [3, 1, 1, 0].map(Value::from), "{overview:#}");

    let mut events = events(&fixture.console, &admin, "/api/v1/r/shop/events?job=settle");
    next(&mut events, "connection");
    let deadline = SystemClock.monotonic() + crate::process::PATIENCE;
    // Runs that existed when polling began are not reported, so new ones are recorded until one is.
    let mut seconds_ago = 20;
    let event = std::thread::scope(|scope| {
        let event = scope.spawn(|| next(&mut events, "run"));
        while !event.is_finished() {
            assert!(SystemClock.monotonic() < deadline, "no event arrives");
            let shard = shard("settle", seconds_ago, 0, now);
            tokio::task::block_in_place(|| {
                let handle = tokio::runtime::Handle::current();
                handle.block_on(fixture.keep(&[Event::Started(started(&shard, 3))]));
            });
            seconds_ago += 1;
            std::thread::park_timeout(std::time::Duration::from_millis(100));
        }
        event.join().unwrap()
    });
    assert!(event.contains("\"state\":\"running\"") && event.contains("settle/"), "{event}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_or_unreachable_history_affects_only_its_registry() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let unreachable = format!("postgres://jane:hunter2@127.0.0.1:{}/history", free_port());
    let file = format!("[histories]\ndown = \"{unreachable}\"\n");
    let registries = [format!("shop={}", scene.url), format!("down={}", scene.url)];
    let console = Console::with(&[&registries[0], &registries[1]], &file);
    let admin = console.admin();

    for path in ["runs", "runs/x", "runs/x/output", "figures?job=a", "buckets", "executions.csv"] {
        let response = admin.get(&format!("/api/v1/r/shop/{path}"));
        assert_eq!(response.problem(), (404, "noHistory".to_owned()), "{path}");
        assert!(response.json()["hint"].is_string());
    }
    assert_eq!(admin.data("/api/v1/r/shop/overview")["lastHours"], Value::Null);
    let down = admin.get("/api/v1/r/down/runs");
    assert_eq!(down.problem(), (503, "unreachable".to_owned()));
    assert!(!down.text.contains("hunter2"), "{}", down.text);
    let overview = admin.data("/api/v1/r/down/overview");
    assert_eq!((&overview["jobCount"], &overview["lastHours"]), (&json!(1), &Value::Null));
    assert!(overview["historyProblem"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real PostgreSQL: make test"]
async fn admin_adds_an_allowed_postgresql_and_its_password_stays_hidden() {
    let server = Postgres::start();
    let secret = server.url().replace("://test@", "://test:hunter2@");
    added_and_removed(&server.url(), &secret).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real MariaDB: make test"]
async fn admin_adds_an_allowed_mariadb() {
    let server = MariaDb::start();
    added_and_removed(&server.url(), &server.url()).await;
}

async fn added_and_removed(plain: &str, secret: &str) {
    let file = "[addHistories]\nenabled = true\nhosts = ['127.0.0.1']\n";
    let console = Console::with(&[&format!("shop={UNREACHABLE_REGISTRY}")], file);
    let admin = console.admin();
    let send = |path: &str, body: &Value| admin.send(request("POST", path).json(body));

    for url in
        ["sqlite:/etc/passwd", "postgres://169.254.169.254/h", "postgres://127.0.0.1/h?host=/run"]
    {
        let response = send("/api/v1/histories", &json!({ "registry": "shop", "url": url }));
        assert_eq!((response.problem().0, response.json()["field"].clone()), (422, json!("url")));
    }
    let tried = send("/api/v1/histories/test", &json!({ "url": plain }));
    assert_eq!(tried.json(), json!({ "isReachable": true, "jobCount": 0, "problem": null }));
    let never = send("/api/v1/histories", &json!({ "registry": "never", "url": plain }));
    assert_eq!(never.problem().0, 404);
    let added = send("/api/v1/histories", &json!({ "registry": "shop", "url": secret }));
    assert_eq!(added.status, 201, "{added:?}");

    let store = Store::open(&plain.parse::<HistoryUrl>().unwrap()).await.unwrap();
    let now = now();
    store.store(&sample_events(now)).await.unwrap();
    let list = admin.data("/api/v1/r/shop/runs");
    assert_eq!(names(&list["items"], "jobName"), ["report", "settle", "settle"]);
    let figures = admin.data("/api/v1/r/shop/figures?job=settle&job=report");
    assert_eq!(figures[0]["figures"]["latenessMs"]["p99"], 7000);
    assert_eq!(names(&figures[0]["lastRuns"], "state"), ["failed", "done"]);
    let matrix = admin.data("/api/v1/r/shop/jobs/settle/matrix");
    assert_eq!(names(&matrix["runs"][0]["items"], "state"), ["done", "failed"]);
    for path in ["buckets", "failures", "missed", "executions", "traces", "executions.csv"] {
        assert_eq!(admin.get(&format!("/api/v1/r/shop/{path}")).status, 200, "{path}");
    }
    let completed = admin.data("/api/event-trace/execution/jobNames/se");
    assert_eq!(completed, json!(["settle"]));
    let page = send("/api/event-trace/execution", &json!({ "isSuccess": true, "pageSize": 1 }));
    assert_eq!(page.json()["total"], 4, "{page:?}");
    assert_eq!(send("/api/event-trace/status", &json!({})).json()["total"], 0);
    let odd = format!("after={}.x", i64::MAX);
    assert_eq!(admin.get(&format!("/api/v1/r/shop/executions?{odd}")).problem().0, 422);
    assert_eq!(admin.get("/api/v1/r/shop/executions?job=%00").problem().0, 422);

    let texts = [admin.get("/api/v1/histories").text, admin.get("/api/v1/audit").text, added.text];
    assert!(
        texts.iter().all(|text| text.contains("://test") && !text.contains("hunter2")),
        "{texts:?}"
    );
    assert_eq!(texts[0].contains("test:***"), secret.contains("hunter2"), "{texts:?}");
    let viewer = console.add_user("viewer", &json!({ "*": "viewer" }));
    let removing = request("DELETE", "/api/v1/histories/shop");
    assert_eq!(viewer.send(removing.clone()).problem().1, "forbidden");
    assert_eq!(admin.send(removing).status, 204);
    assert_eq!(admin.get("/api/v1/r/shop/runs").problem().1, "noHistory");
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_clients_read_history_under_their_paths() {
    let (fixture, now) = (HistoryFixture::new().await, now());
    fixture.keep(&sample_events(now)).await;
    let body = json!({ "username": "admin", "password": fixture.console.password });
    let login = fixture.console.send(&request("POST", "/api/login").json(&body)).json();
    let token = login["model"]["accessToken"].as_str().unwrap().to_owned();
    let post = |path: &str, body: &Value| {
        let sent = request("POST", path).header("access-token", &token).json(body);
        fixture.console.send(&sent).json()
    };
    let get = |path: &str| {
        fixture.console.send(&request("GET", path).header("access-token", &token)).json()
    };

    let query =
        json!({ "pageSize": 2, "pageNumber": 2, "jobName": "settle", "ip": "", "sort": "x" });
    let page = post("/api/event-trace/execution", &query);
    assert_eq!((&page["success"], &page["model"]["total"]), (&json!(true), &json!(4)), "{page:#}");
    assert_eq!(page["model"]["rows"].as_array().unwrap().len(), 2);
    let since = (now - SignedDuration::from_secs(90)).as_millisecond();
    let query =
        json!({ "pageSize": 10, "pageNumber": 1, "isSuccess": false, "startTimeFrom": since });
    let page = post("/api/event-trace/execution", &query);
    let row = &page["model"]["rows"][0];
    assert_eq!((&page["model"]["total"], &row["success"]), (&json!(1), &json!(false)));
    assert_eq!((&row["source"], &row["shardingItem"]), (&json!("NORMAL_TRIGGER"), &json!(1)));
    let page = post("/api/event-trace/status", &json!({ "pageSize": 10, "pageNumber": 1 }));
    assert_eq!(page["model"], json!({ "total": 0, "rows": [] }));
    let deep = post("/api/event-trace/status", &json!({ "pageSize": 10, "pageNumber": 9_000_000 }));
    assert_eq!(deep["errorCode"], 400);

    assert_eq!(get("/api/event-trace/execution/jobNames/se")["model"], json!(["settle"]));
    assert_eq!(get("/api/event-trace/execution/jobNames/%25")["model"], json!([]));
    assert_eq!(get("/api/event-trace/execution/ip/10.")["model"], json!(["10.0.0.7"]));
    assert_eq!(get("/api/event-trace/status/jobNames/x")["model"], json!([]));
    assert_eq!(get("/api/data-source/activated"), json!(true));
    assert_eq!(get("/api/data-source/load")["model"][0]["name"], "shop");
    let source = json!({ "name": "shop", "driver": "org.h2.Driver", "url": "jdbc:h2:mem:x;INIT=RUNSCRIPT", "username": "sa", "password": "" });
    for path in ["add", "connectTest"] {
        assert_eq!(post(&format!("/api/data-source/{path}"), &source)["errorCode"], 400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn triggering_user_is_recorded_by_v1_and_legacy_api() {
    let scene = Scene::with("").await;
    let fixture = HistoryFixture::of(&scene.url).await;
    let recorder = Recorder::new().database(fixture.url.clone(), Retention::default());
    let node = Node::join(&scene.url).history(recorder);
    let _node = node.job(settle(), async |_: Shard| Ok::<_, String>(())).start().await.unwrap();
    let admin = fixture.console.admin();
    let jane = fixture.console.add_user("jane", &json!({ "shop": "operator" }));
    admin.wait_until("/api/v1/r/shop/jobs/settle/shards", |shards| {
        shards["items"].as_array().unwrap().iter().all(|shard| shard["status"] == "PENDING")
    });

    for (user, name, trigger) in [
        (&admin, "admin", "/api/v1/r/shop/jobs/settle/trigger"),
        (&jane, "jane", "/api/jobs/settle/trigger"),
    ] {
        assert!(user.post(trigger).status < 300, "{trigger}");
        let runs = user.wait_until("/api/v1/r/shop/runs?source=trigger&state=done", |runs| {
            runs["items"].as_array().unwrap().iter().any(|run| run["triggeredBy"] == name)
        });
        let run = runs["items"][0]["runId"].as_str().unwrap();
        assert_eq!(user.data(&path(run))["triggeredBy"], name);
    }
    let total = |filter: Value| {
        let sent = request("POST", "/api/event-trace/status").json(&filter);
        admin.send(sent).json()["total"].as_u64().unwrap()
    };
    assert!(total(json!({ "source": "LITE_EXECUTOR", "executionType": "READY" })) > 0);
    assert_eq!(total(json!({ "source": "CLOUD_SCHEDULER" })), 0);
    assert_eq!(total(json!({ "executionType": "FAILOVER" })), 0);
    let v1_traces =
        |query: &str| admin.data(&format!("/api/v1/r/shop/traces?{query}"))["items"].clone();
    assert_eq!(v1_traces("executionType=FAILOVER"), json!([]));
    assert_ne!(v1_traces("executionType=READY&source=LITE_EXECUTOR"), json!([]));
}
