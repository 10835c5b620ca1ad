//! What ran: `history list`, `history show`, `history logs`, `history prune`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
    sync::Arc,
};

use elasticjob::{
    Job, Shard,
    history::{
        AttemptId, Ended, Ending, Event, HistoryUrl, Line, Printed, Sink, Source, Started, Store,
    },
    job::{FencingToken, Fire},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::free_port;

use crate::process::{Ended as Exit, binary, elasticjob};

/// A file with history in it, and words about it.
struct Book {
    store: Store,
    url: String,
    _folder: TempDir,
}

impl Book {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let url = HistoryUrl::sqlite(folder.path().join("history.db"));
        let store = Store::open(&url).await.unwrap();
        Self { store, url: url.to_string(), _folder: folder }
    }

    fn ask(&self, arguments: &[&str]) -> Exit {
        let mut all = vec!["history"];
        all.extend(arguments);
        all.extend(["--history", &self.url]);
        elasticjob(&all)
    }

    fn data(&self, arguments: &[&str]) -> Value {
        let asked = self.ask(&[arguments, &["-o", "json"]].concat());
        assert_eq!((asked.code, &*asked.stderr), (Some(0), ""), "{arguments:?}");
        serde_json::from_str(&asked.stdout).unwrap()
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

fn started(shard: &Shard) -> Arc<Started> {
    let at = shard.due_at + SignedDuration::from_millis(3);
    Arc::new(Started::of(shard, Source::Schedule, "machine".into(), at))
}

fn ended(shard: &Shard, ending: Ending) -> Event {
    let started = started(shard);
    Event::Ended(Ended { at: started.at + SignedDuration::from_millis(40), started, ending })
}

fn printed(shard: &Shard, part: u32, text: &str) -> Event {
    let at = shard.due_at + SignedDuration::from_secs(i64::from(part));
    let lines = vec![Line { at, stream: "stdout", text: text.to_owned() }];
    let id = AttemptId::of(shard);
    Event::Printed(Printed { id, run: shard.run.clone(), item: shard.item, part, lines })
}

async fn a_good_and_a_bad_run() -> Book {
    let book = Book::new().await;
    book.store
        .keep(&[
            ended(&shard(0, 0), Ending::Done),
            ended(&shard(0, 1), Ending::Done),
            printed(&shard(0, 0), 0, "one order"),
            ended(&shard(60, 0), Ending::Done),
            ended(&shard(60, 1), Ending::Failed("no such order\nat line 3".to_owned())),
            printed(&shard(60, 1), 0, "looking\x1b[2J"),
        ])
        .await
        .unwrap();
    book
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_and_shown_to_people_and_to_programs() {
    let book = a_good_and_a_bad_run().await;
    let bad = "settle/1774785660000";

    assert_eq!(
        book.ask(&["list"]).stdout,
        "RUN                   JOB     STATE   STARTED               TOOK  LATE  SHARDS  ATTEMPTS  FAILURE\n\
         settle/1774785660000  settle  failed  2026-03-29T12:01:00Z  40ms  3ms   1/2     2         no such order\n\
         settle/1774785600000  settle  done    2026-03-29T12:00:00Z  40ms  3ms   2/2     2         -\n"
    );
    let runs = book.data(&["list", "--state", "failed", "--job", "settle"]);
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
    assert_eq!(book.data(&["list", "--since", "2h"]), json!([]));
    assert_eq!(book.data(&["list", "--since", "2026-03-29T12:00:30Z"])[0]["runId"], bad);
    assert_eq!(book.data(&["list", "--executions"]).as_array().unwrap().len(), 4);

    let page = book.ask(&["list", "--limit", "1"]);
    let place = page.stderr.split('\'').nth(1).unwrap().to_owned();
    assert_eq!(book.data(&["list", "--after", &place])[0]["runId"], "settle/1774785600000");

    let shown = book.ask(&["show", bad]).stdout;
    for part in ["state    failed\n", "late     3ms\n", "10.0.0.7@-@4711-00000001", "no such order"]
    {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert_eq!(
        book.data(&["show", bad])["executions"][1]["failureCause"],
        "no such order\nat line 3"
    );
    let yaml = book.ask(&["show", bad, "-o", "yaml"]).stdout;
    assert!(yaml.contains("runId: settle/1774785660000\n"), "{yaml}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_printed_is_printed() {
    let book = a_good_and_a_bad_run().await;

    let logs = book.ask(&["logs", "settle/1774785660000"]);
    let data = book.data(&["logs", "settle/1774785660000", "--shard", "1"]);

    assert_eq!(logs.stdout, "12:01:00.000 1 stdout looking [2J\n");
    assert_eq!(data[0]["text"], "looking\x1b[2J");
    assert_eq!(book.data(&["logs", "settle/1774785660000", "--shard", "0"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_to_its_end() {
    let book = Book::new().await;
    let shard = shard(0, 0);
    book.store.keep(&[Event::Started(started(&shard)), printed(&shard, 0, "first")]).await.unwrap();
    let mut following = binary()
        .args(["history", "logs", "settle/1774785600000", "--follow", "--history", &book.url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();

    assert!(lines.next().unwrap().unwrap().ends_with("first"));
    book.store.keep(&[printed(&shard, 1, "second")]).await.unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with("second"));
    book.store.keep(&[printed(&shard, 2, "last"), ended(&shard, Ending::Done)]).await.unwrap();
    assert!(lines.next().unwrap().unwrap().ends_with("last"));

    assert!(lines.next().is_none());
    assert!(following.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn old_runs_are_forgotten_when_asked_to() {
    let book = a_good_and_a_bad_run().await;

    let told = book.ask(&["prune", "--age", "1d", "--failures-age", "36500d"]);
    let again = book.data(&["prune", "--age", "1d", "--failures-age", "36500d"]);

    assert_eq!((told.code, &*told.stdout), (Some(0), ""));
    assert_eq!(told.stderr, "1 runs and 0 missed fires are forgotten\n");
    assert_eq!(again, json!({ "runs": 0, "foreign": 0, "missed": 0, "orphans": 0 }));
    assert_eq!(book.data(&["list"]).as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_is_told_with_a_way_out() {
    let book = Book::new().await;
    let nobody = format!("postgres://jane:hunter2@127.0.0.1:{}/history", free_port());
    let nothing = "sqlite:/nowhere/history.db";

    for (arguments, code, part) in [
        (&["show", "settle/1", "--history", &*book.url][..], 5, "there is no run settle/1"),
        (&["list", "--state", "odd", "--history", &book.url], 2, "no state of a run"),
        (&["list", "--since", "odd", "--history", &book.url], 2, "how long ago"),
        (&["list", "--after", "odd", "--history", &book.url], 2, "no place in a list"),
        (&["list", "--history", "redis://h/x"], 2, "known are sqlite, postgres and mysql"),
        (&["list", "--history", nothing], 5, "there is no sqlite:/nowhere/history.db"),
        (&["list", "--history", &nobody], 3, "hint: is the server running"),
    ] {
        let ended = elasticjob(&[&["history"], arguments].concat());

        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("hint: ") && !ended.stderr.contains("hunter2"),
            "{}",
            ended.stderr
        );
    }
}
