//! Alerts by POST: robots and webhooks.

use std::sync::Arc;

use elasticjob::{
    execution::{Alerts, Notice, Outcome, Verdict, Ways, Web},
    job::Job,
    runtime::Tasks,
};
use serde_json::{Value, json};

use crate::{
    fixture::{self, PATIENCE},
    log::Log,
    web_server::{Answer, Request, WebServer},
};

const TEXT: &str = "Job '报表' exception occur in job processing, caused by no \"table\"\n\
                    at 2026-03-29T02:00:01Z, shard 1, run 报表/1774749600000, after 3 attempts";

fn accepted() -> Answer {
    Answer::Say("200 OK", r#"{"errcode":0,"errmsg":"ok"}"#.into())
}

/// Tells, waits until it was sent or given up, and says what was logged.
async fn tell(job: &Job) -> String {
    Log::listen();
    let ways = Ways { web: Arc::new(Web::new().direct()), ..Ways::default() };
    let mut tasks = Tasks::new();
    let alerts = Alerts::start(ways, &mut tasks);
    let outcome = Outcome::Failed { message: "no \"table\"".into(), attempts: 3 };
    let at = "2026-03-29T02:00:01Z".parse().unwrap();
    let notice = Notice::of_shard(&fixture::shard(job, 1), &outcome, at).unwrap();

    assert_eq!(alerts.tell(job, notice), Verdict::GoOn);
    drop(alerts);

    assert!(tasks.finish(PATIENCE).await);
    Log::read()
}

fn body(request: &Request) -> Value {
    assert_eq!(request.header("content-type"), Some(&b"application/json"[..]));
    serde_json::from_str(&request.body).unwrap()
}

#[tokio::test]
async fn wechat_gets_a_text() {
    let mut server = WebServer::answering([accepted()]).await;
    let job = fixture::job(&[("wechat.webhook", &server.url("/send?key=42"))]).alert("WECHAT");

    let log = tell(&job).await;

    let request = server.request().await;
    assert_eq!(request.line, "POST /send?key=42 HTTP/1.1");
    assert_eq!(body(&request), json!({ "msgtype": "text", "text": { "content": TEXT } }));
    assert!(log.contains("alert sent"), "{log}");
}

#[tokio::test]
async fn dingtalk_gets_its_keyword_and_a_signature() {
    let mut server = WebServer::answering([accepted()]).await;
    let job = fixture::job(&[
        ("dingtalk.webhook", &server.url("/send?access_token=42")),
        ("dingtalk.keyword", "ALARM "),
        ("dingtalk.secret", "SEC000this"),
    ]);

    tell(&job.alert("DINGTALK")).await;

    let request = server.request().await;
    // Computed with Python for 2026-03-29T02:00:01Z.
    assert_eq!(
        request.line,
        "POST /send?access_token=42&timestamp=1774749601000&sign=mLcp156y8FnOhQ1qz4ngmi2ZkZBG5v3a3JcZZs3GtU0%3D HTTP/1.1"
    );
    assert_eq!(body(&request)["text"]["content"], format!("ALARM {TEXT}"));
}

#[tokio::test]
async fn a_webhook_gets_everything_there_is_to_tell() {
    let mut server = WebServer::answering([Answer::Say("204 No Content", String::new())]).await;
    let job = fixture::job(&[("elasticjob.webhook.url", &server.url("/hook"))]).alert("WEBHOOK");

    let log = tell(&job).await;

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
async fn what_was_not_delivered_is_logged_without_the_key() {
    for (answer, why) in [
        (
            Answer::Say("200 OK", r#"{"errcode":310000,"errmsg":"sign not match"}"#.into()),
            "sign not match",
        ),
        (Answer::Say("200 OK", "<html>".into()), "errcode null"),
        (Answer::Say("404 Not Found", String::new()), "404 Not Found"),
        (Answer::Silence, "timed out"),
    ] {
        let server = WebServer::answering([answer]).await;
        let url = server.url("/hunter2/send?key=hunter2");
        let job =
            fixture::job(&[("wechat.webhook", &url), ("wechat.readTimeoutMilliseconds", "50")]);

        let log = tell(&job.alert("WECHAT")).await;

        assert!(log.contains("alert could not be sent") && log.contains(why), "{log}");
        assert!(!log.contains("hunter2"), "{log}");
    }
}

#[tokio::test]
async fn the_log_is_told_unless_the_job_says_ignore() {
    let told = |job: Job| async move { tell(&job).await.contains("job failed") };

    assert!(told(fixture::job(&[])).await);
    assert!(told(fixture::job(&[]).alert("UNHEARD_OF")).await);
    assert!(told(fixture::job(&[]).alert("EMAIL")).await, "it is not set up");
    assert!(!told(fixture::job(&[]).alert("IGNORE")).await);
}
