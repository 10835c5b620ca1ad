//! Output of attempts is recorded for their shard.

use std::{
    collections::BTreeMap,
    sync::{Arc, Once},
    time::Duration,
};

use elasticjob::{
    execution::blocking,
    history::{Event, Recorder, Sink},
    job::{Job, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::{SystemClock, Tasks},
    testing::Cluster,
};
use tracing::Instrument;
use tracing_subscriber::{
    filter::{EnvFilter, LevelFilter},
    layer::{Layer, SubscriberExt},
};

use crate::test_sink::{Behaviour, TestSink};

const SECOND: Duration = Duration::from_secs(1);

/// Installs the global subscriber, because records are logged on many threads.
fn install_subscriber() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::registry()
            // A layer that does not know the library's spans.
            .with(
                tracing_subscriber::fmt::layer()
                    .with_test_writer()
                    .with_filter(EnvFilter::new("error")),
            )
            .with(elasticjob::history::layer().with_filter(LevelFilter::DEBUG));
        tracing::subscriber::set_global_default(subscriber).unwrap();
    });
}

fn recorder_to(sink: &Arc<TestSink>) -> Recorder {
    Recorder::new().sink("memory", Arc::clone(sink) as Arc<dyn Sink>)
}

fn job() -> Job {
    Job::named("settle").unwrap().cron("0 0 6 * * ?").unwrap().shards(2)
}

/// The lines of each shard.
fn printed(sink: &TestSink) -> BTreeMap<u32, Vec<String>> {
    let mut printed: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (item, line) in sink.lines() {
        printed.entry(item).or_default().push(format!("{} {}", line.stream, line.text));
    }
    printed
}

#[tokio::test(start_paused = true)]
async fn handler_logs_are_recorded_for_its_shard_while_it_runs() {
    install_subscriber();
    let sink = TestSink::new(Behaviour::Good);
    let handler = async |shard: Shard| {
        tracing::info!(orders = 3, city = "Beijing", "shard {} begins", shard.item);
        tokio::time::sleep(10 * SECOND).await;
        let span = tracing::info_span!("inner");
        async { tracing::warn!("half way") }.instrument(span).await;
        let mut tasks = Tasks::new();
        tasks.spawn(async { tracing::debug!("from a task in the span") }.in_current_span());
        tasks.spawn(async { tracing::debug!("from a task outside the span") });
        tasks.finish(SECOND).await;
        tracing::trace!("too fine");
        tracing::error!(code = 7);
        Ok::<(), String>(())
    };
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node =
        cluster.node(|node| node.history(recorder_to(&sink)).job(job(), handler)).await.unwrap();
    tracing::info!("outside of any shard");

    cluster.advance(12 * SECOND).await;
    let begins = |item| vec![format!("INFO shard {item} begins orders=3 city=\"Beijing\"")];
    assert_eq!(printed(&sink), BTreeMap::from([(0, begins(0)), (1, begins(1))]));
    cluster.advance(12 * SECOND).await;

    for item in 0..2 {
        let rest = ["WARN half way", "DEBUG from a task in the span", "ERROR code=7"];
        let all = [begins(item), rest.map(ToOwned::to_owned).to_vec()].concat();
        assert_eq!(printed(&sink)[&item], all);
    }
    let at: Vec<String> = sink.lines().iter().map(|(_, line)| line.at.to_string()).collect();
    assert_eq!(at[0], "2026-11-15T06:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn logs_of_blocking_code_are_recorded_for_its_shard() {
    install_subscriber();
    let sink = TestSink::new(Behaviour::Good);
    let handler = blocking(|shard: Shard| {
        tracing::info!("thread of {}", shard.item);
        Ok::<(), String>(())
    });
    let mut cluster = Cluster::at("2026-11-15T05:59:50Z").await;
    let _node =
        cluster.node(|node| node.history(recorder_to(&sink)).job(job(), handler)).await.unwrap();

    cluster.advance(12 * SECOND).await;

    let thread = |item| (item, vec![format!("INFO thread of {item}")]);
    assert_eq!(printed(&sink), BTreeMap::from([thread(0), thread(1)]));
}

#[tokio::test(start_paused = true)]
async fn excess_output_keeps_head_and_tail() {
    install_subscriber();
    let sink = TestSink::new(Behaviour::Good);
    let handler = async |_: Shard| {
        for number in 0..10_000 {
            tracing::info!("line {number}");
            if number % 1000 == 999 {
                tokio::time::sleep(SECOND).await;
            }
        }
        Ok::<(), String>(())
    };
    let mut cluster = Cluster::at("2026-11-15T05:59:59Z").await;
    let recorder = recorder_to(&sink).output_limit(16 * 1024);
    let one = job().shards(1);
    let _node = cluster.node(|node| node.history(recorder).job(one, handler)).await.unwrap();

    cluster.advance(15 * SECOND).await;

    let (mut parts, mut cuts) = (BTreeMap::new(), Vec::new());
    for event in sink.events() {
        match event {
            Event::Printed(printed) => drop(parts.insert(printed.part, printed.lines)),
            Event::Cut(cut) => {
                parts.retain(|part, _| *part < cut.from || *part >= cut.to);
                cuts.push(cut);
            }
            _ => {}
        }
    }
    let lines: Vec<String> = parts.into_values().flatten().map(|line| line.text).collect();
    let kept: usize = lines.iter().map(|line| line.len() + 1).sum();
    let printed: usize = (0..10_000).map(|number| format!("line {number}").len() + 1).sum();
    assert_eq!((lines[0].as_str(), lines.last().unwrap().as_str()), ("line 0", "line 9999"));
    assert!((12 * 1024..=16 * 1024).contains(&kept), "{kept}");
    assert_eq!(cuts.last().unwrap().bytes, (printed - kept) as u64);
}

#[tokio::test]
async fn script_output_is_recorded_once_for_its_shard() {
    install_subscriber();
    let sink = TestSink::new(Behaviour::Good);
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = server.join("test".parse().unwrap()).await.unwrap();
    let line = "echo out $2; echo err >&2; exit 3";
    let script = Job::named("load")
        .unwrap()
        .cron("0/1 * * * * ?")
        .unwrap()
        .prop("script.command.line", line)
        .unwrap()
        .prop("elasticjob.script.shell", "true")
        .unwrap();
    let node = Node::on(Arc::new(registry)).history(recorder_to(&sink)).script(script);
    let running = node.start().await.unwrap();

    let run_recorded = async {
        while sink.ended().is_empty() {
            tokio::time::sleep(SECOND / 50).await;
        }
    };
    tokio::time::timeout(20 * SECOND, run_recorded).await.expect("the run is recorded");
    running.stop().await;

    let first = sink.started()[0].id;
    let mut lines: Vec<(&str, String)> = sink
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Printed(printed) if printed.id == first => Some(printed.lines),
            _ => None,
        })
        .flatten()
        .map(|line| (line.stream, line.text))
        .collect();
    lines.sort();
    assert_eq!(lines, [("stderr", "err".to_owned()), ("stdout", "out".to_owned())]);
    assert!(sink.ended()[0].message.as_ref().unwrap().contains("exited with code 3"));
}
