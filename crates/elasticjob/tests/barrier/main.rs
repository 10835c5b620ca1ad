//! The barrier of a job with a once-listener. The shards of a run wait for each other at one gate before the run and at another after it; at each gate
//! one instance has the turn: it alone calls the listener.
//!
//! Each scenario runs on the memory registry, on tinykeeper and on a real ZooKeeper.

#[path = "../backends/mod.rs"]
mod backends;
#[macro_use]
#[path = "../backends/every_backend.rs"]
mod every_backend;
mod gates;
#[path = "../backends/log.rs"]
mod log;
mod once_listeners;

on_every_backend! {
    gates:
        only_one_instance_calls_the_listener_while_others_wait
        withdrawal_deletes_only_own_registrations
        registrations_left_by_dead_instances_are_ignored
        triggered_shards_pass_the_gate_despite_different_run_ids
        gate_does_not_wait_for_disabled_shards
        gate_root_is_deleted_so_that_java_instances_stop_waiting
        java_instance_may_be_the_one_that_calls_the_listener
        gate_that_java_deletes_early_fails_the_wait_at_once
        gate_does_not_wait_for_shards_that_finished_the_run
        other_instance_calls_the_listener_if_the_first_one_dies
        registration_for_the_next_run_survives_deletion_of_the_gate
        registry_outage_ends_the_wait_at_the_gate
        registration_fails_for_a_removed_job;
    once_listeners:
        once_listener_is_called_before_and_after_all_shards
        shards_run_without_listener_if_an_instance_never_arrives
        failing_once_listener_is_logged_and_shards_run;
}
