//! History in real databases: the same tests run on each of them.

mod database;
mod events;
mod explain;
mod java_tables;
mod opening;
mod queries;
mod recorder;
mod retention;
mod writes;

/// Defines each test for every database.
macro_rules! on_every_database {
    ($($module:ident :: $test:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    crate::$module::$test(&crate::database::TestDatabase::sqlite()).await;
                }
            )*
        }

        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a real PostgreSQL: make test"]
                async fn $test() {
                    crate::$module::$test(&crate::database::TestDatabase::postgres().await).await;
                }
            )*
        }

        mod mariadb {
            $(
                #[tokio::test(flavor = "multi_thread")]
                #[ignore = "needs a real MariaDB: make test"]
                async fn $test() {
                    crate::$module::$test(&crate::database::TestDatabase::mariadb().await).await;
                }
            )*
        }
    };
}

on_every_database! {
    opening::several_processes_can_open_at_once,
    opening::reopening_changes_nothing,
    opening::foreign_table_is_refused_and_unchanged,
    opening::newer_tables_are_refused,
    opening::older_tables_are_upgraded,
    opening::runs_of_older_tables_keep_their_state,
    opening::reader_can_query_without_newest_index,
    opening::table_change_continues_after_caller_is_dropped,
    opening::missing_create_right_is_reported,
    opening::reader_can_query_but_not_write,
    opening::unreachable_database_error_has_hint_and_no_password,
    writes::run_state_follows_last_attempts_of_shards,
    writes::duplicate_event_is_stored_once,
    writes::end_stored_before_start_stays,
    writes::shard_completed_by_failover_is_done,
    writes::taken_over_attempt_is_lost_until_its_late_end,
    writes::lost_event_marks_attempts_of_earlier_claims,
    writes::open_attempt_is_lost_once_its_shard_starts_again,
    writes::run_without_every_expected_shard_is_incomplete,
    writes::run_whose_last_shard_just_ended_is_still_running,
    writes::concurrent_writers_agree_on_run_state,
    writes::long_values_are_truncated_and_stored,
    writes::output_can_be_read_while_run_continues,
    writes::cut_output_is_noted_once_and_stays_deleted,
    recorder::only_events_too_large_for_database_are_dropped,
    recorder::large_output_is_stored,
    recorder::spilled_events_go_to_their_own_database_only,
    recorder::dropped_tables_are_created_again,
    recorder::unsupported_character_changes_only_its_message,
    java_tables::java_rows_are_listed,
    java_tables::java_queries_find_our_rows,
    java_tables::java_can_write_into_our_tables,
    queries::pages_continue_without_gaps_or_duplicates,
    queries::runs_are_filtered,
    queries::executions_and_traces_are_filtered,
    queries::figures_have_counts_durations_and_delays,
    queries::overview_queries_cover_many_jobs,
    queries::similar_failures_form_one_group,
    queries::buckets_count_runs_per_interval_and_state,
    queries::missed_fires_are_listed,
    queries::coalesced_fires_are_not_counted_as_missed,
    queries::gap_reported_by_several_instances_is_stored_once,
    explain::past_fire_is_explained_from_history,
    retention::old_runs_are_deleted_and_failures_kept_longer,
    retention::old_orphans_are_deleted,
    retention::orphans_are_deleted_in_several_steps,
    retention::only_last_runs_of_each_job_are_kept,
    retention::java_rows_are_deleted_only_if_requested,
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real MariaDB: make test"]
async fn insert_succeeds_when_java_auto_increment_is_exhausted() {
    java_tables::exhausted_auto_increment_is_widened(&database::TestDatabase::mariadb().await)
        .await;
}
