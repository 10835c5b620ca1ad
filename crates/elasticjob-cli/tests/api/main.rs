//! The console over real HTTP: the binary, a registry in this process, and jobs in it.

mod access_matrix;
mod audit;
mod bulk;
mod client_disconnect;
mod config;
mod console;
mod csrf;
mod fuzz;
mod golden;
mod history;
mod hostile_config;
mod http;
mod incidents;
mod jobs;
mod legacy;
mod live;
mod login_attacks;
mod many_jobs;
mod oidc;
mod overload;
#[allow(dead_code, reason = "shared with the command line's tests")]
#[path = "../cli/process.rs"]
mod process;
mod registries;
mod routes;
#[allow(dead_code, reason = "shared with the command line's tests")]
#[path = "../cli/scene.rs"]
mod scene;
mod session;
mod tls;
