//! Runs the servers in turns, so that other load on the machine affects all of them.

use std::time::Duration;

use super::{
    server_under_test::ServerUnderTest,
    workload::{Sample, Workload},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// How often a workload runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    /// Warm-up time of a server with a JIT compiler; the others warm up once.
    pub(super) warm_up: Duration,
    /// Number of measured rounds.
    pub(super) counted: u32,
}

impl Rounds {
    /// Returns the samples of each server.
    pub(super) async fn run(
        self,
        servers: &[ServerUnderTest],
        workload: Workload,
    ) -> Result<Vec<Vec<Sample>>, BoxError> {
        for server in servers {
            self.warm_up(server, workload).await?;
        }
        let mut samples = vec![Vec::new(); servers.len()];
        for round in 0..self.counted {
            for index in turn(round, servers.len()) {
                let parent = format!("/{workload:?}-{round}");
                samples[index].push(measure(&servers[index], workload, &parent).await?);
            }
        }
        Ok(samples)
    }

    async fn warm_up(self, server: &ServerUnderTest, workload: Workload) -> Result<(), BoxError> {
        let stopwatch = Stopwatch::start();
        for round in 0.. {
            measure(server, workload, &format!("/{workload:?}-warm-up-{round}")).await?;
            if !server.has_jit_compiler() || stopwatch.elapsed() >= self.warm_up {
                break;
            }
        }
        Ok(())
    }
}

async fn measure(
    server: &ServerUnderTest,
    workload: Workload,
    parent: &str,
) -> Result<Sample, BoxError> {
    let sample = workload.run(server.address(), parent).await;
    Ok(sample.map_err(|error| format!("{workload} against {}: {error}", server.name()))?)
}

/// The order of `count` participants in a round; it is reversed in every other round.
pub(super) fn turn(round: u32, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| if round.is_multiple_of(2) { index } else { count - 1 - index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_reversed_in_every_other_round() {
        assert_eq!(turn(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(turn(1, 3).collect::<Vec<_>>(), [2, 1, 0]);
    }
}
