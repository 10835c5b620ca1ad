//! `Admin`'s queries and changes, each tested on the memory registry, on tinykeeper and on a real ZooKeeper.

#[path = "../backends/mod.rs"]
mod backends;
mod configuration;
#[macro_use]
#[path = "../backends/every_backend.rs"]
mod every_backend;
mod explain;
mod fixture;
mod queries;
mod removal;
mod switches;
mod triggers;

on_every_backend! {
    queries:
        java_job_shows_the_statuses_of_javas_console
        unreadable_configuration_is_listed_and_hides_no_other_job
        job_without_access_is_listed_and_hides_no_other_job
        dump_has_the_format_of_java_and_masks_whole_addresses
        thousand_jobs_are_listed_quickly;
    configuration:
        plan_shows_changes_and_lost_race_is_a_conflict_with_details
        edit_keeps_settings_of_other_programs
        zone_unreadable_by_java_is_refused_while_job_has_java_instance
        job_of_another_class_is_a_conflict_naming_the_class;
    triggers:
        trigger_reaches_all_instances_and_keeps_pending_triggers
        trigger_of_shards_is_stored_and_never_reaches_java
        cancel_stops_rust_shards_and_names_java_shards
        stored_triggers_tell_what_became_of_each_shard
        unknown_and_scheduled_runs_have_no_trigger
        withdrawn_trigger_skips_only_shards_that_have_not_started
        unreadable_trigger_is_not_withdrawn
        wait_ends_with_the_last_shard_whatever_runs_next
        instance_of_elasticjob_2x_is_triggered_through_its_node;
    switches:
        disabled_job_stays_disabled_on_later_servers
        server_is_switched_per_job_and_removed_once_it_has_no_instance
        shard_status_disabled_precedes_all_others
        enabling_stores_since_when_fires_are_to_run
        shut_down_job_has_no_instances_but_still_shows_its_shards;
    removal:
        job_with_instances_is_removed_only_by_force_and_completely
        job_recreated_during_removal_is_complete_or_absent
        job_too_large_for_one_transaction_is_removed_completely;
    explain:
        explanation_names_every_blocking_state
        explanation_knows_the_due_fire_and_its_outcome;
}
