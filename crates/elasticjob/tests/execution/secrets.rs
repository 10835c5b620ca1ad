//! Secrets by reference in requests and alerts: where they are sent, and that nothing else shows them.

use std::{fs, sync::Arc};

use elasticjob::{
    execution::{
        AlertChannels, Alerts, Failure, HttpClient, HttpWork, Listeners, Notice, Outbound, Routing,
        RunSettings, Secrets, Work,
    },
    job::Job,
    runtime::Tasks,
};
use tempfile::TempDir;

use crate::{
    fixture::{self, PATIENCE},
    http_server::{HttpServer, Response},
    log::Log,
};

/// With characters that have a meaning in a URL.
const SECRET: &str = "hunter2/&?#@ö";
const ENCODED: &str = "hunter2%2F%26%3F%23%40%C3%B6";

/// A folder with the secret `shop`, which jobs may send to `origin`.
fn secrets(origin: &str) -> (TempDir, Secrets) {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("shop"), format!("{SECRET}\n")).unwrap();
    let origin = origin.trim_end_matches('/').to_owned();
    let secrets = Secrets::new(folder.path(), move |_, secret| {
        secret.origin.is_none_or(|target| target == origin)
    });
    (folder, secrets.unwrap())
}

fn get(uri: &str) -> Job {
    fixture::job(&[("http.uri", uri), ("http.method", "GET")])
}

async fn run(job: &Job, secrets: &Secrets) -> Result<(), Failure> {
    let work = HttpWork::new(Arc::new(HttpClient::new().no_proxy()));
    let setting = RunSettings { secrets: secrets.clone(), ..RunSettings::of(job) };
    let handler = work.prepare(&setting)?;
    let run = handler.run(fixture::shard(job, 0));
    tokio::time::timeout(PATIENCE, run).await.expect("the handler ends")
}

#[tokio::test]
async fn secret_is_sent_in_url_and_header_and_shown_nowhere() {
    let echo = format!("wrong token {SECRET} for /{ENCODED}");
    let mut server = HttpServer::responding([Response::Send("401 Unauthorized", echo)]).await;
    let (_folder, secrets) = secrets(&server.url(""));
    let job = get(&server.url("/secret:shop/x?key=secret:shop&page=2"))
        .prop("elasticjob.http.header.Authorization", "Bearer secret:shop")
        .unwrap();
    Log::start_capture();

    let failure = run(&job, &secrets).await.unwrap_err().to_string();

    let request = server.request().await;
    assert_eq!(request.line, format!("GET /{ENCODED}/x?key={ENCODED}&page=2 HTTP/1.1"));
    assert_eq!(
        request.header("authorization"),
        Some(format!("Bearer {SECRET}").as_bytes()),
        "in a header it is not encoded"
    );
    assert!(failure.contains("wrong token secret:shop for /secret:shop"), "{failure}");
    let shown = format!("{failure}{}{job:?}{}{secrets:?}", Log::captured(), job.to_json());
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn password_in_a_url_is_a_secret() {
    let mut server = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let (_folder, secrets) = secrets(&server.url(""));
    let uri = server.url("/x").replace("http://", "http://jane:secret:shop@");

    run(&get(&uri), &secrets).await.unwrap();

    // jane:hunter2/&?#@ö
    let basic = "Basic amFuZTpodW50ZXIyLyY/I0DDtg==";
    assert_eq!(server.request().await.header("authorization"), Some(basic.as_bytes()));
}

#[tokio::test]
async fn encoded_user_and_password_in_an_answer_are_hidden() {
    let echo = "wrong header Basic amFuZTpodW50ZXIyLyY/I0DDtg==".to_owned();
    let server = HttpServer::responding([Response::Send("401 Unauthorized", echo)]).await;
    let (_folder, secrets) = secrets(&server.url(""));
    let uri = server.url("/x").replace("http://", "http://jane:secret:shop@");

    let failure = run(&get(&uri), &secrets).await.unwrap_err().to_string();

    assert!(failure.contains("wrong header Basic secret:shop"), "{failure}");
    assert!(!failure.contains("amFuZTpodW50"), "{failure}");
}

#[tokio::test]
async fn host_is_checked_before_a_secret_is_read() {
    let (_folder, secrets) = secrets("http://127.0.0.1:1");
    // It would be missed if its file were looked for.
    let job = get("http://127.0.0.1:1/?key=secret:absent");
    let work = HttpWork::new(Arc::new(HttpClient::new().no_proxy()))
        .outbound(|_| Outbound::only(["shop.example"]));
    let setting = RunSettings { secrets: secrets.clone(), ..RunSettings::of(&job) };

    let failure = work.prepare(&setting).err().unwrap();

    assert!(
        failure.to_string().contains("127.0.0.1:1 is not among the allowed hosts"),
        "{failure}"
    );
    assert!(failure.is_permanent());
    let mail = [
        ("email.host", "127.0.0.1"),
        ("email.port", "1"),
        ("email.username", "jane"),
        ("email.password", "secret:absent"),
        ("email.from", "a@example.org"),
        ("email.to", "b@example.org"),
    ];
    for job in [
        fixture::job(&[("wechat.webhook", "http://127.0.0.1:1/?key=secret:absent")])
            .alert("WECHAT"),
        fixture::job(&mail).alert("EMAIL"),
    ] {
        let log = alert_to(Outbound::only(["shop.example"]), &job, &secrets).await;

        assert!(log.contains("alert refused") && !log.contains("no secret:absent"), "{log}");
    }
}

#[tokio::test]
async fn refusal_of_a_whole_url_does_not_name_its_target() {
    let (folder, secrets) = secrets("http://hidden.example:8080");
    let job = |name: &str| {
        let reference = format!("secret:{name}");
        fixture::job(&[("elasticjob.alert", "WEBHOOK"), ("elasticjob.webhook.url", &reference)])
    };
    fs::write(folder.path().join("granted"), "http://hidden.example:8080/x").unwrap();
    fs::write(folder.path().join("other"), "http://hidden.example:8081/x").unwrap();

    let not_granted = alert(&job("other"), &secrets).await;
    let not_allowed = alert_to(Outbound::only(["shop.example"]), &job("granted"), &secrets).await;

    assert!(not_granted.contains("secret:other may not be sent where it leads"), "{not_granted}");
    assert!(not_allowed.contains("alert refused"), "{not_allowed}");
    assert!(not_allowed.contains("secret:granted is not among the allowed hosts"), "{not_allowed}");
    assert!(!format!("{not_granted}{not_allowed}").contains("hidden.example"), "{not_allowed}");
}

#[tokio::test]
async fn request_with_a_secret_is_not_redirected_to_another_origin() {
    let mut other = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let mut server = HttpServer::responding([Response::Redirect(other.url("/"))]).await;
    let (_folder, secrets) = secrets(&server.url(""));
    let job =
        get(&server.url("/")).prop("elasticjob.http.header.X-Api-Key", "secret:shop").unwrap();

    let failure = run(&job, &secrets).await.unwrap_err().to_string();

    server.request().await;
    assert!(failure.contains("redirected to") && failure.contains("secrets"), "{failure}");
    assert!(other.has_no_request());
}

#[tokio::test]
async fn request_with_a_header_of_the_job_is_not_redirected_to_another_origin() {
    let mut other = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let mut server = HttpServer::responding([Response::Redirect(other.url("/"))]).await;
    let job = get(&server.url("/")).prop("elasticjob.http.header.X-Api-Key", "literal").unwrap();

    let failure = run(&job, &Secrets::default()).await.unwrap_err().to_string();

    server.request().await;
    assert!(failure.contains("redirected to"), "{failure}");
    assert!(other.has_no_request());
}

#[tokio::test]
async fn number_of_references_in_a_request_is_bounded() {
    let (_folder, secrets) = secrets("http://127.0.0.1:1");
    let many = "secret:shop ".repeat(17);
    let in_one = get("http://127.0.0.1:1/").prop("elasticjob.http.header.X", many).unwrap();
    let in_all = (0..65).fold(get("http://127.0.0.1:1/"), |job, number| {
        job.prop(format!("elasticjob.http.header.X-{number}"), "secret:shop").unwrap()
    });

    for (job, most) in [(in_one, "at most 16"), (in_all, "at most 64")] {
        let failure = run(&job, &secrets).await.unwrap_err();

        assert!(failure.to_string().contains(most) && failure.is_permanent(), "{failure}");
    }
}

#[tokio::test]
async fn secret_is_not_sent_where_the_job_may_not_use_it() {
    let mut attacker = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let (_folder, secrets) = secrets("https://shop.example");
    let port = attacker.address.port();
    for uri in [
        attacker.url("/?key=secret:shop"),
        format!("http://shop.example:secret:shop@127.0.0.1:{port}/"),
        attacker.url("/\\@shop.example/secret:shop"),
    ] {
        let failure = run(&get(&uri), &secrets).await.unwrap_err();

        assert!(failure.to_string().contains("secret:shop may not be sent to"), "{failure}");
        assert!(failure.is_permanent());
    }
    let header = get(&attacker.url("/")).prop("elasticjob.http.header.X", "secret:shop").unwrap();
    assert!(run(&header, &secrets).await.is_err());
    let port = get("http://127.0.0.1:secret:shop/");
    assert!(run(&port, &secrets).await.is_err());
    assert!(attacker.has_no_request());
}

#[tokio::test]
async fn missing_secret_fails_the_run_and_only_the_log_names_the_folder() {
    let (folder, secrets) = secrets("http://127.0.0.1:1");
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("other"), "hunter2").unwrap();
    std::os::unix::fs::symlink(outside.path().join("other"), folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("empty"), "\n").unwrap();
    fs::write(folder.path().join("large"), "x".repeat(64 * 1024 + 2)).unwrap();
    fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
    for (name, problem) in [
        ("absent", "this worker has no secret:absent"),
        ("link", "another folder"),
        ("folder", "not a file"),
        ("empty", "empty"),
        ("large", "64 KiB"),
        ("binary", "UTF-8"),
    ] {
        let job = get(&format!("http://127.0.0.1:1/?key=secret:{name}"));
        Log::start_capture();

        let failure = run(&job, &secrets).await.unwrap_err().to_string();

        assert!(failure.contains(problem) && failure.contains("http.uri"), "{failure}");
        let path = folder.path().canonicalize().unwrap();
        assert!(!failure.contains(&*path.to_string_lossy()), "{failure}");
        let log = Log::captured();
        assert!(log.contains(&*path.to_string_lossy()) && log.contains(name), "{log}");
        assert!(!format!("{failure}{log}").contains("hunter2"), "{failure}{log}");
    }
    let nothing = run(&get("http://127.0.0.1:1/?key=secret:shop"), &Secrets::default()).await;
    assert!(nothing.unwrap_err().to_string().contains("--secrets-dir"));
}

#[tokio::test]
async fn header_that_is_part_of_the_protocol_is_refused() {
    for name in ["Host", "Content-Length", "Transfer-Encoding", "shardingContext", "a b", ""] {
        let key = format!("elasticjob.http.header.{name}");
        let job = get("http://127.0.0.1:1/").prop(key.clone(), "x").unwrap();

        let failure = run(&job, &Secrets::default()).await.unwrap_err().to_string();

        assert!(failure.contains(&key), "{failure}");
    }
    let forged = get("http://127.0.0.1:1/").prop("elasticjob.http.header.X", "a\r\nb: c").unwrap();
    assert!(run(&forged, &Secrets::default()).await.unwrap_err().is_permanent());
}

/// Sends an alert and returns the log.
async fn alert(job: &Job, secrets: &Secrets) -> String {
    alert_to(Outbound::any(), job, secrets).await
}

/// The same, to these hosts only.
async fn alert_to(hosts: Outbound, job: &Job, secrets: &Secrets) -> String {
    Log::start_capture();
    let channels = AlertChannels {
        http_client: Arc::new(HttpClient::new().no_proxy()),
        secrets: secrets.clone(),
        outbound: Some(Arc::new(move |_, _| hosts.clone())),
        ..AlertChannels::default()
    };
    let mut tasks = Tasks::new();
    let alerts = Alerts::start(channels, &mut tasks);
    let at = "2026-03-29T02:00:01Z".parse().unwrap();
    let notice = Notice::of_job(job.name.clone(), &Failure::new("no table"), at);
    assert_eq!(alerts.send(job, notice, &Listeners::default()), Routing::Continue);
    drop(alerts);
    assert!(tasks.finish(PATIENCE).await);
    Log::captured()
}

#[tokio::test]
async fn alert_is_sent_to_a_url_with_a_secret_which_is_not_logged() {
    let refused =
        Response::Send("200 OK", format!(r#"{{"errcode":9,"errmsg":"bad key {SECRET}"}}"#));
    let mut server = HttpServer::responding([refused]).await;
    let (_folder, secrets) = secrets(&server.url(""));
    let uri = server.url("/send?key=secret:shop");
    let job = fixture::job(&[("wechat.webhook", &uri)]).alert("WECHAT");

    let log = alert(&job, &secrets).await;

    assert_eq!(server.request().await.line, format!("POST /send?key={ENCODED} HTTP/1.1"));
    assert!(log.contains("bad key secret:shop") && !log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn whole_url_of_an_alert_is_a_secret() {
    let mut server = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let (folder, secrets) = secrets(&server.url(""));
    fs::write(folder.path().join("hook"), server.url("/hunter2")).unwrap();
    let job =
        fixture::job(&[("elasticjob.alert", "WEBHOOK"), ("elasticjob.webhook.url", "secret:hook")]);

    let log = alert(&job, &secrets).await;

    assert_eq!(server.request().await.line, "POST /hunter2 HTTP/1.1");
    assert!(log.contains("alert sent") && !log.contains("hunter2"), "{log}");
}

#[tokio::test]
async fn alert_with_a_secret_that_may_not_be_used_is_not_sent() {
    let mut attacker = HttpServer::responding([Response::Send("200 OK", String::new())]).await;
    let (folder, secrets) = secrets("https://shop.example");
    fs::write(folder.path().join("hook"), attacker.url("/hunter2")).unwrap();
    let mail = [
        ("email.host", "127.0.0.1"),
        ("email.port", "1"),
        ("email.username", "jane"),
        ("email.password", "secret:shop"),
        ("email.from", "a@example.org"),
        ("email.to", "b@example.org"),
    ];
    for job in [
        fixture::job(&[("wechat.webhook", &attacker.url("/?key=secret:shop"))]).alert("WECHAT"),
        fixture::job(&[("wechat.webhook", "secret:hook")]).alert("WECHAT"),
        fixture::job(&[
            ("dingtalk.webhook", &attacker.url("/")),
            ("dingtalk.secret", "secret:shop"),
        ])
        .alert("DINGTALK"),
        fixture::job(&mail).alert("EMAIL"),
    ] {
        let log = alert(&job, &secrets).await;

        assert!(log.contains("may not be") && !log.contains("hunter2"), "{log}");
    }
    assert!(attacker.has_no_request());
}
