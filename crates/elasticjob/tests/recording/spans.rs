//! Runs as OpenTelemetry's traces.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use elasticjob::{
    history::{Ending, Recorder, Sink, Spans},
    job::{Job, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::{SystemClock, Tasks},
};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    recorder::attempt,
    shelf::{Mood, Shelf},
};

/// What a collector was told, and whether it is busy.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<(Vec<Value>, usize)>>);

impl Collector {
    async fn start(tasks: &mut Tasks) -> (Self, String) {
        let collector = Self::default();
        // Busy at first.
        collector.0.lock().unwrap().1 = 1;
        let take = |State(collector): State<Self>, body: Bytes| async move {
            let mut inside = collector.0.lock().unwrap();
            if inside.1 > 0 {
                inside.1 -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            let told: Value = serde_json::from_slice(&body).unwrap();
            let spans = &told["resourceSpans"][0]["scopeSpans"][0]["spans"];
            inside.0.extend(spans.as_array().unwrap().clone());
            StatusCode::OK
        };
        let router = Router::new().route("/v1/traces", post(take)).with_state(collector.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (collector, url)
    }

    fn spans(&self) -> Vec<Value> {
        self.0.lock().unwrap().0.clone()
    }
}

#[tokio::test]
async fn a_run_is_one_trace_of_a_span_for_each_instance_and_each_attempt() {
    let mut tasks = Tasks::new();
    let (collector, url) = Collector::start(&mut tasks).await;
    let shelf = Shelf::new(Mood::Good);
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = server.join("test".parse().unwrap()).await.unwrap();
    let recorder = Recorder::new()
        .batch(100, Duration::from_millis(50))
        .sink("shelf", Arc::clone(&shelf) as Arc<dyn Sink>)
        .spans(Spans::to(&url, "shop").unwrap());
    let job = Job::named("settle").unwrap().cron("0/1 * * * * ?").unwrap().shards(2);
    let handler = async |shard: Shard| if shard.item == 1 { Err("no") } else { Ok(()) };

    let node = Node::on(Arc::new(registry)).history(recorder).job(job, handler);
    let running = node.start().await.unwrap();
    let told = async {
        while collector.spans().len() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("spans are told");
    running.stop().await;

    let trace = shelf.started()[0].trace.clone().unwrap();
    let spans: Vec<Value> =
        collector.spans().into_iter().filter(|span| span["traceId"] == *trace).collect();
    let [parts, attempts]: [Vec<&Value>; 2] = [true, false].map(|is_part| {
        spans.iter().filter(|span| span["parentSpanId"].is_null() == is_part).collect()
    });
    assert_eq!((parts.len(), attempts.len()), (1, 2), "{spans:?}");
    assert_eq!(
        (parts[0]["name"].as_str(), parts[0]["status"]["code"].as_i64()),
        (Some("settle"), Some(2))
    );
    for attempt in attempts {
        assert_eq!(attempt["parentSpanId"], parts[0]["spanId"]);
        assert_eq!(attempt["spanId"].as_str().unwrap().len(), 16);
        let code = if attempt["name"] == "settle 1" { 2 } else { 1 };
        assert_eq!(attempt["status"]["code"], code);
        assert!(attempt["startTimeUnixNano"].as_str() <= attempt["endTimeUnixNano"].as_str());
    }
}

#[test]
fn an_address_that_is_none_says_what_one_is() {
    for wrong in ["", "collector:4318", "ftp://collector"] {
        let error = Spans::to(wrong, "shop").unwrap_err().to_string();

        assert!(error.contains("hint: for example http://"), "{error}");
    }
}

#[tokio::test]
async fn who_may_speak_to_the_collector_is_never_printed() {
    let nobody = format!("http://jane:hunter2@127.0.0.1:{}/?token=hunter2", testbed::free_port());
    let spans = Spans::to(&nobody, "shop").unwrap();
    let failed = attempt(1, Ending::Failed("no".into())).to_vec();

    let error = spans.keep(&failed).await.unwrap_err();

    let told = format!("{spans:?} {error} {error:?}");
    assert!(
        told.contains("127.0.0.1") && !told.contains("hunter2") && !told.contains("jane"),
        "{told}"
    );
    for wrong in ["ftp://jane:hunter2@collector", "http://jane:hunter2@", "jane:hunter2@collector"]
    {
        let error = Spans::to(wrong, "shop").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
