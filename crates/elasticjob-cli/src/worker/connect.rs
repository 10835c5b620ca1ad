//! Connecting to a registry that may not be up yet.

use std::time::Duration;

use elasticjob::{node::NodeError, problem::Problem, registry::RegistryUrl};
use tokio::sync::watch;

use crate::error::{Code, Error};

/// Pause between attempts while the registry is unreachable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Retries `attempt` while the registry is unreachable, up to `connect_timeout`.
pub(crate) async fn retry_connect<T>(
    url: &RegistryUrl,
    connect_timeout: Duration,
    attempt: impl AsyncFn() -> Result<T, NodeError>,
) -> Result<T, Error> {
    let (last_error_sender, last_error) = watch::channel(None);
    let attempts = async {
        loop {
            match attempt().await {
                Err(NodeError::Registry(error)) if error.is_outage() => {
                    let problem = Problem::of(&error);
                    tracing::warn!(registry = %url, error = problem.message, hint = problem.hint, "registry unreachable, retrying");
                    last_error_sender.send_replace(Some(Error::from(error)));
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                started => return started.map_err(Error::from),
            }
        }
    };
    if let Ok(started) = tokio::time::timeout(connect_timeout, attempts).await {
        return started;
    }
    Err(last_error.borrow().clone().unwrap_or_else(|| {
        let text = format!("cannot reach the registry at {url} within {connect_timeout:?}");
        Error::new(Code::Unreachable, text).with_hint("is ZooKeeper listening there?")
    }))
}
