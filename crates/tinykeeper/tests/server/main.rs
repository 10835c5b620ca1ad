//! The server's promises, kept against clients that speak the protocol byte by byte, and the binary's.

#![cfg(feature = "cli")]

mod access;
mod binary;
mod decoding;
mod defence;
mod durability;
mod full_disk;
mod kazoo;
mod log;
mod operations;
mod ordering;
mod process;
mod raw;
mod roundtrip;
mod sessions;
mod watches;
mod four_letter;

use std::time::Duration;

use tinykeeper::server::{Config, Server};
use tokio::time::timeout;

/// Nothing here may take longer; what does is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for something that must come.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("this should have happened by now")
}

/// A server in memory, with whatever else the test wants of it.
async fn serve(adjust: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config::ephemeral();
    adjust(&mut config);
    Server::start(config).await.expect("the server starts")
}
