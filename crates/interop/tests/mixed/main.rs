//! Rust and the real ElasticJob in one job, on a real ZooKeeper and on tinykeeper.
//!
//! Every instance is a process: JVMs with the driver of `interop/`, and Rust processes that are its twin (`src/main.rs`). Both take the same
//! orders and say the same words, so a scenario can be told of either.

mod deaths;
mod membership;
mod peer;
mod record;
mod scene;

use crate::scene::Ground;

/// Makes every scenario a test on both grounds.
macro_rules! on_both_grounds {
    ($($room:ident::$scenario:ident)*) => {
        mod on_zookeeper {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs the real ElasticJob and a real ZooKeeper: make test-java"]
                async fn $scenario() {
                    $room::$scenario(Ground::zookeeper()).await;
                }
            )*
        }
        mod on_tinykeeper {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs the real ElasticJob: make test-java"]
                async fn $scenario() {
                    $room::$scenario(Ground::tinykeeper().await).await;
                }
            )*
        }
    };
}

on_both_grounds! {
    membership::instances_of_both_languages_join_and_leave_a_job
    membership::leadership_moves_from_java_to_rust_and_back
    membership::shards_are_dealt_alike_whoever_leads
    deaths::what_a_killed_jvm_ran_is_completed_once_by_rust
    deaths::what_a_killed_rust_process_ran_is_completed_once_by_java
    deaths::what_a_frozen_jvm_ran_is_taken_over_and_it_comes_back
    deaths::a_frozen_rust_process_does_not_finish_what_java_has_taken_over
    deaths::a_job_whose_whole_cluster_was_killed_goes_on_once_rust_joins
    deaths::a_cut_shorter_than_the_session_costs_rust_nothing
    deaths::rust_does_not_take_a_java_reconnect_for_a_death
}
