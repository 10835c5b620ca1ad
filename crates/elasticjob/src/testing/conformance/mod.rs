//! What every registry promises, one named test for each promise.
//!
//! An adapter brings a [`Ground`] to stand on: a way to let members join one tree, and to break their lines. Each test works
//! below a path of its own, so many can share one server.
//!
//! ```
//! # use std::sync::Arc;
//! # use elasticjob::{registry::memory::MemoryServer, runtime::SystemClock, testing::conformance::MemoryGround};
//! elasticjob::registry_conformance!(memory, MemoryGround::new(MemoryServer::new(Arc::new(SystemClock))));
//! ```

mod changes;
mod ground;
mod memory;
mod outages;
mod sessions;
mod watching;

use std::{future::Future, time::Duration};

pub use self::{
    changes::*,
    ground::{Ground, Line, Member},
    memory::MemoryGround,
    outages::*,
    sessions::*,
    watching::*,
};
use crate::registry::{Create, Error, Path};

/// How long anything may take before a test gives up: long enough for a busy machine, short enough for a person.
const PATIENCE: Duration = Duration::from_mins(1);

/// Waits for `event`, and says what did not come if it does not.
async fn soon<T>(what: &str, event: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(PATIENCE, event).await;
    waited.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// Reads until `reading` is what is waited for.
async fn eventually<F: Future<Output = Result<bool, Error>>>(
    what: &str,
    mut reading: impl FnMut() -> F,
) {
    soon(what, async {
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

/// A path that belongs to one test, created.
async fn place(member: &Member, test: &str) -> Path {
    let path = member.registry.namespace().path().join(test).expect("a good name");
    member.registry.create(Create::persistent(&path, "")).await.expect("a place of one's own");
    path
}

/// Makes the promises tests of an adapter: `registry_conformance!(name, ground)`.
///
/// `ground` is evaluated in each test and may await. Attributes before the name (`#[ignore = "…"]`) go on every test.
#[macro_export]
macro_rules! registry_conformance {
    ($(#[$attribute:meta])* $name:ident, $ground:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "what the ground needs is the caller's")]
            use super::*;

            $crate::registry_conformance! { @each [$(#[$attribute])*] ($ground)
                two_creates_of_one_path_one_wins
                a_conditional_set_or_delete_fails_once_the_node_has_changed
                a_multi_is_all_or_nothing_and_says_which_member_failed
                sequence_numbers_grow_in_the_order_of_creation
                a_node_with_children_is_not_deleted
                a_container_is_created_and_holds_children
                the_zxid_of_a_multi_is_the_creation_id_of_what_it_created_and_never_goes_back
                a_version_check_is_blind_to_delete_and_create
                a_request_over_a_mebibyte_is_too_large_and_harms_nobody
                the_namespace_is_there_and_its_siblings_are_reachable
                an_ephemeral_ends_with_its_session_and_only_then
                expiry_yields_a_new_session_id
                an_ephemeral_meant_for_an_old_session_is_not_created_in_a_new_one
                the_deadline_follows_writes_and_syncs_and_never_reads
                wrong_credentials_are_not_authorised_and_never_absent
                absent_is_not_unknown
                a_request_cut_mid_flight_is_unknown_and_reading_again_tells
                a_watch_is_a_snapshot_and_then_every_change_in_order_exactly_once
                a_watch_starts_over_after_a_cut
                a_watch_starts_over_after_an_expiry
                a_write_is_also_a_sync_under_concurrent_writers
                a_closed_registry_says_so
            }
        }
    };
    (@each [$($attributes:tt)*] ($ground:expr) $promise:ident $($rest:ident)*) => {
        $($attributes)*
        #[tokio::test]
        async fn $promise() {
            $crate::testing::conformance::$promise(&$ground).await;
        }

        $crate::registry_conformance! { @each [$($attributes)*] ($ground) $($rest)* }
    };
    (@each [$($attributes:tt)*] ($ground:expr)) => {};
}
