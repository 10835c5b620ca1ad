//! Connecting to a registry that may not be up yet.

use std::time::Duration;

use elasticjob::{node::NodeError, problem::Problem, registry::RegistryUrl};
use tokio::sync::watch;

use crate::error::{Code, Error};

/// Pause between attempts while the registry is unreachable.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Connects, and starts what needs the connection. Only the time without a connection is limited: starting takes as long as it needs, and if the
/// connection is lost meanwhile, both are tried again.
pub(super) async fn start_connected<C, T>(
    url: &RegistryUrl,
    connect_timeout: Duration,
    connect: impl AsyncFn() -> Result<C, NodeError>,
    start: impl AsyncFn(C) -> Result<T, NodeError>,
) -> Result<T, Error> {
    loop {
        let connected = retry_connect(url, connect_timeout, &connect).await?;
        match start(connected).await {
            Err(error) if error.is_outage() => {
                let problem = Problem::of(&error);
                tracing::warn!(registry = %url, error = problem.message, hint = problem.hint, "registry connection lost while joining, retrying");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            started => return started.map_err(Error::from),
        }
    }
}

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
                Err(error) if error.is_outage() => {
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use elasticjob::registry;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn url() -> RegistryUrl {
        "zookeeper://127.0.0.1:2181/shop".parse().unwrap()
    }

    fn outage() -> NodeError {
        let (endpoint, source) = ("127.0.0.1:2181".to_owned(), "refused".into());
        NodeError::Registry(registry::Error::Unreachable { endpoint, source })
    }

    #[tokio::test(start_paused = true)]
    async fn joining_takes_as_long_as_it_needs() {
        let connect = async || Ok(());
        let start = async |()| {
            tokio::time::sleep(10 * TIMEOUT).await;
            Ok("started")
        };

        let started = start_connected(&url(), TIMEOUT, connect, start).await;

        assert_eq!(started.unwrap(), "started");
    }

    #[tokio::test(start_paused = true)]
    async fn registry_is_unreachable_only_without_a_connection() {
        let connect = async || {
            tokio::time::sleep(2 * TIMEOUT).await;
            Ok(())
        };

        let error = start_connected(&url(), TIMEOUT, connect, async |()| Ok(())).await.unwrap_err();

        assert_eq!(error.code, Code::Unreachable);
        let message = &error.problems[0].message;
        assert!(message.contains("cannot reach the registry"), "{message}");
    }

    #[tokio::test(start_paused = true)]
    async fn connection_lost_while_joining_is_made_again() {
        let starts = Cell::new(0);
        let start = async |()| {
            starts.set(starts.get() + 1);
            if starts.get() < 3 { Err(outage()) } else { Ok(starts.get()) }
        };

        let started = start_connected(&url(), TIMEOUT, async || Ok(()), start).await;

        assert_eq!(started.unwrap(), 3);
    }
}
