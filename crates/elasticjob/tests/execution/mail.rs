//! Alerts by mail: content and encryption.

use elasticjob::{
    execution::{AlertChannels, Alerts, Failure, Listeners, Notice, Outbound, Routing},
    job::Job,
    runtime::Tasks,
};

use crate::{
    fixture::{self, PATIENCE},
    log::Log,
    mail_server::{ClientLine, MailServer, TlsMode},
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

/// Sends an alert, waits until it was sent or given up, and returns the lines that the server received.
async fn send_alert(
    server: &mut MailServer,
    job: &Job,
    channels: AlertChannels,
) -> Vec<ClientLine> {
    let mut tasks = Tasks::new();
    let alerts = Alerts::start(channels, &mut tasks);
    let failure = Failure::new("no <table>");
    let notice =
        Notice::of_job(job.name.clone(), &failure, "2026-03-29T02:00:00Z".parse().unwrap());

    assert_eq!(alerts.send(job, notice, &Listeners::default()), Routing::Continue);
    drop(alerts);

    assert!(tasks.finish(PATIENCE).await);
    server.received()
}

fn trusting_channels(server: &MailServer) -> AlertChannels {
    AlertChannels {
        mail_roots: server.certificate.clone().into_bytes(),
        ..AlertChannels::default()
    }
}

/// Channels that may reach only these hosts.
fn limited(hosts: &[&str], channels: AlertChannels) -> AlertChannels {
    let hosts = Outbound::only(hosts);
    AlertChannels { outbound: Some(std::sync::Arc::new(move |_, _| hosts.clone())), ..channels }
}

fn position(lines: &[ClientLine], prefix: &str) -> Option<usize> {
    lines.iter().position(|line| line.text.starts_with(prefix))
}

#[tokio::test]
async fn mail_is_sent_over_implicit_tls() {
    let mut server = MailServer::start(TlsMode::Implicit).await;
    let channels = trusting_channels(&server);
    let job = job(&server, "true");

    let lines = send_alert(&mut server, &job, channels).await;

    assert!(lines.iter().all(|line| line.is_encrypted));
    let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
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
async fn offered_starttls_is_used_before_authentication() {
    let mut server = MailServer::start(TlsMode::StartTls).await;
    let channels = trusting_channels(&server);
    let job = job(&server, "false");

    let lines = send_alert(&mut server, &job, channels).await;

    let (starttls, password) =
        (position(&lines, "STARTTLS").unwrap(), position(&lines, "AUTH").unwrap());
    assert!(starttls < password && lines[password].is_encrypted && !lines[starttls].is_encrypted);
    assert!(position(&lines, "DATA").is_some());
}

#[tokio::test]
async fn mail_is_sent_unencrypted_without_tls_like_java() {
    let mut server = MailServer::start(TlsMode::None).await;
    let job = job(&server, "false");

    let lines = send_alert(&mut server, &job, AlertChannels::default()).await;

    assert!(position(&lines, "DATA").is_some());
}

#[tokio::test]
async fn untrusted_server_gets_no_password() {
    for (tls_mode, use_ssl) in [(TlsMode::Implicit, "true"), (TlsMode::StartTls, "false")] {
        let mut server = MailServer::start(tls_mode).await;
        let job = job(&server, use_ssl);

        let lines = send_alert(&mut server, &job, AlertChannels::default()).await;

        assert_eq!(position(&lines, "AUTH"), None);
    }
}

#[tokio::test]
async fn server_in_ssl_trust_gets_mail_despite_invalid_certificate() {
    let mut server = MailServer::start(TlsMode::Implicit).await;
    let job = job(&server, "true").prop("email.ssl.trust", "localhost").unwrap();

    let lines = send_alert(&mut server, &job, AlertChannels::default()).await;

    assert!(position(&lines, "DATA").is_some());
}

#[tokio::test]
async fn mail_goes_only_to_an_allowed_server() {
    let mut server = MailServer::start(TlsMode::Implicit).await;
    let job = job(&server, "true");
    Log::start_capture();

    let channels = limited(&["mail.example"], trusting_channels(&server));
    assert_eq!(send_alert(&mut server, &job, channels).await, []);
    let log = Log::captured();
    assert!(log.contains("alert refused") && log.contains("localhost"), "{log}");
    assert!(!log.contains("hunter2"), "{log}");

    // By the address that was checked, with the certificate of the name.
    let channels = limited(&["localhost"], trusting_channels(&server));
    let lines = send_alert(&mut server, &job, channels).await;
    assert!(position(&lines, "DATA").is_some(), "{lines:#?}");
}

#[tokio::test]
async fn invalid_address_sends_nothing() {
    let mut server = MailServer::start(TlsMode::None).await;
    let job = job(&server, "false").prop("email.to", "not an address").unwrap();
    Log::start_capture();

    let sent = send_alert(&mut server, &job, AlertChannels::default()).await;

    assert_eq!(sent, []);
    let log = Log::captured();
    assert!(log.contains("job failed") && log.contains("alert not sent"), "{log}");
}
