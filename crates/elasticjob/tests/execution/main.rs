//! Runs real processes, HTTP requests and mails against servers that the tests start on this machine.

#[cfg(any(feature = "http", feature = "email"))]
mod certificate;
mod fixture;

mod script;
mod unsupervised;

#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod http_server;

#[cfg(any(feature = "http", feature = "email"))]
#[path = "../backends/log.rs"]
mod log;
#[cfg(feature = "email")]
mod mail;
#[cfg(feature = "email")]
mod mail_server;
#[cfg(all(feature = "http", feature = "email"))]
mod secrets;
#[cfg(feature = "http")]
mod webhooks;

/// Runs scripts as children of the test process. The crate `testbed` runs the same tests under a supervisor, with a program that can be one.
fn script_work() -> elasticjob::execution::ScriptWork {
    elasticjob::execution::ScriptWork::default()
}
