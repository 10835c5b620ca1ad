//! The console over real HTTP: the binary, a registry in this process, and jobs in it.

mod audit;
mod bulk;
mod client_disconnect;
mod config;
mod console;
mod fuzz;
mod golden;
mod history;
mod hostile_config;
mod http;
mod incidents;
mod jobs;
mod legacy;
mod live;
mod many_jobs;
mod oidc;
mod overload;
#[allow(dead_code, reason = "shared with the command line's tests")]
#[path = "../cli/process.rs"]
mod process;
mod registries;
#[allow(dead_code, reason = "shared with the command line's tests")]
#[path = "../cli/scene.rs"]
mod scene;
mod session;
mod tls;
