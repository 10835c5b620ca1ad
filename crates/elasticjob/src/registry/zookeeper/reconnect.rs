//! Waiting for the client to reconnect.

use std::time::Duration;

use tinykeeper::client::{Client, SessionState};

/// Waits at most `timeout` for a connection. Returns `false` if there is none by then, or if the client has closed for good.
pub(super) async fn wait_connected(client: &Client, timeout: Duration) -> bool {
    let mut states = client.states();
    let connected_or_final = states
        .wait_for(|state| matches!(state, SessionState::Connected { .. }) || state.is_final());
    match tokio::time::timeout(timeout, connected_or_final).await {
        Ok(Ok(state)) => !state.is_final(),
        Ok(Err(_)) | Err(_) => false,
    }
}
