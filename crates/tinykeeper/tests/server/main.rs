//! Tests of the server with clients that send the protocol byte by byte, and tests of the binary.

#![cfg(feature = "cli")]

mod access;
mod attack;
mod binary;
mod decoding;
mod durability;
mod four_letter;
mod full_disk;
mod kazoo;
mod log;
mod malformed;
mod operations;
mod ordering;
mod process;
mod protection;
mod raw;
mod roundtrip;
mod sessions;
mod watches;

use std::{net::SocketAddr, time::Duration};

use tinykeeper::server::{Config, Server};
use tokio::time::timeout;

use self::raw::RawClient;

/// Time limit for each wait; a longer one is a failure.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    timeout(TEST_TIMEOUT, future).await.expect("completes within the time limit")
}

/// Starts a server in memory, with the test's changes to its configuration.
async fn serve(adjust: impl FnOnce(&mut Config)) -> Server {
    let mut config = Config::in_memory();
    adjust(&mut config);
    Server::start(config).await.expect("the server starts")
}

/// Sends a four-letter word and returns the reply.
async fn send_word(address: SocketAddr, word: &str) -> String {
    let mut client = RawClient::open(address).await;
    client.send_bytes(word.as_bytes()).await;
    client.text().await
}
