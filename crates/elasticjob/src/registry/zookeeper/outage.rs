//! What to do while there is no connection: wait a little, then say so.

use std::time::Duration;

use tinykeeper::client::{Client, SessionState};

/// Waits until the client is connected, at most this long. `false`: it is not, or never will be.
pub(super) async fn repaired(client: &Client, patience: Duration) -> bool {
    let mut states = client.states();
    let settled = states
        .wait_for(|state| matches!(state, SessionState::Connected { .. }) || state.is_final());
    match tokio::time::timeout(patience, settled).await {
        Ok(Ok(state)) => !state.is_final(),
        Ok(Err(_)) | Err(_) => false,
    }
}
