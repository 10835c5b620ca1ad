//! Where the shards of a fire meet, on memory, on tinykeeper and on a real ZooKeeper.

#[macro_use]
#[path = "../ground/everywhere.rs"]
mod everywhere;
#[path = "../ground/mod.rs"]
mod ground;
#[path = "../ground/log.rs"]
mod log;
mod nodes;
mod scenarios;

everywhere! {
    scenarios:
        one_has_the_turn_and_the_others_go_on_when_it_is_through
        whoever_gives_up_takes_only_its_own_away_and_the_next_round_is_whole
        what_a_dead_run_left_behind_does_not_count
        triggered_runs_meet_though_each_has_a_name_of_its_own
        a_disabled_shard_is_not_waited_for
        a_java_instance_waits_for_the_root_to_go
        a_java_instance_can_have_the_turn
        a_gate_that_is_cleared_too_early_is_told_at_once
        who_has_gone_on_is_not_waited_for
        when_the_one_with_the_turn_dies_another_one_has_it
        who_registered_for_the_next_round_meanwhile_stays_registered
        an_outage_ends_the_wait
        a_removed_job_is_not_brought_back;
    nodes:
        a_listener_is_called_once_before_any_shard_runs_and_once_after_all_have_ended
        one_that_does_not_come_is_told_and_the_job_runs_and_the_next_fire_is_whole_again
        a_listener_that_fails_is_told_and_the_job_runs;
}
