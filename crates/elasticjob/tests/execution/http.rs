//! HTTP jobs: requests and results.

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use elasticjob::{
    admin::Admin,
    execution::{HttpClient, HttpWork, Outbound, RunSettings, Work},
    job::Job,
    node::Node,
    registry,
    runtime::{CancelReason, Tasks},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
};

use crate::{
    fixture::{self, PATIENCE},
    http_server::{HttpServer, Response},
    log::Log,
};

fn ok() -> Response {
    Response::Send("200 OK", "fine".into())
}

fn work() -> HttpWork {
    HttpWork::new(Arc::new(HttpClient::new().no_proxy()))
}

fn get(uri: &str) -> Job {
    fixture::job(&[("http.uri", uri), ("http.method", "GET")])
}

async fn failure_of(job: &Job) -> String {
    fixture::run(&work(), job, 1).await.unwrap_err().to_string()
}

#[tokio::test]
async fn sharding_context_is_sent_as_header() {
    let mut server = HttpServer::responding([ok()]).await;
    let job = get(&server.url("/settle?x=1"));
    let shard = fixture::shard(&job, 1);
    let handler = fixture::handler(&work(), &RunSettings::of(&job));

    handler.run(shard.clone()).await.unwrap();

    let request = server.request().await;
    assert_eq!(request.line, "GET /settle?x=1 HTTP/1.1");
    assert_eq!(request.header("shardingContext"), Some(shard.context().to_json().as_bytes()));
    assert_eq!((request.header("content-type"), request.body.as_str()), (None, ""));
}

#[tokio::test]
async fn body_is_sent_only_with_post_put_and_delete() {
    for (method, body) in
        [("POST", "a=1"), ("PUT", "a=1"), ("DELETE", "a=1"), ("GET", ""), ("OPTIONS", "")]
    {
        let mut server = HttpServer::responding([ok()]).await;
        let job = fixture::job(&[
            ("http.uri", &server.url("/")),
            ("http.method", method),
            ("http.data", "a=1"),
            ("http.content.type", "application/x-www-form-urlencoded"),
        ]);

        fixture::run(&work(), &job, 0).await.unwrap();

        let request = server.request().await;
        assert_eq!(request.line, format!("{method} / HTTP/1.1"));
        assert_eq!(request.body, body, "{method}");
        assert_eq!(request.header("content-type"), Some(&b"application/x-www-form-urlencoded"[..]));
    }
}

#[tokio::test]
async fn error_status_fails_shard_and_message_quotes_the_answer_without_secrets() {
    let server = HttpServer::responding([Response::Send(
        "503 Service Unavailable",
        "come\nback \u{1b}[2Jlater".into(),
    )])
    .await;
    let port = server.address.port();
    let job = get(&format!("http://user:hunter2@127.0.0.1:{port}/settle?key=hunter2"));

    assert_eq!(
        failure_of(&job).await,
        format!(
            r#"GET http://127.0.0.1:{port}/settle answered 503 Service Unavailable: "come\nback \u{{1b}}[2Jlater""#
        )
    );
}

#[tokio::test]
async fn error_status_is_only_logged_with_log_only() {
    let server = HttpServer::responding([Response::Send("404 Not Found", String::new())]).await;
    let job = get(&server.url("/")).prop("elasticjob.http.log.only", "true").unwrap();
    Log::start_capture();

    assert_eq!(fixture::run(&work(), &job, 0).await, Ok(()));

    let log = Log::captured();
    assert!(log.contains("WARN") && log.contains("answered 404 Not Found"), "{log}");
}

#[tokio::test]
async fn redirect_is_followed() {
    let mut target = HttpServer::responding([ok()]).await;
    let source = HttpServer::responding([Response::Redirect(target.url("/target"))]).await;

    fixture::run(&work(), &get(&source.url("/")), 0).await.unwrap();

    assert_eq!(target.request().await.line, "GET /target HTTP/1.1");
}

#[tokio::test]
async fn redirect_outside_allowed_hosts_fails() {
    let mut target = HttpServer::responding([ok()]).await;
    let source = HttpServer::responding([Response::Redirect(target.url("/target"))]).await;
    let client = HttpClient::new().no_proxy().allow_only([source.address.to_string()]);
    let work = HttpWork::new(Arc::new(client));

    let redirected = fixture::run(&work, &get(&source.url("/")), 0).await.unwrap_err();
    let directly = fixture::run(&work, &get(&target.url("/")), 0).await.unwrap_err();

    assert!(redirected.to_string().contains("not among the allowed hosts"), "{redirected}");
    assert!(directly.to_string().contains("not among the allowed hosts"), "{directly}");
    assert!(target.has_no_request());
}

#[tokio::test]
async fn hosts_are_chosen_for_the_configuration_of_each_run() {
    let mut server = HttpServer::responding([ok()]).await;
    let hosts = Outbound::only([server.address.to_string()]).with_hint("name it");
    let work = work().outbound(move |job| match job.props.get("http.data") {
        Some("trusted") => Outbound::any(),
        _ => hosts.clone(),
    });
    let elsewhere = get(&format!("http://127.0.0.2:{}/", server.address.port()));

    fixture::run(&work, &get(&server.url("/")), 0).await.unwrap();
    server.request().await;
    let refused = fixture::run(&work, &elsewhere, 0).await.unwrap_err();
    let trusted = fixture::run(&work, &elsewhere.prop("http.data", "trusted").unwrap(), 0).await;

    assert!(refused.is_permanent());
    let refused = refused.to_string();
    assert!(refused.starts_with("127.0.0.2:") && refused.ends_with("hint: name it"), "{refused}");
    assert!(trusted.unwrap_err().to_string().contains("refused"), "it was tried");
    assert!(server.has_no_request());
}

#[tokio::test]
async fn allowed_name_is_resolved_and_its_address_checked() {
    let mut server = HttpServer::responding([ok()]).await;
    let port = server.address.port();
    let client = HttpClient::new().no_proxy().allow_only(["localhost"]);
    let work = HttpWork::new(Arc::new(client));

    fixture::run(&work, &get(&format!("http://localhost:{port}/")), 0).await.unwrap();

    assert_eq!(server.request().await.line, "GET / HTTP/1.1");
}

#[tokio::test]
async fn read_timeout_fails_shard() {
    let server = HttpServer::responding([Response::Hang]).await;
    let job = get(&server.url("/")).prop("http.read.timeout.milliseconds", "50").unwrap();

    let message = failure_of(&job).await;

    assert!(message.contains("/ was not answered in time"), "{message}");
}

#[tokio::test]
async fn refused_connection_fails_shard() {
    let url = format!("http://127.0.0.1:{}/", testbed::free_port());

    let message = failure_of(&get(&url)).await;

    assert!(message.contains(&url) && message.contains("refused"), "{message}");
}

#[tokio::test]
async fn tls_certificate_must_be_trusted() {
    let (mut server, certificate) = HttpServer::over_tls().await;
    let job = get(&format!("https://localhost:{}/", server.address.port()));

    let untrusted = fixture::run(&work(), &job, 0).await.unwrap_err();
    let client = HttpClient::new().no_proxy().trust_roots(certificate.as_bytes()).unwrap();
    let trusted = fixture::run(&HttpWork::new(Arc::new(client)), &job, 0).await;

    assert!(untrusted.to_string().contains("certificate"), "{untrusted}");
    assert_eq!(trusted, Ok(()));
    assert_eq!(server.request().await.line, "GET / HTTP/1.1");
}

#[tokio::test]
async fn cancelled_request_is_dropped() {
    let mut server = HttpServer::responding([Response::Hang]).await;
    let job = get(&server.url("/"));
    let shard = fixture::shard(&job, 0);
    let cancel = shard.cancel().clone();
    let handler = fixture::handler(&work(), &RunSettings::of(&job));

    let (result, ()) = tokio::join!(tokio::time::timeout(PATIENCE, handler.run(shard)), async {
        server.request().await;
        cancel.cancel(CancelReason::Requested);
    });

    assert_eq!(result.unwrap().unwrap_err().to_string(), "given up: on request");
}

#[test]
fn invalid_properties_are_named() {
    for (props, reason) in [
        (&[][..], "http.uri is missing"),
        (&[("http.uri", "http://x")], "http.method is missing"),
        (&[("http.uri", "no address"), ("http.method", "GET")], "http.uri: relative URL"),
        (&[("http.uri", "file:///etc/passwd"), ("http.method", "GET")], "only http and https"),
        (&[("http.uri", "http://x"), ("http.method", "get")], "upper case"),
        (
            &[
                ("http.uri", "http://x"),
                ("http.method", "GET"),
                ("http.read.timeout.milliseconds", "soon"),
            ],
            "http.read.timeout.milliseconds: milliseconds",
        ),
    ] {
        let job = fixture::job(props);
        let failure = work().prepare(&RunSettings::of(&job)).err().unwrap();

        assert!(failure.to_string().contains(reason), "{failure}");
        assert!(failure.is_permanent());
    }
}

/// Each client builds its own certificates and keeps its own connections, so one for each job would be as many as a registry has jobs.
#[tokio::test]
async fn http_jobs_of_a_node_share_connections() {
    const JOBS: usize = 30;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let (served, mut requests) = mpsc::unbounded_channel();
    let accepted = Arc::clone(&connections);
    let mut tasks = Tasks::new();
    tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            accepted.fetch_add(1, Ordering::Relaxed);
            let served = served.clone();
            serving.spawn(async move {
                let (read, mut write) = stream.into_split();
                let mut lines = BufReader::new(read).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    if line.is_empty() {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                        write.write_all(answer).await.unwrap();
                        served.send(()).unwrap();
                    }
                }
            });
        }
    });
    let registry = registry::connect(&"memory:".parse().unwrap()).await.unwrap();
    let hosts = Outbound::only(["127.0.0.1"]);
    let mut node = Node::on(Arc::clone(&registry)).address(Ipv4Addr::LOCALHOST);
    node = node.outbound(move |_, _| hosts.clone());
    let jobs: Vec<Job> = (0..JOBS)
        .map(|number| {
            let job = Job::named(&format!("get-{number}")).unwrap();
            job.prop("http.uri", &url).unwrap().prop("http.method", "GET").unwrap()
        })
        .collect();
    for job in &jobs {
        node = node.http(job.clone());
    }
    let node = node.start().await.unwrap();

    let admin = Admin::new(registry);
    for job in &jobs {
        admin.trigger(&job.name, <_>::default()).await.unwrap();
        tokio::time::timeout(PATIENCE, requests.recv()).await.unwrap().unwrap();
    }

    // One or two: a connection may be idle again only after the next request has begun.
    let opened = connections.load(Ordering::Relaxed);
    assert!(opened < JOBS / 2, "{opened} connections for {JOBS} jobs");
    node.stop().await;
}
