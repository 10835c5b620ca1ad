//! A console that was started, and somebody who is logged in there.

use std::path::Path;

use elasticjob::runtime::{Clock, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::{Answer, Request, request},
    process::{PATIENCE, Process},
};

/// `elasticjob console`.
pub(crate) struct Console {
    pub(crate) address: String,
    /// The first account's, if it was told.
    pub(crate) password: String,
    pub(crate) process: Process,
    pub(crate) folder: TempDir,
}

impl Console {
    /// Of these registries, `NAME=URL`.
    pub(crate) fn start(registries: &[&str]) -> Self {
        Self::with(registries, "")
    }

    /// With this in its file.
    pub(crate) fn with(registries: &[&str], file: &str) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("console.toml"), file).unwrap();
        let mut process = run(folder.path(), registries);
        let line = process.logged("account   admin / ");
        let password = Process::word_after(&line, "admin / ");
        let address = address(&mut process);
        Self { address, password, process, folder }
    }

    /// Ends it, and starts it again on what it kept.
    pub(crate) fn again(mut self, registries: &[&str]) -> Self {
        self.process.terminate();
        self.process.ended();
        let mut process = run(self.folder.path(), registries);
        let address = address(&mut process);
        assert!(!process.log().contains("account   "), "{}", process.log());
        Self { address, process, ..self }
    }

    pub(crate) fn send(&self, request: &Request) -> Answer {
        request.send(&self.address)
    }

    pub(crate) fn admin(&self) -> Visitor<'_> {
        self.login("admin", &self.password)
    }

    pub(crate) fn login(&self, username: &str, password: &str) -> Visitor<'_> {
        let body = json!({ "username": username, "password": password });
        let answer = self.send(&request("POST", "/api/v1/login").json(&body));
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        let csrf = answer.json()["csrfToken"].as_str().unwrap().to_owned();
        Visitor { console: self, cookie, csrf }
    }

    /// Somebody new, with these roles, logged in.
    pub(crate) fn somebody(&self, username: &str, roles: &Value) -> Visitor<'_> {
        let body = json!({ "password": "correct horse", "roles": roles });
        let answer = self.admin().put(&format!("/api/v1/accounts/{username}"), &body);
        assert_eq!(answer.status, 201, "{answer:?}");
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
    let line = process.logged("console   http://");
    Process::word_after(&line, "http://").trim_end_matches('/').to_owned()
}

/// Somebody who is logged in with a browser.
pub(crate) struct Visitor<'c> {
    console: &'c Console,
    pub(crate) cookie: String,
    pub(crate) csrf: String,
}

impl Visitor<'_> {
    /// With cookie and CSRF token.
    pub(crate) fn send(&self, request: Request) -> Answer {
        self.console
            .send(&request.header("cookie", &self.cookie).header("x-csrf-token", &self.csrf))
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(request("GET", path))
    }

    /// Data, which is there.
    pub(crate) fn data(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        answer.json()
    }

    pub(crate) fn post(&self, path: &str) -> Answer {
        self.send(request("POST", path))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(request("PUT", path).json(body))
    }

    /// Asks until the answer is so.
    pub(crate) fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = SystemClock.monotonic() + PATIENCE;
        loop {
            let answer = self.get(path);
            if answer.status == 200 && is_so(&answer.json()) {
                return answer.json();
            }
            assert!(SystemClock.monotonic() < deadline, "{path} still says {answer:?}");
            // Whoever asks all the time is in the way of what it waits for.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
