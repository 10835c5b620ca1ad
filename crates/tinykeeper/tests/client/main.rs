//! Tests of the client with a scripted server and with real ones.

#![cfg(feature = "client")]

mod fake;
mod real;
mod scripted;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use tinykeeper::client::{Client, Config, Retry, SessionState};
use tokio::time::timeout;

/// Time limit for each wait; a longer one is a failure.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A configuration with short retry delays.
fn config(servers: &[impl ToString]) -> Config {
    let mut config = Config::new(servers.iter().map(ToString::to_string));
    config.session_timeout = Duration::from_secs(6);
    config.connect_timeout = Duration::from_secs(5);
    config.retry = Retry {
        base_sleep: Duration::from_millis(50),
        max_sleep: Duration::from_millis(200),
        max_retries: 3,
    };
    config
}

async fn within_timeout<T>(future: impl Future<Output = T>) -> T {
    timeout(TEST_TIMEOUT, future).await.expect("completes within the time limit")
}

/// Waits until the session is in a matching state.
async fn state(client: &Client, wanted: impl FnMut(&SessionState) -> bool) -> SessionState {
    *within_timeout(client.states().wait_for(wanted)).await.expect("the client is not dropped")
}

fn is_connected(state: &SessionState) -> bool {
    matches!(state, SessionState::Connected { .. })
}

fn is_suspended(state: &SessionState) -> bool {
    matches!(state, SessionState::Suspended { .. })
}
