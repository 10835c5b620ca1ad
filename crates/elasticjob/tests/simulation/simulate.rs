//! Runs the simulation of one seed and collects its result.
//!
//! The whole cluster runs in one thread, on a registry in memory, in virtual time. The same seed always gives the same timeline.

use std::{fmt, sync::Arc};

use elasticjob::coordination::flaw::Flaws;

use super::world::World;

/// The result of simulating one seed.
#[derive(Debug, Clone)]
pub(super) struct SimulationReport {
    pub(super) seed: u64,
    /// The guarantees that were violated, in the order in which that was noticed.
    pub(super) violations: Vec<String>,
    /// Number of handler calls.
    pub(super) executions: usize,
    /// Number of requests to the registry.
    pub(super) requests: u64,
    /// The most jobs in one request whose response was lost.
    pub(super) largest_lost_batch: usize,
    timeline: Vec<(std::time::Duration, String)>,
}

impl SimulationReport {
    /// FNV-1a hash of the timeline.
    pub(super) fn fingerprint(&self) -> u64 {
        let bytes = self.timeline.iter().flat_map(|(then, message)| {
            then.as_millis().to_le_bytes().into_iter().chain(message.bytes()).collect::<Vec<_>>()
        });
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The timeline, one line for each event, then the violations.
impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (then, message) in &self.timeline {
            writeln!(f, "{:>5}.{:03} {message}", then.as_secs(), then.subsec_millis())?;
        }
        for violation in &self.violations {
            writeln!(f, "violation: {violation}")?;
        }
        Ok(())
    }
}

/// Simulates this seed, with the precautions in `flaws` left out of the protocol.
pub(super) fn simulate(seed: u64, flaws: Flaws) -> SimulationReport {
    run(seed, World::new(seed, flaws))
}

/// Simulates three nodes with so many jobs, all due at the same time.
pub(super) fn simulate_crowd(seed: u64, jobs: usize) -> SimulationReport {
    run(seed, World::crowded(seed, jobs))
}

fn run(seed: u64, world: impl Future<Output = World>) -> SimulationReport {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("runtime without I/O");
    let oracle = runtime.block_on(async {
        let mut world = world.await;
        world.run().await;
        if world.oracle.lock().violations.is_empty() {
            world.run_final_checks().await;
        }
        if world.oracle.lock().violations.is_empty() {
            world.stop_all().await;
        }
        Arc::clone(&world.oracle)
    });
    // Dropping the runtime drops the tasks that still run; their handlers report that to the oracle.
    drop(runtime);
    let mut oracle = oracle.lock();
    // Executions are taken out because they hold connections, which hold the oracle: the cycle would never be freed.
    SimulationReport {
        seed,
        violations: std::mem::take(&mut oracle.violations),
        executions: std::mem::take(&mut oracle.executions).len(),
        requests: oracle.requests,
        largest_lost_batch: oracle.largest_lost_batch,
        timeline: std::mem::take(&mut oracle.timeline),
    }
}
