//! Rust and the real ElasticJob in one job, on a real ZooKeeper and on tinykeeper.
//!
//! Every instance is a process: a JVM with the Java driver (`java/`), or a Rust process with its counterpart (`src/main.rs`). Both execute the same
//! commands and print the same events, so that a scenario can use either.

mod configuration;
mod console;
mod event_log;
mod failures;
mod membership;
mod peer;
mod runs;
mod scenario;
mod version_2_1_5;

use std::{fs, path::Path};

use crate::scenario::TestRegistry;

/// Makes every scenario a test on ZooKeeper and a test on tinykeeper.
macro_rules! on_both_registries {
    ($($module:ident::$scenario:ident)*) => {
        mod on_zookeeper {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs the real ElasticJob and a real ZooKeeper: make test-java"]
                async fn $scenario() {
                    $module::$scenario(TestRegistry::zookeeper()).await;
                }
            )*
        }
        mod on_tinykeeper {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs the real ElasticJob: make test-java"]
                async fn $scenario() {
                    $module::$scenario(TestRegistry::tinykeeper().await).await;
                }
            )*
        }
    };
}

on_both_registries! {
    membership::instances_of_both_languages_join_and_leave_a_job
    membership::leadership_moves_from_java_to_rust_and_back
    membership::java_and_rust_leaders_assign_the_same_shards
    membership::java_and_rust_leaders_agree_on_single_sharding_balance
    membership::job_moves_to_rust_and_back_without_missed_or_doubled_fires
    version_2_1_5::job_of_2_1_5_moves_and_back_without_missed_or_doubled_fires
    failures::shards_of_a_killed_jvm_are_completed_once_by_rust
    failures::shards_of_a_killed_rust_process_are_completed_once_by_java
    failures::shards_of_a_frozen_jvm_are_taken_over_and_it_rejoins
    failures::frozen_rust_process_does_not_finish_shards_that_java_took_over
    failures::job_continues_after_its_whole_cluster_was_killed_once_rust_joins
    failures::disconnect_shorter_than_the_session_does_not_affect_rust
    failures::rust_does_not_take_a_java_reconnect_for_a_death
    failures::shard_that_java_wrongly_takes_for_lost_does_not_run_twice
    console::java_console_manages_rust_instances
    console::rust_console_manages_java_instances
    console::dump_is_the_same_in_both_languages
    configuration::configuration_is_the_same_document_on_both_sides
    configuration::configuration_stored_by_either_side_applies_to_both
    runs::rust_joins_during_a_long_run_of_java
    runs::java_joins_during_a_long_run_of_rust
    runs::misfires_are_compensated_by_both_sides
    runs::once_listener_is_called_once_per_fire_across_both_sides
    runs::script_gets_the_same_arguments_to_the_byte
    runs::http_request_is_the_same_to_the_byte
}

#[test]
fn tests_named_by_the_migration_guide_exist() {
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
