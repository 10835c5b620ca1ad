//! The console over real HTTP: the binary, a registry in this process, and jobs in it.

mod ancestor;
mod audit;
mod bulk;
mod config;
mod console;
mod dropped;
mod fuzz;
mod golden;
mod history;
mod http;
mod incidents;
mod jobs;
mod large;
mod live;
mod oidc;
#[allow(dead_code, reason = "what the command line's tests use of it")]
#[path = "../cli/process.rs"]
mod process;
mod registries;
#[allow(dead_code, reason = "what the command line's tests use of it")]
#[path = "../cli/scene.rs"]
mod scene;
mod session;
mod tls;
