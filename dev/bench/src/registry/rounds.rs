//! Rounds in turns: whatever else the machine does falls on all.

use std::time::Duration;

use super::{
    contestant::Contestant,
    row::{Row, Sample},
};
use crate::{BoxError, stopwatch::Stopwatch};

/// How often a row is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    /// For how long whoever compiles while he runs does it before it counts; whoever does not, once.
    pub(super) warm_up: Duration,
    /// How often it counts.
    pub(super) counted: u32,
}

impl Rounds {
    /// The samples of each contestant.
    pub(super) async fn run(
        self,
        contestants: &[Contestant],
        row: Row,
    ) -> Result<Vec<Vec<Sample>>, BoxError> {
        for contestant in contestants {
            self.warm_up(contestant, row).await?;
        }
        let mut samples = vec![Vec::new(); contestants.len()];
        for round in 0..self.counted {
            for index in turn(round, contestants.len()) {
                let place = format!("/{row:?}-{round}");
                samples[index].push(go(&contestants[index], row, &place).await?);
            }
        }
        Ok(samples)
    }

    async fn warm_up(self, contestant: &Contestant, row: Row) -> Result<(), BoxError> {
        let stopwatch = Stopwatch::start();
        for round in 0.. {
            go(contestant, row, &format!("/{row:?}-warm-up-{round}")).await?;
            if !contestant.compiles_while_it_runs() || stopwatch.elapsed() >= self.warm_up {
                break;
            }
        }
        Ok(())
    }
}

async fn go(contestant: &Contestant, row: Row, place: &str) -> Result<Sample, BoxError> {
    let done = row.run(contestant.address(), place).await;
    Ok(done.map_err(|error| format!("{row} against {}: {error}", contestant.name()))?)
}

/// In which order `count` take part in a round: whoever was first is last in the next.
pub(super) fn turn(round: u32, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |index| if round.is_multiple_of(2) { index } else { count - 1 - index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_was_first_is_last_in_the_next_round() {
        assert_eq!(turn(0, 3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(turn(1, 3).collect::<Vec<_>>(), [2, 1, 0]);
    }
}
