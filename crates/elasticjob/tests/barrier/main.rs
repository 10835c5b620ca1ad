//! Where the shards of a fire meet, on memory, on tinykeeper and on a real ZooKeeper.

#[path = "../ground/mod.rs"]
mod ground;
mod nodes;
mod scenarios;

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use elasticjob::{
    registry::memory::MemoryServer, runtime::SystemClock, testing::conformance::MemoryGround,
};
use ground::Wire;
use testbed::ZooKeeper;
use tinykeeper::server::{Config, Server};

// One server for all scenarios: each has a namespace of its own. It ends with the process.
static ZOOKEEPER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const SESSION: Duration = Duration::from_secs(10);

/// Makes every scenario a test on one ground.
macro_rules! scenarios_on {
    ($name:ident, $ground:expr, $(#[$attribute:meta])* : $($module:ident::$scenario:ident)*) => {
        mod $name {
            use super::*;

            scenarios_on! { @each [$(#[$attribute])*] ($ground) $($module::$scenario)* }
        }
    };
    (@each [$($attributes:tt)*] ($ground:expr) $module:ident::$scenario:ident $($more:ident::$rest:ident)*) => {
        $($attributes)*
        #[tokio::test]
        async fn $scenario() {
            $module::$scenario(&$ground).await;
        }

        scenarios_on! { @each [$($attributes)*] ($ground) $($more::$rest)* }
    };
    (@each [$($attributes:tt)*] ($ground:expr)) => {};
}

macro_rules! everywhere {
    ($($module:ident::$scenario:ident)*) => {
        scenarios_on!(in_memory, MemoryGround::new(MemoryServer::new(Arc::new(SystemClock))), : $($module::$scenario)*);
        scenarios_on!(on_tinykeeper, tinykeeper_ground().await, : $($module::$scenario)*);
        scenarios_on!(
            on_zookeeper,
            Wire { servers: vec![ZOOKEEPER.address()], _keep: (), session_timeout: SESSION },
            #[ignore = "needs a real ZooKeeper: make test"] : $($module::$scenario)*
        );
    };
}

async fn tinykeeper_ground() -> Wire<Server> {
    let server = Server::start(Config::ephemeral()).await.unwrap();
    Wire { servers: vec![server.address()], _keep: server, session_timeout: SESSION }
}

everywhere! {
    scenarios::one_has_the_turn_and_the_others_go_on_when_it_is_through
    scenarios::whoever_gives_up_takes_only_its_own_away_and_the_next_round_is_whole
    scenarios::what_a_dead_run_left_behind_does_not_count
    scenarios::triggered_runs_meet_though_each_has_a_name_of_its_own
    scenarios::a_disabled_shard_is_not_waited_for
    scenarios::a_java_instance_waits_for_the_root_to_go
    scenarios::a_java_instance_can_have_the_turn
    scenarios::a_gate_that_is_cleared_too_early_is_told_at_once
    scenarios::who_has_gone_on_is_not_waited_for
    scenarios::when_the_one_with_the_turn_dies_another_one_has_it
    scenarios::who_registered_for_the_next_round_meanwhile_stays_registered
    scenarios::an_outage_ends_the_wait
    scenarios::a_removed_job_is_not_brought_back
    nodes::a_listener_is_called_once_before_any_shard_runs_and_once_after_all_have_ended
    nodes::one_that_does_not_come_is_told_and_the_job_runs_and_the_next_fire_is_whole_again
    nodes::a_listener_that_fails_is_told_and_the_job_runs
}
