//! The guarantees of every registry, one named test for each.
//!
//! An adapter supplies a [`TestServer`]: a server that several clients can join and whose connections a test can break. Each test works below its own
//! path, so all tests can share one server.
//!
//! ```
//! # use std::sync::Arc;
//! # use elasticjob::{registry::memory::MemoryServer, runtime::SystemClock, testing::conformance::MemoryTestServer};
//! elasticjob::registry_conformance!(memory, MemoryTestServer::new(MemoryServer::new(Arc::new(SystemClock))));
//! ```

mod changes;
mod combined;
mod memory;
mod outages;
mod sessions;
mod test_server;
mod watches;

use std::{future::Future, time::Duration};

pub use self::{
    changes::*,
    combined::CombinedTestServer,
    memory::MemoryTestServer,
    outages::*,
    sessions::*,
    test_server::{TestClient, TestLink, TestServer},
    watches::*,
};
use crate::registry::{Create, Error, Path};

/// How long a test waits for an event: long enough for a busy machine, short enough for a person.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Waits for `event`; panics with `what` if it does not come in time.
async fn within_timeout<T>(what: &str, event: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(TIMEOUT, event).await;
    waited.unwrap_or_else(|_| panic!("timed out after {TIMEOUT:?}: {what}"))
}

/// Repeats `reading` until it returns true. Outages are ignored.
async fn eventually<F: Future<Output = Result<bool, Error>>>(
    what: &str,
    mut reading: impl FnMut() -> F,
) {
    within_timeout(what, async {
        loop {
            match reading().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) if error.is_outage() => {}
                Err(error) => panic!("{what}: {error}"),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Creates the path that belongs to one test.
async fn create_path(client: &TestClient, test: &str) -> Path {
    let path = client.registry.namespace().path().join(test).expect("the name is valid");
    client.registry.create(Create::persistent(&path, "")).await.expect("the path is new");
    path
}

/// Generates the tests of an adapter in a module: `registry_conformance!(name, server)`.
///
/// `server` is an expression for a [`TestServer`](crate::testing::conformance::TestServer). Each test evaluates it; it may await.
/// Attributes before the name (`#[ignore = "…"]`) go on every test.
#[macro_export]
macro_rules! registry_conformance {
    ($(#[$attribute:meta])* $name:ident, $server:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "the server expression uses the caller's imports")]
            use super::*;

            $crate::registry_conformance! { @each [$(#[$attribute])*] ($server)
                concurrent_creates_of_one_path_have_one_winner
                conditional_set_and_delete_fail_after_a_change
                multi_is_atomic_and_names_the_failed_operation
                sequence_numbers_grow_in_the_order_of_creation
                node_with_children_cannot_be_deleted
                container_can_be_created_and_hold_children
                multi_zxid_is_the_creation_id_of_its_nodes_and_grows
                version_check_does_not_notice_delete_and_create
                oversized_request_is_refused_and_keeps_the_session
                namespace_exists_and_its_siblings_are_reachable
                ephemeral_node_is_deleted_with_its_session_only
                expiry_yields_a_new_session_id
                ephemeral_for_an_old_session_is_not_created_in_a_new_one
                deadline_follows_writes_and_syncs_but_not_reads
                wrong_credentials_give_not_authorised_never_absent
                absent_node_differs_from_unreachable_registry
                interrupted_request_is_unknown_until_read_again
                watch_gives_a_snapshot_then_each_change_once_in_order
                snapshot_contains_nodes_that_may_not_be_read
                watch_restarts_after_a_connection_loss
                watch_restarts_after_session_expiry
                write_is_also_a_sync_under_concurrent_writers
                closed_registry_returns_closed
            }
        }
    };
    (@each [$($attributes:tt)*] ($server:expr) $test:ident $($rest:ident)*) => {
        $($attributes)*
        #[tokio::test]
        async fn $test() {
            $crate::testing::conformance::$test(&$server).await;
        }

        $crate::registry_conformance! { @each [$($attributes)*] ($server) $($rest)* }
    };
    (@each [$($attributes:tt)*] ($server:expr)) => {};
}
