//! A short storm in every test run; `make chaos` runs a long one.

use std::{path::Path, time::Duration};

use chaos::{Storm, StormReport};

/// Fixed, so that every test run injects the same faults; `make chaos` draws a new seed.
const SEED: u64 = 20_261_115;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper and a real PostgreSQL: make test"]
async fn storm_loses_no_fire_and_runs_no_shard_twice() {
    let storm = Storm {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join("storm"),
        workers: 4,
        duration: Duration::from_secs(40),
        seed: SEED,
    };

    let StormReport { findings, faults } = storm.run().await.unwrap();

    assert!(findings.violations.is_empty(), "{faults:#?}\n{findings}");
    assert!(findings.refused > 0, "inconclusive: no stale write was refused\n{findings}");
    assert!(findings.taken_over > 0, "inconclusive: no failover\n{findings}");
}
