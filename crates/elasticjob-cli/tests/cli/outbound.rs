//! Where the requests and alerts of registry jobs may go: attacks by a user who can write to the registry.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{endpoint::Endpoint, metrics::metrics, process::Process, scene::Scene};

/// Stores a job that fires every second.
fn apply(scene: &Scene, name: &str, props: &str) {
    let text =
        format!("elasticjob:\n  jobs:\n    {name}: {{cron: '* * * * * ?', props: {{{props}}}}}\n");
    let file = scene.write("apply.yml", &text);
    let output = scene.run(&["job", "apply", "-f", &file, "--yes"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

/// Writes a script that fails, in a folder from which the worker runs programs.
fn failing_script(scene: &Scene) -> String {
    let folder = scene.folder.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("fail.sh");
    fs::write(&file, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A worker without a job file.
fn worker(scene: &Scene, more: &[&str]) -> Process {
    let what = ["run", "--registry", &scene.url, "--log-format", "json"];
    Process::start(&[&what[..], more].concat())
}

fn webhook(endpoint: &Endpoint) -> String {
    format!("elasticjob.alert: WEBHOOK, elasticjob.webhook.url: 'http://{}/hook'", endpoint.address)
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_of_a_registry_job_goes_only_to_allowed_hosts() {
    let scene = Scene::with("").await;
    let path = failing_script(&scene);
    let folder = scene.folder.path().join("bin");
    let scripts = ["--scripts-from", folder.to_str().unwrap()];
    let endpoint = Endpoint::ok();
    let address = endpoint.address.to_string();
    let props = format!("script.command.line: {path}, {}", webhook(&endpoint));
    apply(&scene, "fails", &props);

    let mut process = worker(&scene, &[&scripts[..], &["--health-listen", "0"]].concat());
    let line: serde_json::Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let health = line["address"].as_str().unwrap().to_owned();
    process.wait_for_log("job failed");
    let refused = process.wait_for_log("alert refused");
    assert!(refused.contains(&address) && refused.contains("--http-allow"), "{refused}");
    assert!(!refused.contains("/hook"), "the path can be a secret: {refused}");
    // The refused alert affects neither the run nor the next one.
    process.wait_for_log("run started");
    process.wait_for_log("alert refused");
    let count = &metrics(&health)[r#"elasticjob_alerts_total{job_name="fails",outcome="refused"}"#];
    assert!(*count >= 2.0, "{count}");
    assert!(endpoint.is_untouched());
    process.terminate();
    process.wait();

    let mut process = worker(&scene, &[&scripts[..], &["--http-allow", &address]].concat());
    process.wait_for_log("alert sent");
    assert!(endpoint.request().starts_with("POST /hook "));
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_by_mail_of_a_registry_job_needs_an_allowed_host() {
    let scene = Scene::with("").await;
    let path = failing_script(&scene);
    let folder = scene.folder.path().join("bin");
    let endpoint = Endpoint::ok();
    let port = endpoint.address.port();
    let props = format!(
        "script.command.line: {path}, elasticjob.alert: EMAIL, email.host: 127.0.0.1, email.port: '{port}', \
         email.username: u, email.password: hunter2, email.from: a@x, email.to: b@x, email.useSsl: 'false'"
    );
    apply(&scene, "fails", &props);

    let mut process = worker(&scene, &["--scripts-from", folder.to_str().unwrap()]);

    let refused = process.wait_for_log("alert refused");
    assert!(refused.contains("127.0.0.1") && !refused.contains("hunter2"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_target_of_the_job_file_is_allowed_and_no_other() {
    let (own, foreign) = (Endpoint::ok(), Endpoint::ok());
    let job = |endpoint: &Endpoint| format!("script.command.line: 'false', {}", webhook(endpoint));
    let scene =
        Scene::with(&format!("    fails: {{cron: '* * * * * ?', props: {{{}}}}}\n", job(&own)))
            .await;
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("alert sent");
    own.request();

    apply(&scene, "fails", &job(&foreign));

    let refused = process.wait_for_log("alert refused");
    assert!(refused.contains(&foreign.address.to_string()), "{refused}");
    assert!(foreign.is_untouched());
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_host_cannot_redirect_to_another_one() {
    let scene = Scene::with("").await;
    let inner = Endpoint::ok();
    let location = format!("location: http://{}/inner\r\n", inner.address);
    let allowed = Endpoint::answering("302 Found", &location, "");
    let address = allowed.address.to_string();
    apply(&scene, "ping", &format!("http.uri: 'http://{address}/', http.method: GET"));

    let mut process = worker(&scene, &["--http-allow", &address]);

    let failed = process.wait_for_log("job failed");
    assert!(failed.contains(&inner.address.to_string()), "{failed}");
    assert!(failed.contains("--http-allow"), "{failed}");
    allowed.request();
    assert!(inner.is_untouched());
}

#[tokio::test(flavor = "multi_thread")]
async fn job_file_allows_its_request_and_no_other_to_the_same_url() {
    let endpoint = Endpoint::ok();
    let uri = format!("http.uri: 'http://{}/orders'", endpoint.address);
    let scene = Scene::with(&format!(
        "    ping: {{cron: '* * * * * ?', props: {{{uri}, http.method: GET}}}}\n"
    ))
    .await;
    let mut process = scene.start_worker(&[]);
    assert!(endpoint.request().starts_with("GET "));

    for (props, changed) in [
        ("http.method: DELETE", "http.method"),
        ("http.method: GET, http.content.type: text/x", "http.content.type"),
    ] {
        apply(&scene, "ping", &format!("{uri}, {props}"));
        let failed = process.wait_for_log(&format!("{changed}: the registry"));
        assert!(failed.contains("--http-allow"), "{failed}");
    }
    while !endpoint.is_untouched() {}
    process.wait_for_log("job failed");
    process.wait_for_log("job failed");
    assert!(endpoint.is_untouched(), "no other request has been sent");
}

#[test]
fn allowed_host_is_not_a_url() {
    let output = crate::process::elasticjob(&["run", "--http-allow", "http://shop.example/"]);

    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("shop.example"), "{}", output.stderr);
    assert!(output.stderr.contains("host"), "{}", output.stderr);
}
