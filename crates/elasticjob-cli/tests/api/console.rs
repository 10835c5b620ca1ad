//! Starts a console process and logs in.

use std::path::Path;

use elasticjob::runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::{Request, Response, request},
    process::{PATIENCE, Process},
};

/// A running `elasticjob console`.
pub(crate) struct Console {
    pub(crate) address: String,
    /// Generated password of the first account.
    pub(crate) password: String,
    pub(crate) process: Process,
    pub(crate) folder: TempDir,
}

impl Console {
    /// Starts a console with these registries, `NAME=URL`.
    pub(crate) fn start(registries: &[&str]) -> Self {
        Self::with(registries, "")
    }

    /// The same with the content of a configuration file.
    pub(crate) fn with(registries: &[&str], file: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("console.toml"), file).unwrap();
        let mut process = run(folder.path(), registries);
        let line = process.wait_for_log("account   admin / ");
        let password = Process::word_after(&line, "admin / ");
        let address = address(&mut process);
        Self { address, password, process, folder }
    }

    /// Restarts it with the same data folder.
    pub(crate) fn restart(mut self, registries: &[&str]) -> Self {
        self.process.terminate();
        self.process.wait();
        let mut process = run(self.folder.path(), registries);
        let address = address(&mut process);
        assert!(!process.log().contains("account   "), "{}", process.log());
        Self { address, process, ..self }
    }

    pub(crate) fn send(&self, request: &Request) -> Response {
        request.send(&self.address)
    }

    /// Waits until lists of a registry are answered: until it is read for the first time, they may be answered with 503.
    pub(crate) fn wait_until_loaded(&self, registry: &str) {
        self.admin().wait_until(&format!("/api/v1/r/{registry}/jobs"), |_| true);
    }

    pub(crate) fn admin(&self) -> BrowserSession<'_> {
        self.login("admin", &self.password)
    }

    pub(crate) fn login(&self, username: &str, password: &str) -> BrowserSession<'_> {
        let body = json!({ "username": username, "password": password });
        let response = self.send(&request("POST", "/api/v1/login").json(&body));
        assert_eq!(response.status, 200, "{response:?}");
        let cookie = response.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let csrf = response.json()["csrfToken"].as_str().unwrap().to_owned();
        BrowserSession { console: self, cookie, csrf }
    }

    /// Creates a user with these roles and logs in.
    pub(crate) fn add_user(&self, username: &str, roles: &Value) -> BrowserSession<'_> {
        let body = json!({ "password": "correct horse", "roles": roles });
        let response = self.admin().put(&format!("/api/v1/accounts/{username}"), &body);
        assert_eq!(response.status, 201, "{response:?}");
        self.login(username, "correct horse")
    }
}

fn run(folder: &Path, registries: &[&str]) -> Process {
    let (config, data) = (folder.join("console.toml"), folder.join("data"));
    let (config, data) = (config.to_str().unwrap(), data.to_str().unwrap());
    let mut arguments = vec!["console", "--listen", "0", "--config", config, "--data", data];
    for registry in registries {
        arguments.extend(["--registry", registry]);
    }
    Process::start(&arguments)
}

fn address(process: &mut Process) -> String {
    let line = process.wait_for_log("console   http://");
    Process::word_after(&line, "http://").trim_end_matches('/').to_owned()
}

/// A user who is logged in with a browser.
pub(crate) struct BrowserSession<'c> {
    console: &'c Console,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl BrowserSession<'_> {
    /// Sends a request with cookie and CSRF token.
    pub(crate) fn send(&self, request: Request) -> Response {
        self.console
            .send(&request.header("cookie", &self.cookie).header("x-csrf-token", &self.csrf))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send(request("GET", path))
    }

    /// GETs JSON and expects status 200.
    pub(crate) fn data(&self, path: &str) -> Value {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {response:?}");
        response.json()
    }

    pub(crate) fn post(&self, path: &str) -> Response {
        self.send(request("POST", path))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Response {
        self.send(request("PUT", path).json(body))
    }

    /// Repeats a GET until the response meets the condition.
    pub(crate) fn wait_until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let deadline = SystemClock.monotonic() + PATIENCE;
        loop {
            let response = self.get(path);
            if response.status == 200 && condition(&response.json()) {
                return response.json();
            }
            assert!(SystemClock.monotonic() < deadline, "{path} still says {response:?}");
            // A busy loop would slow down what it waits for.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
