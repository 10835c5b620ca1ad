//! A whole cluster in one thread, with everything the real world does to it, again and again from a seed.
//!
//! [`simulate`] runs three to seven nodes with one to three jobs of all policies on a tree in memory, in virtual time, and has them
//! crash, freeze, be cut off, be slow, hear late, lose answers, and have wrong clocks, while people configure, disable, trigger and shut
//! down. Then faults end, and everybody has some time. The same seed is the same story.

use std::{fmt, sync::Arc};

use elasticjob::coordination::flaw::Flaws;

use super::world::World;

/// What came of one seed.
#[derive(Debug, Clone)]
pub(super) struct Story {
    /// The seed.
    pub(super) seed: u64,
    /// The promises that were broken, the first one first.
    pub(super) violations: Vec<String>,
    /// How many shards began.
    pub(super) executions: usize,
    /// How many requests the registry got.
    pub(super) requests: u64,
    timeline: Vec<(std::time::Duration, String)>,
}

impl Story {
    /// A number that is the same for the same timeline, and hardly for another.
    pub(super) fn fingerprint(&self) -> u64 {
        let bytes = self.timeline.iter().flat_map(|(then, what)| {
            then.as_millis().to_le_bytes().into_iter().chain(what.bytes()).collect::<Vec<_>>()
        });
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The timeline, a line for each event.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        for (then, what) in &self.timeline {
            writeln!(f, "{:>5}.{:03} {what}", then.as_secs(), then.subsec_millis())?;
        }
        for violation in &self.violations {
            writeln!(f, "violated: {violation}")?;
        }
        Ok(())
    }
}

/// Lives through the story of this seed, with these precautions left out.
pub(super) fn simulate(seed: u64, flaws: Flaws) -> Story {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output");
    let book = runtime.block_on(async {
        let mut world = World::new(seed, flaws).await;
        world.run().await;
        if world.book.lock().violations.is_empty() {
            world.judge().await;
        }
        if world.book.lock().violations.is_empty() {
            world.close().await;
        }
        Arc::clone(&world.book)
    });
    // Whoever still runs ends here, and may note that.
    drop(runtime);
    let mut book = book.lock();
    // Taken out: who ran something holds the book, which would hold them for ever.
    Story {
        seed,
        violations: std::mem::take(&mut book.violations),
        executions: std::mem::take(&mut book.executions).len(),
        requests: book.requests,
        timeline: std::mem::take(&mut book.timeline),
    }
}
