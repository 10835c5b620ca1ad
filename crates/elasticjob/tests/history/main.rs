//! History in real databases: the same promises on each of them.

mod ancestor;
mod asking;
mod explaining;
mod forgetting;
mod ground;
mod keeping;
mod opening;
mod story;

/// Makes the promises tests on every database.
macro_rules! on_every_database {
    ($($room:ident :: $promise:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $promise() {
                    crate::$room::$promise(&crate::ground::Ground::sqlite()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a real PostgreSQL: make test"]
                async fn $promise() {
                    crate::$room::$promise(&crate::ground::Ground::postgres().await).await;
                }
            )*
        }

        mod mariadb {
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a real MariaDB: make test"]
                async fn $promise() {
                    crate::$room::$promise(&crate::ground::Ground::mariadb().await).await;
                }
            )*
        }
    };
}

on_every_database! {
    opening::several_may_open_it_at_once,
    opening::opening_again_changes_nothing,
    opening::somebody_elses_table_is_left_alone_and_told,
    opening::tables_of_a_later_version_are_left_alone,
    opening::who_may_not_make_tables_is_told_which_rights_are_missing,
    opening::who_may_only_read_can_ask_and_not_keep,
    opening::nobody_there_is_told_with_a_way_out_and_without_the_password,
    keeping::a_run_is_what_the_last_attempts_of_its_shards_are,
    keeping::an_event_told_twice_is_kept_once,
    keeping::an_end_told_before_its_beginning_stays_an_end,
    keeping::a_shard_that_another_instance_made_good_is_done,
    keeping::an_attempt_that_was_taken_over_is_lost_and_its_late_end_counts,
    keeping::an_attempt_is_lost_as_soon_as_somebody_tells_that_its_instance_is_gone,
    keeping::a_run_that_nobody_ends_is_lost_once_its_shard_has_begun_again,
    keeping::two_processes_that_tell_of_one_run_agree_on_it,
    keeping::what_has_no_room_is_cut_and_nothing_stops_a_batch,
    keeping::what_is_printed_can_be_read_while_it_is_printed,
    keeping::what_was_cut_from_the_output_is_noted_once_and_stays_away,
    ancestor::what_it_wrote_is_listed,
    ancestor::what_we_write_answers_its_questions,
    ancestor::it_goes_on_writing_into_our_tables,
    asking::every_page_begins_where_the_last_one_ended,
    asking::runs_are_found_by_what_is_asked_of_them,
    asking::executions_and_traces_are_found_by_what_is_asked_of_them,
    asking::figures_say_how_often_how_long_and_how_late,
    asking::many_jobs_are_seen_at_a_glance,
    asking::failures_that_say_the_same_are_one_group,
    asking::a_chart_gets_its_counts,
    asking::fires_that_did_not_run_are_listed,
    asking::a_gap_that_several_instances_tell_of_is_one,
    explaining::a_fire_of_long_ago_is_explained,
    forgetting::old_runs_go_with_all_that_is_theirs_and_failures_stay_longer,
    forgetting::of_each_job_so_many_runs_are_kept,
    forgetting::what_others_wrote_is_left_alone_unless_it_is_asked_for,
}
