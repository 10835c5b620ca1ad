//! What console and command line may ask and do, on memory, on tinykeeper and on a real ZooKeeper.

#[macro_use]
#[path = "../ground/everywhere.rs"]
mod everywhere;
mod asking;
mod editing;
mod explaining;
#[path = "../ground/mod.rs"]
mod ground;
mod looking;
mod removing;
mod site;
mod switching;

everywhere! {
    looking:
        the_console_sequence_of_a_java_job_reads_as_the_ancestors_does
        a_configuration_nobody_can_read_is_shown_and_hides_nobody
        a_job_that_is_not_ours_to_look_at_hides_nobody
        a_dump_is_the_ancestors_and_masks_addresses_whole
        a_thousand_jobs_are_listed_in_one_go;
    editing:
        a_plan_says_what_would_change_and_an_edit_that_lost_the_race_is_a_conflict_that_names_what_changed
        what_stands_there_on_behalf_of_others_stays
        a_zone_java_cannot_read_is_refused_while_java_is_a_member
        a_job_of_another_class_is_a_conflict_that_names_it;
    asking:
        a_trigger_goes_to_everybody_and_wipes_nothing
        chosen_shards_are_for_their_owners_and_never_for_java
        what_rust_runs_can_be_cancelled_and_what_java_runs_is_named;
    switching:
        a_disabled_job_stays_disabled_for_those_who_come_later
        a_server_is_switched_in_one_job_or_in_all_and_removed_when_nobody_is_on_it
        a_disabled_shard_is_shown_before_everything_else
        a_shut_down_job_has_no_members_and_its_shards_can_still_be_looked_at;
    removing:
        a_job_is_removed_whole_and_not_while_instances_live_unless_forced
        a_job_that_is_made_anew_while_it_is_removed_is_whole_or_not_there
        a_removed_job_that_is_too_large_for_one_transaction_is_gone_all_the_same;
    explaining:
        an_explanation_names_what_stands_in_the_way
        an_explanation_knows_what_was_due_and_what_became_of_it;
}
