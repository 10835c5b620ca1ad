//! A short storm in every test run; `make chaos` raises a long one.

use std::{path::Path, time::Duration};

use chaos::{Aftermath, Storm};

/// Another storm each time would be another test each time; `make chaos` draws a seed.
const SEED: u64 = 20_261_115;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real ZooKeeper and a real PostgreSQL: make test"]
async fn nothing_is_lost_and_nothing_runs_twice_in_a_storm() {
    let storm = Storm {
        program: env!("CARGO_BIN_EXE_chaos").into(),
        logs: Path::new(env!("CARGO_TARGET_TMPDIR")).join("storm"),
        workers: 4,
        lasts: Duration::from_secs(40),
        seed: SEED,
    };

    let Aftermath { findings, faults } = storm.run().await.unwrap();

    assert!(findings.wrong.is_empty(), "{faults:#?}\n{findings}");
    assert!(findings.refused > 0, "nobody tried a stale write: this shows nothing\n{findings}");
    assert!(findings.taken_over > 0, "nobody died in the middle: this shows nothing\n{findings}");
}
