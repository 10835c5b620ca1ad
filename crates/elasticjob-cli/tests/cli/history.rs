//! `history list`, `show`, `logs` and `prune`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::Arc,
};

use elasticjob::{
    Job, Shard,
    history::{
        AttemptEnded, AttemptId, AttemptStarted, Event, HistoryUrl, Line, OutputPrinted, Sink,
        Store,
    },
    job::{ExpectedShards, FencingToken, Fire, Outcome},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::free_port;

use crate::process::{CommandOutput, binary, elasticjob};

/// A SQLite history store in a temporary folder.
struct TestHistory {
    store: Store,
    url: String,
    _folder: TempDir,
}

impl TestHistory {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let url = HistoryUrl::sqlite(folder.path().join("history.db"));
        let store = Store::open(&url).await.unwrap();
        Self { store, url: url.to_string(), _folder: folder }
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        let mut all = vec!["history"];
        all.extend(arguments);
        all.extend(["--history", &self.url]);
        elasticjob(&all)
    }

    fn data(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!((output.code, &*output.stderr), (Some(0), ""), "{arguments:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }
}

fn at(second: i64) -> Timestamp {
    "2026-03-29T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}

fn shard(second: i64, item: u32) -> Shard {
    let job = Job::named("settle").unwrap().shards(2);
    let fire = Fire::scheduled(job.name.clone(), at(second));
    let task = format!("settle@-@{item}@-@READY@-@10.0.0.7@-@4711-00000001").parse().unwrap();
    Shard::of(&job, &fire, task, item, FencingToken::new(9))
}

fn started(shard: &Shard) -> Arc<AttemptStarted> {
    let at = shard.due_at + SignedDuration::from_millis(3);
    Arc::new(AttemptStarted::of(shard, "machine".into(), at))
}

fn ended(shard: &Shard, (outcome, message): (Outcome, Option<&str>)) -> Event {
    let started = started(shard);
    Event::Ended(AttemptEnded {
        at: started.at + SignedDuration::from_millis(40),
        started,
        outcome,
        message: message.map(ToOwned::to_owned),
    })
}

fn printed(shard: &Shard, part: u32, text: &str) -> Event {
    let at = shard.due_at + SignedDuration::from_secs(i64::from(part));
    let lines = vec![Line { at, stream: "stdout", text: text.to_owned() }];
    let id = AttemptId::of(shard);
    Event::Printed(OutputPrinted { id, run: shard.run.clone(), item: shard.item, part, lines })
}

async fn history_with_success_and_failure() -> TestHistory {
    let history = TestHistory::new().await;
    history
        .store
        .store(&[
            ended(&shard(0, 0), (Outcome::Succeeded, None)),
            ended(&shard(0, 1), (Outcome::Succeeded, None)),
            printed(&shard(0, 0), 0, "one order"),
            ended(&shard(60, 0), (Outcome::Succeeded, None)),
            ended(&shard(60, 1), (Outcome::Failed, Some("no such order\nat line 3"))),
            printed(&shard(60, 1), 0, "looking\x1b[2J"),
        ])
        .await
        .unwrap();
    history
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_and_shown_as_table_json_and_yaml() {
    let history = history_with_success_and_failure().await;
    let bad = "settle/1774785660000";

    assert_eq!(
        history.run(&["list"]).stdout,
        "RUN                   JOB     STATE   STARTED               DURATION  DELAY  SHARDS  ATTEMPTS  FAILURE\n\
         settle/1774785660000  settle  failed  2026-03-29T12:01:00Z  40ms      3ms    1/2     2         no such order\n\
         settle/1774785600000  settle  done    2026-03-29T12:00:00Z  40ms      3ms    2/2     2         -\n"
    );
    let runs = history.data(&["list", "--state", "failed", "--job", "settle"]);
    assert_eq!(runs.as_array().unwrap().len(), 1);
    for (key, value) in [
        ("runId", json!(bad)),
        ("state", json!("failed")),
        ("dueAt", json!("2026-03-29T12:01:00Z")),
        ("durationMs", json!(40)),
        ("latenessMs", json!(3)),
        ("shardingTotalCount", json!(2)),
        ("source", json!("schedule")),
    ] {
        assert_eq!(runs[0][key], value, "{runs:#}");
    }
    assert_eq!(history.data(&["list", "--since", "2h"]), json!([]));
    assert_eq!(history.data(&["list", "--since", "2026-03-29T12:00:30Z"])[0]["runId"], bad);
    assert_eq!(history.data(&["list", "--executions"]).as_array().unwrap().len(), 4);

    let page = history.run(&["list", "--limit", "1"]);
    let cursor = page.stderr.split('\'').nth(1).unwrap().to_owned();
    assert_eq!(history.data(&["list", "--after", &cursor])[0]["runId"], "settle/1774785600000");

    let shown = history.run(&["show", bad]).stdout;
    for part in
        ["state        failed\n", "start delay  3ms\n", "10.0.0.7@-@4711-00000001", "no such order"]
    {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert_eq!(
        history.data(&["show", bad])["executions"][1]["failureCause"],
        "no such order\nat line 3"
    );
    let yaml = history.run(&["show", bad, "-o", "yaml"]).stdout;
    assert!(yaml.contains("runId: settle/1774785660000\n"), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_print_the_output_of_a_run() {
    let history = history_with_success_and_failure().await;

    let logs = history.run(&["logs", "settle/1774785660000"]);
    let data = history.data(&["logs", "settle/1774785660000", "--shard", "1"]);

    assert_eq!(logs.stdout, "12:01:00.000 1 stdout looking [2J\n");
    assert_eq!(data[0]["text"], "looking\x1b[2J");
    assert_eq!(history.data(&["logs", "settle/1774785660000", "--shard", "0"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_follow_a_run_until_it_ends() {
    let history = TestHistory::new().await;
    let shard = shard(0, 0);
    history
        .store
        .store(&[Event::Started(started(&shard)), printed(&shard, 0, "first")])
        .await
        .unwrap();
    let mut following = binary()
        .args(["history", "logs", "settle/1774785600000", "--follow", "--history", &history.url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();

    assert!(lines.next().unwrap().unwrap().ends_with("first"));
    history.store.store(&[printed(&shard, 1, "second")]).await.unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with("second"));
    history
        .store
        .store(&[printed(&shard, 2, "last"), ended(&shard, (Outcome::Succeeded, None))])
        .await
        .unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with("last"));

    assert!(lines.next().is_none());
    assert!(following.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_deletes_old_runs() {
    let history = history_with_success_and_failure().await;

    let pruned = history.run(&["prune", "--age", "1d", "--failures-age", "36500d"]);
    let again = history.data(&["prune", "--age", "1d", "--failures-age", "36500d"]);

    assert_eq!((pruned.code, &*pruned.stdout), (Some(0), ""));
    assert_eq!(pruned.stderr, "deleted 1 runs and 0 missed fires\n");
    assert_eq!(again, json!({ "runs": 0, "foreign": 0, "missed": 0, "orphans": 0 }));
    assert_eq!(history.data(&["list"]).as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_history_have_a_hint() {
    let history = TestHistory::new().await;
    let unreachable = format!("postgres://jane:hunter2@127.0.0.1:{}/history", free_port());
    let nothing = "sqlite:/nowhere/history.db";

    for (arguments, code, part) in [
        (&["show", "settle/1", "--history", &*history.url][..], 5, "there is no run settle/1"),
        (&["list", "--state", "odd", "--history", &history.url], 2, "is not a state of a run"),
        (&["list", "--since", "odd", "--history", &history.url], 2, "how long ago"),
        (&["list", "--after", "odd", "--history", &history.url], 2, "is not a cursor"),
        (&["list", "--history", "redis://h/x"], 2, "known are sqlite, postgres and mysql"),
        (&["list", "--history", nothing], 5, "sqlite:/nowhere/history.db does not exist"),
        (&["list", "--history", &unreachable], 3, "hint: is the server running"),
    ] {
        let output = elasticjob(&[&["history"], arguments].concat());

        assert_eq!(output.code, Some(code), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(part), "{}", output.stderr);
        assert!(
            output.stderr.contains("hint: ") && !output.stderr.contains("hunter2"),
            "{}",
            output.stderr
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_lacks_shards_is_incomplete_and_never_done() {
    let history = TestHistory::new().await;
    let expected = Some(ExpectedShards { tracked: 2, untracked: 1 });
    let alone = shard(0, 0).expecting(expected);
    history.store.store(&[ended(&alone, (Outcome::Succeeded, None))]).await.unwrap();

    let listed = history.run(&["list"]).stdout;
    let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[2], row[6]), ("incomplete", "1/2"), "{listed}");
    assert_eq!(history.data(&["list", "--state", "done"]), json!([]));
    let found = history.data(&["list", "--state", "incomplete"]);
    assert_eq!((&found[0]["expectedShards"], &found[0]["untrackedShards"]), (&json!(2), &json!(1)));
    let shown = history.run(&["show", "settle/1774785600000"]).stdout;
    assert!(shown.contains("1 of 2 done, 1 of Java ElasticJob not tracked"), "{shown}");
}
