//! Alerts to chat robots and webhooks.

use std::sync::Arc;

use elasticjob::{
    execution::{AlertChannels, Alerts, HttpClient, Notice, Outcome, Routing, ShardResult},
    job::Job,
    runtime::Tasks,
};
use serde_json::{Value, json};

use crate::{
    fixture::{self, PATIENCE},
    http_server::{HttpServer, Request, Response},
    log::Log,
};

const TEXT: &str = "Job '报表' exception occur in job processing, caused by no \"table\"\n\
                    at 2026-03-29T02:00:01Z, shard 1, run 报表/1774749600000, after 3 attempts";

fn accepted() -> Response {
    Response::Send("200 OK", r#"{"errcode":0,"errmsg":"ok"}"#.into())
}

/// Sends an alert, waits until it was sent or given up, and returns the log.
async fn send_alert(job: &Job) -> String {
    Log::start_capture();
    let channels = AlertChannels {
        http_client: Arc::new(HttpClient::new().no_proxy()),
        ..AlertChannels::default()
    };
    let mut tasks = Tasks::new();
    let alerts = Alerts::start(channels, &mut tasks);
    let result = ShardResult {
        shard: fixture::shard(job, 1),
        outcome: Outcome::Failed,
        message: Some("no \"table\"".into()),
        attempts: 3,
    };
    let at = "2026-03-29T02:00:01Z".parse().unwrap();
    let notice = Notice::of_shard(&result, at).unwrap();

    assert_eq!(alerts.send(job, notice), Routing::Continue);
    drop(alerts);

    assert!(tasks.finish(PATIENCE).await);
    Log::captured()
}

fn body(request: &Request) -> Value {
    assert_eq!(request.header("content-type"), Some(&b"application/json"[..]));
    serde_json::from_str(&request.body).unwrap()
}

#[tokio::test]
async fn wechat_gets_text_message() {
    let mut server = HttpServer::responding([accepted()]).await;
    let job = fixture::job(&[("wechat.webhook", &server.url("/send?key=42"))]).alert("WECHAT");

    let log = send_alert(&job).await;

    let request = server.request().await;
    assert_eq!(request.line, "POST /send?key=42 HTTP/1.1");
    assert_eq!(body(&request), json!({ "msgtype": "text", "text": { "content": TEXT } }));
    assert!(log.contains("alert sent"), "{log}");
}

#[tokio::test]
async fn dingtalk_gets_keyword_and_signature() {
    let mut server = HttpServer::responding([accepted()]).await;
    let job = fixture::job(&[
        ("dingtalk.webhook", &server.url("/send?access_token=42")),
        ("dingtalk.keyword", "ALARM "),
        ("dingtalk.secret", "SEC000this"),
    ]);

    send_alert(&job.alert("DINGTALK")).await;

    let request = server.request().await;
    // Computed with Python for 2026-03-29T02:00:01Z.
    assert_eq!(
        request.line,
        "POST /send?access_token=42&timestamp=1774749601000&sign=mLcp156y8FnOhQ1qz4ngmi2ZkZBG5v3a3JcZZs3GtU0%3D HTTP/1.1"
    );
    assert_eq!(body(&request)["text"]["content"], format!("ALARM {TEXT}"));
}

#[tokio::test]
async fn webhook_gets_all_fields() {
    let mut server =
        HttpServer::responding([Response::Send("204 No Content", String::new())]).await;
    let job = fixture::job(&[("elasticjob.webhook.url", &server.url("/hook"))]).alert("WEBHOOK");

    let log = send_alert(&job).await;

    assert_eq!(
        body(&server.request().await),
        json!({
            "text": TEXT,
            "jobName": "报表",
            "message": "no \"table\"",
            "occurredAt": "2026-03-29T02:00:01Z",
            "runId": "报表/1774749600000",
            "shardingItem": 1,
            "attempts": 3,
        })
    );
    assert!(log.contains("alert sent"), "{log}");
}

#[tokio::test]
async fn failed_delivery_is_logged_without_secrets() {
    for (response, reason) in [
        (
            Response::Send("200 OK", r#"{"errcode":310000,"errmsg":"sign not match"}"#.into()),
            "sign not match",
        ),
        (Response::Send("200 OK", "<html>".into()), "errcode null"),
        (Response::Send("404 Not Found", String::new()), "404 Not Found"),
        (Response::Hang, "timed out"),
    ] {
        let server = HttpServer::responding([response]).await;
        let url = server.url("/hunter2/send?key=hunter2");
        let job =
            fixture::job(&[("wechat.webhook", &url), ("wechat.readTimeoutMilliseconds", "50")]);

        let log = send_alert(&job.alert("WECHAT")).await;

        assert!(log.contains("alert not sent") && log.contains(reason), "{log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[tokio::test]
async fn failure_is_logged_unless_alert_is_ignore() {
    let is_logged = |job: Job| async move { send_alert(&job).await.contains("job failed") };

    assert!(is_logged(fixture::job(&[])).await);
    assert!(is_logged(fixture::job(&[]).alert("UNHEARD_OF")).await);
    assert!(is_logged(fixture::job(&[]).alert("EMAIL")).await, "EMAIL without settings");
    assert!(!is_logged(fixture::job(&[]).alert("IGNORE")).await);
}
