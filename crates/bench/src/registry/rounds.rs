//! Rounds in turns: whatever else the machine does falls on both.

use super::{
    contestant::Contestant,
    row::{Row, Sample},
};
use crate::BoxError;

/// How many.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rounds {
    /// Come first and do not count.
    pub(super) warm_up: u32,
    pub(super) counted: u32,
}

impl Rounds {
    /// All rounds; whoever began the last one is second in the next. Says whether it counts.
    pub(super) fn all(self) -> impl Iterator<Item = (u32, bool)> {
        (0..self.warm_up + self.counted).map(move |round| (round, round >= self.warm_up))
    }

    /// The samples of each contestant.
    pub(super) async fn run(
        self,
        contestants: &[Contestant],
        row: Row,
    ) -> Result<Vec<Vec<Sample>>, BoxError> {
        let mut samples = vec![Vec::new(); contestants.len()];
        for (round, counts) in self.all() {
            let place = format!("/{row:?}-{round}");
            for index in turn(round, contestants.len()) {
                let contestant = &contestants[index];
                let (w, c0) = (crate::stopwatch::Stopwatch::start(), cpu(contestant.pid()));
                let sample = row.run(contestant.address(), &place).await.map_err(|error| {
                    format!("{row} against {}, round {round}: {error}", contestant.name())
                })?;
                eprintln!("{row:?} {} {index} rate {:.0} client {:?} server {}0ms", contestant.name(), sample.per_second, w.busy(), cpu(contestant.pid()) - c0);
                if counts {
                    samples[index].push(sample);
                }
            }
        }
        Ok(samples)
    }
}

/// In which order `count` take part in a round.
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

    #[test]
    fn only_rounds_after_the_warm_up_count() {
        let rounds = Rounds { warm_up: 1, counted: 2 };

        assert_eq!(rounds.all().collect::<Vec<_>>(), [(0, false), (1, true), (2, true)]);
    }
}

fn cpu(pid: u32) -> u64 {
    let st = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let f: Vec<&str> = st.rsplit_once(") ").unwrap().1.split(' ').collect();
    f[11].parse::<u64>().unwrap() + f[12].parse::<u64>().unwrap()
}
