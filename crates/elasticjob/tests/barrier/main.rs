//! The gates at which the shards of a run wait for each other, on the memory registry, on tinykeeper and on a real ZooKeeper.

#[macro_use]
#[path = "../backends/every_backend.rs"]
mod every_backend;
mod gates;
#[path = "../backends/mod.rs"]
mod backends;
#[path = "../backends/log.rs"]
mod log;
mod once_listeners;

on_every_backend! {
    gates:
        one_instance_gets_the_turn_and_the_others_wait_for_it
        withdrawal_deletes_only_own_registrations
        registrations_of_a_dead_run_do_not_count
        triggered_runs_meet_despite_different_run_ids
        disabled_shard_is_not_waited_for
        gate_root_is_deleted_for_waiting_java_instances
        java_instance_can_get_the_turn
        gate_cleared_too_early_is_reported_at_once
        shard_that_has_gone_on_is_not_waited_for
        turn_passes_on_when_its_holder_dies
        registration_for_the_next_run_survives_clearing
        outage_ends_the_wait
        removed_job_is_not_recreated;
    once_listeners:
        once_listener_is_called_before_and_after_all_shards
        absent_instance_is_reported_and_the_job_runs_anyway
        failing_once_listener_is_reported_and_the_job_runs;
}
