//! The client's promises: kept against a server that follows a script, and against real ones.

#![cfg(feature = "client")]

mod fake;
mod real;
mod scripted;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use tinykeeper::client::{Client, Config, Retry, SessionState};
use tokio::time::timeout;

/// Nothing here may take longer; what does is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// A configuration that tries again soon.
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

/// Waits for something that must come.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("this should have happened by now")
}

/// Waits until the session is in a state like this.
async fn state(client: &Client, wanted: impl FnMut(&SessionState) -> bool) -> SessionState {
    *soon(client.states().wait_for(wanted)).await.expect("the client lives")
}

fn is_connected(state: &SessionState) -> bool {
    matches!(state, SessionState::Connected { .. })
}

fn is_suspended(state: &SessionState) -> bool {
    matches!(state, SessionState::Suspended { .. })
}
