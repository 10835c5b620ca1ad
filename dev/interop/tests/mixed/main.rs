//! Rust and the real ElasticJob in one job, on a real ZooKeeper and on tinykeeper.
//!
//! Every instance is a process: JVMs with the driver of `interop/`, and Rust processes that are its twin (`src/main.rs`). Both take the same
//! orders and say the same words, so a scenario can be told of either.

mod configuration;
mod console;
mod deaths;
mod membership;
mod old;
mod peer;
mod record;
mod runs;
mod scene;

use std::{fs, path::Path};

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
    membership::single_sharding_balance_is_dealt_alike_whoever_leads
    membership::a_job_moves_to_rust_and_back_and_no_fire_is_missed_or_runs_twice
    old::a_job_of_2_1_5_moves_and_back_and_no_fire_is_missed_or_runs_twice
    deaths::what_a_killed_jvm_ran_is_completed_once_by_rust
    deaths::what_a_killed_rust_process_ran_is_completed_once_by_java
    deaths::what_a_frozen_jvm_ran_is_taken_over_and_it_comes_back
    deaths::a_frozen_rust_process_does_not_finish_what_java_has_taken_over
    deaths::a_job_whose_whole_cluster_was_killed_goes_on_once_rust_joins
    deaths::a_cut_shorter_than_the_session_costs_rust_nothing
    deaths::rust_does_not_take_a_java_reconnect_for_a_death
    deaths::what_java_takes_for_a_death_in_a_cut_is_not_run_beside_the_living
    console::the_java_console_manages_rust_instances
    console::the_rust_console_manages_java_instances
    console::a_dump_says_the_same_in_both_languages
    configuration::a_configuration_is_the_same_document_on_both_sides
    configuration::what_either_side_stores_the_other_reads_and_obeys
    runs::rust_joins_during_a_long_run_of_java
    runs::java_joins_during_a_long_run_of_rust
    runs::what_was_missed_is_made_up_for_by_either_side
    runs::a_once_listener_is_called_once_for_a_fire_of_both_sides
    runs::a_script_is_given_the_same_arguments_to_the_byte
    runs::a_request_is_the_same_to_the_byte
}

#[test]
fn every_test_the_migration_guide_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/migration.md")).unwrap();
    let mut sources = String::new();
    for folder in ["dev/interop/tests/mixed", "crates/elasticjob-cli/tests/cli"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            sources.push_str(&fs::read_to_string(entry.unwrap().path()).unwrap());
        }
    }
    let is_name = |text: &&str| text.matches('_').count() > 2;
    let named: Vec<&str> = guide.split('`').skip(1).step_by(2).filter(is_name).collect();

    let missing: Vec<&&str> =
        named.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();

    assert!(named.len() > 10 && missing.is_empty(), "{missing:?}");
}
