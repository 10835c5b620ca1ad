//! Export of runs as OpenTelemetry traces.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use elasticjob::{
    history::{Recorder, Sink, SpanExporter},
    job::{Job, Outcome, Shard},
    node::Node,
    registry::memory::MemoryServer,
    runtime::{SystemClock, Tasks},
};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    recorder::attempt,
    test_sink::{Behaviour, TestSink},
};

/// The received spans, and how many requests to refuse.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<(Vec<Value>, usize)>>);

impl Collector {
    async fn start(tasks: &mut Tasks) -> (Self, String) {
        let collector = Self::default();
        // Refuses the first request.
        collector.0.lock().unwrap().1 = 1;
        let take = |State(collector): State<Self>, body: Bytes| async move {
            let mut state = collector.0.lock().unwrap();
            if state.1 > 0 {
                state.1 -= 1;
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            let request: Value = serde_json::from_slice(&body).unwrap();
            let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
            state.0.extend(spans.as_array().unwrap().clone());
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
async fn run_is_exported_as_trace_with_spans_per_instance_and_attempt() {
    let mut tasks = Tasks::new();
    let (collector, url) = Collector::start(&mut tasks).await;
    let sink = TestSink::new(Behaviour::Good);
    let server = MemoryServer::new(Arc::new(SystemClock));
    let registry = server.join("test".parse().unwrap()).await.unwrap();
    let recorder = Recorder::new()
        .batch(100, Duration::from_millis(50))
        .sink("memory", Arc::clone(&sink) as Arc<dyn Sink>)
        .spans(SpanExporter::to(&url, "shop").unwrap());
    let job = Job::named("settle").unwrap().cron("0/1 * * * * ?").unwrap().shards(2);
    let handler = async |shard: Shard| if shard.item == 1 { Err("no") } else { Ok(()) };

    let node = Node::on(Arc::new(registry)).history(recorder).job(job, handler);
    let running = node.start().await.unwrap();
    let all_received = async {
        while collector.spans().len() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), all_received).await.expect("spans are received");
    running.stop().await;

    let trace = sink.started()[0].trace.clone().unwrap();
    let spans: Vec<Value> =
        collector.spans().into_iter().filter(|span| span["traceId"] == *trace).collect();
    let [executions, attempts]: [Vec<&Value>; 2] = [true, false].map(|is_execution| {
        spans.iter().filter(|span| span["parentSpanId"].is_null() == is_execution).collect()
    });
    assert_eq!((executions.len(), attempts.len()), (1, 2), "{spans:?}");
    assert_eq!(
        (executions[0]["name"].as_str(), executions[0]["status"]["code"].as_i64()),
        (Some("settle"), Some(2))
    );
    for attempt in attempts {
        assert_eq!(attempt["parentSpanId"], executions[0]["spanId"]);
        assert_eq!(attempt["spanId"].as_str().unwrap().len(), 16);
        let code = if attempt["name"] == "settle 1" { 2 } else { 1 };
        assert_eq!(attempt["status"]["code"], code);
        assert!(attempt["startTimeUnixNano"].as_str() <= attempt["endTimeUnixNano"].as_str());
    }
}

#[test]
fn invalid_address_error_shows_an_example() {
    for invalid in ["", "collector:4318", "ftp://collector"] {
        let error = SpanExporter::to(invalid, "shop").unwrap_err().to_string();

        assert!(error.contains("hint: for example http://"), "{error}");
    }
}

#[tokio::test]
async fn collector_credentials_are_never_printed() {
    let url = format!("http://jane:hunter2@127.0.0.1:{}/?token=hunter2", testbed::free_port());
    let spans = SpanExporter::to(&url, "shop").unwrap();
    let failed = attempt(1, (Outcome::Failed, Some("no"))).to_vec();

    let error = spans.store(&failed).await.unwrap_err();

    let text = format!("{spans:?} {error} {error:?}");
    assert!(
        text.contains("127.0.0.1") && !text.contains("hunter2") && !text.contains("jane"),
        "{text}"
    );
    for invalid in
        ["ftp://jane:hunter2@collector", "http://jane:hunter2@", "jane:hunter2@collector"]
    {
        let error = SpanExporter::to(invalid, "shop").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
