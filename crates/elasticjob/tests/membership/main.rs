//! Several instances in one job, on memory, on tinykeeper and on a real ZooKeeper.

#[macro_use]
#[path = "../ground/everywhere.rs"]
mod everywhere;
mod asking;
mod claiming;
mod cluster;
mod dealing;
mod failover;
#[path = "../ground/mod.rs"]
mod ground;

everywhere! {
    dealing:
        nine_shards_over_three_instances_are_three_each_and_every_fire_runs_every_shard_once
        more_shards_than_fit_into_one_request_are_dealt
        one_that_joins_gets_its_share_and_one_that_leaves_gives_its_share_back
        a_running_shard_keeps_its_owner_and_moves_when_its_run_is_over
        a_disabled_server_leads_nothing_and_owns_nothing
        a_changed_total_is_told_and_dealt
        a_configuration_nobody_can_read_changes_nothing
        what_is_stored_wins_and_the_drift_is_told;
    claiming:
        a_fire_is_not_run_twice_however_often_it_is_claimed
        a_mark_that_a_run_was_missed_runs_nothing_once_the_last_fire_has_run
        a_fire_that_falls_between_two_clocks_is_made_up_for
        a_disabled_item_is_not_claimed
        a_claim_that_is_taken_away_is_told_to_whoever_runs_it
        without_monitoring_the_ledger_keeps_two_from_running_one_shard
        what_ended_fenced_while_its_session_lives_can_run_again
        a_mark_for_a_run_that_has_begun_is_no_second_run
        a_claim_that_was_taken_away_does_not_stay_in_the_ledger;
    asking:
        a_trigger_is_taken_and_told
        an_instance_that_is_taken_out_is_told_and_starts_nothing_more_but_still_releases
        an_instance_whose_session_is_ending_does_not_take_it_for_a_shutdown
        a_trigger_waits_until_the_shard_is_free_and_leaves_no_mark
        a_running_shard_can_be_cancelled_from_outside;
    failover:
        what_a_dead_instance_ran_is_taken_over_once_and_its_own_try_is_counted
        the_next_regular_run_makes_up_for_what_nobody_took_over
        an_instance_that_was_shut_down_and_still_runs_is_not_dead
        what_is_not_given_back_by_a_dead_one_without_failover_runs_at_its_next_fire
        what_java_left_behind_is_cleared_after_a_moment
        a_takeover_that_ends_after_a_gap_leaves_nothing_behind
        what_java_flagged_is_no_second_try_of_what_has_ended
        what_was_lost_while_it_was_disabled_is_taken_over_when_it_is_enabled
        a_flagged_shard_that_somebody_has_in_hand_is_settled_unless_they_die_with_it;
}
