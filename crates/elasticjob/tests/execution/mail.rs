//! Alerts by mail: what is sent, and over what kind of line.

use elasticjob::{
    execution::{Alerts, Failure, Notice, Verdict, Ways},
    job::Job,
    runtime::Tasks,
};

use crate::{
    fixture::{self, PATIENCE},
    log::Log,
    mail_server::{MailServer, Said, Speaks},
};

fn job(server: &MailServer, use_ssl: &str) -> Job {
    let port = server.address.port().to_string();
    let job = fixture::job(&[
        ("email.host", "localhost"),
        ("email.port", &port),
        ("email.username", "robot"),
        ("email.password", "hunter2"),
        ("email.from", "robot@example.org"),
        ("email.to", "ann@example.org,bob@example.org"),
        ("email.bcc", "eve@example.org"),
        ("email.useSsl", use_ssl),
    ]);
    job.alert("EMAIL")
}

/// Tells, waits until everything was sent or given up, and says what the server heard.
async fn tell(server: &mut MailServer, job: &Job, ways: Ways) -> Vec<Said> {
    let mut tasks = Tasks::new();
    let alerts = Alerts::start(ways, &mut tasks);
    let failure = Failure::new("no <table>");
    let notice =
        Notice::of_job(job.name.clone(), &failure, "2026-03-29T02:00:00Z".parse().unwrap());

    assert_eq!(alerts.tell(job, notice), Verdict::GoOn);
    drop(alerts);

    assert!(tasks.finish(PATIENCE).await);
    server.said()
}

fn trusting(server: &MailServer) -> Ways {
    Ways { mail_roots: server.certificate.clone().into_bytes(), ..Ways::default() }
}

fn position(said: &[Said], beginning: &str) -> Option<usize> {
    said.iter().position(|said| said.line.starts_with(beginning))
}

#[tokio::test]
async fn a_mail_is_sent_over_tls_from_the_start() {
    let mut server = MailServer::start(Speaks::TlsFromTheStart).await;
    let ways = trusting(&server);
    let job = job(&server, "true");

    let said = tell(&mut server, &job, ways).await;

    assert!(said.iter().all(|said| said.secret));
    let lines: Vec<&str> = said.iter().map(|said| said.line.as_str()).collect();
    for line in [
        "AUTH PLAIN AHJvYm90AGh1bnRlcjI=",
        "RCPT TO:<ann@example.org>",
        "RCPT TO:<bob@example.org>",
        "RCPT TO:<eve@example.org>",
        "From: robot@example.org",
        "To: ann@example.org, bob@example.org",
        "Subject: ElasticJob error message",
        "Content-Type: text/html; charset=utf-8",
    ] {
        assert!(lines.contains(&line), "{line} in {lines:#?}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("Bcc")), "{lines:#?}");
    let body = lines.concat();
    assert!(
        body.contains("exception occur in job processing") && body.contains("&lt;table&gt;"),
        "{lines:#?}"
    );
}

#[tokio::test]
async fn starttls_is_used_where_it_is_offered_and_before_the_password() {
    let mut server = MailServer::start(Speaks::StartTls).await;
    let ways = trusting(&server);
    let job = job(&server, "false");

    let said = tell(&mut server, &job, ways).await;

    let (asked, password) =
        (position(&said, "STARTTLS").unwrap(), position(&said, "AUTH").unwrap());
    assert!(asked < password && said[password].secret && !said[asked].secret);
    assert!(position(&said, "DATA").is_some());
}

#[tokio::test]
async fn without_tls_it_is_sent_as_the_ancestor_does() {
    let mut server = MailServer::start(Speaks::NoTls).await;
    let job = job(&server, "false");

    let said = tell(&mut server, &job, Ways::default()).await;

    assert!(position(&said, "DATA").is_some());
}

#[tokio::test]
async fn a_server_nobody_vouches_for_hears_no_password() {
    for (speaks, use_ssl) in [(Speaks::TlsFromTheStart, "true"), (Speaks::StartTls, "false")] {
        let mut server = MailServer::start(speaks).await;
        let job = job(&server, use_ssl);

        let said = tell(&mut server, &job, Ways::default()).await;

        assert_eq!(position(&said, "AUTH"), None);
    }
}

#[tokio::test]
async fn a_server_the_job_trusts_unseen_gets_the_mail() {
    let mut server = MailServer::start(Speaks::TlsFromTheStart).await;
    let job = job(&server, "true").prop("email.ssl.trust", "localhost").unwrap();

    let said = tell(&mut server, &job, Ways::default()).await;

    assert!(position(&said, "DATA").is_some());
}

#[tokio::test]
async fn an_address_that_is_none_is_logged_and_nothing_else() {
    let mut server = MailServer::start(Speaks::NoTls).await;
    let job = job(&server, "false").prop("email.to", "not an address").unwrap();
    Log::listen();

    let said = tell(&mut server, &job, Ways::default()).await;

    assert_eq!(said, []);
    let log = Log::read();
    assert!(log.contains("job failed") && log.contains("alert could not be sent"), "{log}");
}
