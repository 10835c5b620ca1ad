//! HTTP jobs: what is sent, and what counts.

use std::sync::Arc;

use elasticjob::{
    execution::{HttpWork, Setting, Web, Work},
    job::Job,
    runtime::CancelReason,
};

use crate::{
    fixture::{self, PATIENCE},
    log::Log,
    web_server::{Answer, WebServer},
};

fn ok() -> Answer {
    Answer::Say("200 OK", "fine".into())
}

fn work() -> HttpWork {
    HttpWork::new(Arc::new(Web::new().direct()))
}

fn get(uri: &str) -> Job {
    fixture::job(&[("http.uri", uri), ("http.method", "GET")])
}

async fn fails(job: &Job) -> String {
    fixture::run(&work(), job, 1).await.unwrap_err().to_string()
}

#[tokio::test]
async fn the_context_is_a_header_byte_for_byte() {
    let mut server = WebServer::answering([ok()]).await;
    let job = get(&server.url("/settle?x=1"));
    let shard = fixture::shard(&job, 1);
    let handler = fixture::handler(&work(), &Setting::of(&job));

    handler.run(shard.clone()).await.unwrap();

    let request = server.request().await;
    assert_eq!(request.line, "GET /settle?x=1 HTTP/1.1");
    assert_eq!(request.header("shardingContext"), Some(shard.context().to_json().as_bytes()));
    assert_eq!((request.header("content-type"), request.body.as_str()), (None, ""));
}

#[tokio::test]
async fn data_is_sent_with_the_methods_that_write_and_with_no_other() {
    for (method, body) in
        [("POST", "a=1"), ("PUT", "a=1"), ("DELETE", "a=1"), ("GET", ""), ("OPTIONS", "")]
    {
        let mut server = WebServer::answering([ok()]).await;
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
async fn an_error_fails_the_shard_and_names_the_address_without_its_secrets() {
    let server =
        WebServer::answering([Answer::Say("503 Service Unavailable", "come back later".into())])
            .await;
    let port = server.address.port();
    let job = get(&format!("http://user:hunter2@127.0.0.1:{port}/settle?key=hunter2"));

    assert_eq!(
        fails(&job).await,
        format!(
            "GET http://127.0.0.1:{port}/settle answered 503 Service Unavailable: come back later"
        )
    );
}

#[tokio::test]
async fn an_error_is_only_logged_if_the_job_says_so() {
    let server = WebServer::answering([Answer::Say("404 Not Found", String::new())]).await;
    let job = get(&server.url("/")).prop("elasticjob.http.log.only", "true").unwrap();
    Log::listen();

    assert_eq!(fixture::run(&work(), &job, 0).await, Ok(()));

    let log = Log::read();
    assert!(log.contains("WARN") && log.contains("answered 404 Not Found"), "{log}");
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let mut there = WebServer::answering([ok()]).await;
    let here = WebServer::answering([Answer::Redirect(there.url("/there"))]).await;

    fixture::run(&work(), &get(&here.url("/")), 0).await.unwrap();

    assert_eq!(there.request().await.line, "GET /there HTTP/1.1");
}

#[tokio::test]
async fn a_redirect_does_not_lead_out_of_the_allowed_hosts() {
    let mut there = WebServer::answering([ok()]).await;
    let here = WebServer::answering([Answer::Redirect(there.url("/there"))]).await;
    let web = Web::new().direct().only_to([here.address.to_string()]);
    let work = HttpWork::new(Arc::new(web));

    let sent_on = fixture::run(&work, &get(&here.url("/")), 0).await.unwrap_err();
    let directly = fixture::run(&work, &get(&there.url("/")), 0).await.unwrap_err();

    assert!(sent_on.to_string().contains("not among the hosts allowed"), "{sent_on}");
    assert!(directly.to_string().contains("not among the hosts allowed"), "{directly}");
    assert!(there.is_unasked());
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_fails_the_shard() {
    let server = WebServer::answering([Answer::Silence]).await;
    let job = get(&server.url("/")).prop("http.read.timeout.milliseconds", "50").unwrap();

    let message = fails(&job).await;

    assert!(message.contains("/ was not answered in time"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_shard() {
    let url = format!("http://127.0.0.1:{}/", testbed::free_port());

    let message = fails(&get(&url)).await;

    assert!(message.contains(&url) && message.contains("refused"), "{message}");
}

#[tokio::test]
async fn a_server_is_believed_only_if_somebody_vouches_for_it() {
    let (mut server, certificate) = WebServer::over_tls().await;
    let job = get(&format!("https://localhost:{}/", server.address.port()));

    let stranger = fixture::run(&work(), &job, 0).await.unwrap_err();
    let web = Web::new().direct().trusting(certificate.as_bytes()).unwrap();
    let friend = fixture::run(&HttpWork::new(Arc::new(web)), &job, 0).await;

    assert!(stranger.to_string().contains("certificate"), "{stranger}");
    assert_eq!(friend, Ok(()));
    assert_eq!(server.request().await.line, "GET / HTTP/1.1");
}

#[tokio::test]
async fn a_request_is_given_up_when_cancelled() {
    let mut server = WebServer::answering([Answer::Silence]).await;
    let job = get(&server.url("/"));
    let shard = fixture::shard(&job, 0);
    let cancel = shard.cancel().clone();
    let handler = fixture::handler(&work(), &Setting::of(&job));

    let (result, ()) = tokio::join!(tokio::time::timeout(PATIENCE, handler.run(shard)), async {
        server.request().await;
        cancel.cancel(CancelReason::Requested);
    });

    assert_eq!(result.unwrap().unwrap_err().to_string(), "given up: somebody asked for it");
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    for (props, why) in [
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
        let failure = work().prepare(&Setting::of(&job)).err().unwrap();

        assert!(failure.to_string().contains(why), "{failure}");
        assert!(failure.is_lasting());
    }
}
