//! Shards as they really run: processes, HTTP requests, mails, against what the tests start on this machine.

#[cfg(any(feature = "http", feature = "email"))]
mod certificate;
mod fixture;

mod script;
mod unsupervised;

#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod web_server;

#[cfg(feature = "email")]
mod mail;
#[cfg(feature = "email")]
mod mail_server;
#[cfg(any(feature = "http", feature = "email"))]
#[path = "../ground/log.rs"]
mod log;
#[cfg(feature = "http")]
mod robots;

/// Scripts as children of the test. Under a supervisor the same tests run in the crate `supervised`, which has a program that can be one.
fn script_work() -> elasticjob::execution::ScriptWork {
    elasticjob::execution::ScriptWork::default()
}
