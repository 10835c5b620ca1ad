//! Several instances in one job, on the memory registry, on tinykeeper and on a real ZooKeeper.

#[path = "../backends/mod.rs"]
mod backends;
mod claims;
mod cluster;
#[macro_use]
#[path = "../backends/every_backend.rs"]
mod every_backend;
mod failover;
mod joining;
mod requests;
mod sharding;

on_every_backend! {
    joining:
        new_job_is_stored_joined_led_and_assigned_at_once
        job_without_instances_is_joined_led_and_assigned_at_once
        job_whose_ledger_was_left_behind_is_joined
        instances_that_create_a_job_together_all_join_it;
    sharding:
        nine_shards_over_three_instances_run_once_per_fire
        more_shards_than_fit_into_one_request_are_assigned
        shards_are_reassigned_when_an_instance_joins_or_leaves
        running_shard_moves_only_after_its_run_is_over
        disabled_server_neither_leads_nor_owns_shards
        changed_shard_count_is_reported_and_assigned
        unreadable_configuration_changes_nothing
        stored_configuration_wins_and_drift_is_reported;
    claims:
        fire_runs_once_however_often_it_is_claimed
        misfire_mark_runs_nothing_once_the_last_fire_has_run
        fire_missed_between_two_clocks_is_compensated
        disabled_shard_is_not_claimed
        overwritten_claim_cancels_its_run
        ledger_prevents_concurrent_runs_without_monitoring
        fenced_shard_runs_again_while_its_session_lives
        misfire_mark_of_a_started_run_starts_no_second_run
        deleted_claim_ends_as_failed_in_the_ledger;
    requests:
        doorbell_of_java_is_answered_with_a_stored_trigger
        removed_instance_starts_nothing_but_releases_its_shards
        ending_session_is_not_mistaken_for_a_shutdown
        trigger_waits_for_a_busy_shard_and_leaves_no_misfire_mark
        cancellation_cancels_only_the_named_shard_and_run;
    failover:
        lost_shard_is_taken_over_once_as_the_second_attempt
        next_regular_run_clears_a_pending_failover_flag
        shut_down_instance_that_still_runs_is_not_dead
        lost_shard_without_failover_runs_at_its_next_fire
        shard_of_a_dead_java_instance_is_taken_over
        takeover_ending_after_an_outage_leaves_no_nodes
        java_failover_flag_after_a_finished_run_starts_a_new_run
        shard_lost_while_disabled_is_taken_over_once_enabled
        failover_flag_is_settled_by_a_holder_that_stays_alive;
}
