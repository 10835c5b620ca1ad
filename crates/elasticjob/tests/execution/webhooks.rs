//! Alerts to chat robots and webhooks.

use std::sync::Arc;

use elasticjob::{
    execution::{
        AlertChannels, Alerts, HttpClient, Listeners, Notice, Outbound, Outcome, Routing,
        ShardResult,
    },
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
    send_alert_to(Outbound::any(), job).await
}

/// The same, to these hosts only.
async fn send_alert_to(hosts: Outbound, job: &Job) -> String {
    Log::start_capture();
    let channels = AlertChannels {
        http_client: Arc::new(HttpClient::new().no_proxy()),
        outbound: Some(Arc::new(move |_, _| hosts.clone())),
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

    assert_eq!(alerts.send(job, notice, &Listeners::default()), Routing::Continue);
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
        // Only a server that hangs is given up soon.
        let millis = if reason == "timed out" { "50" } else { "60000" };
        let job =
            fixture::job(&[("wechat.webhook", &url), ("wechat.readTimeoutMilliseconds", millis)]);

        let log = send_alert(&job.alert("WECHAT")).await;

        assert!(log.contains("alert not sent") && log.contains(reason), "{log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[tokio::test]
async fn alert_to_a_host_that_is_not_allowed_is_refused() {
    for (kind, key) in [
        ("WEBHOOK", "elasticjob.webhook.url"),
        ("WECHAT", "wechat.webhook"),
        ("DINGTALK", "dingtalk.webhook"),
    ] {
        let mut target = HttpServer::responding([accepted()]).await;
        let redirect = HttpServer::responding([Response::Redirect(target.url("/hunter2"))]).await;
        let allowed = Outbound::only([redirect.address.to_string()]).with_hint("name it");

        for server in [&target, &redirect] {
            let job = fixture::job(&[(key, &server.url("/hunter2?key=hunter2"))]).alert(kind);
            let log = send_alert_to(allowed.clone(), &job).await;

            assert!(log.contains("alert refused") && log.contains("name it"), "{log}");
            assert!(log.contains(&target.address.to_string()), "{log}");
            assert!(log.contains("job failed") && !log.contains("hunter2"), "{log}");
        }
        assert!(target.has_no_request());
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
