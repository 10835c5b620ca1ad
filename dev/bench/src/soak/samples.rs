//! Samples of processes over time, and how much they grow.

use std::{fmt::Write as _, time::Duration};

use super::worker_process::metric;
use crate::{
    BoxError,
    process::{open_files, resident, threads},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Memory,
    Files,
    Threads,
    Tasks,
}

const MEASURES: [Measure; 4] = [Measure::Memory, Measure::Files, Measure::Threads, Measure::Tasks];

/// What one process has at one moment, in the order of [`MEASURES`]; `None` if it cannot tell.
type Sample = [Option<f64>; 4];

pub(super) struct Samples {
    processes: Vec<Process>,
    times: Vec<Duration>,
}

struct Process {
    name: &'static str,
    pid: u32,
    /// Where its metrics are, if it has any.
    metrics: Option<String>,
    samples: Vec<Sample>,
}

/// How much one measure of one process grew.
pub(super) struct Growth {
    pub(super) process: &'static str,
    pub(super) measure: Measure,
    pub(super) first: f64,
    pub(super) last: f64,
    pub(super) value: f64,
    pub(super) limit: f64,
}

impl Samples {
    pub(super) fn new(processes: &[(&'static str, u32, Option<&str>)]) -> Self {
        let process = |(name, pid, metrics): &(&'static str, u32, Option<&str>)| Process {
            name,
            pid: *pid,
            metrics: metrics.map(ToOwned::to_owned),
            samples: Vec::new(),
        };
        Self { processes: processes.iter().map(process).collect(), times: Vec::new() }
    }

    pub(super) fn take(&mut self, at: Duration) -> Result<(), BoxError> {
        for process in &mut self.processes {
            let tasks = match &process.metrics {
                Some(address) => Some(metric(address, "elasticjob_tasks")?),
                None => None,
            };
            let sample = [
                Some(resident(process.pid)?),
                Some(count(open_files(process.pid)?)),
                Some(count(threads(process.pid)?)),
                tasks,
            ];
            process.samples.push(sample);
        }
        self.times.push(at);
        Ok(())
    }

    pub(super) fn last_line(&self) -> String {
        let mut line = self.times.last().map(|at| minutes(*at)).unwrap_or_default();
        for process in &self.processes {
            let sample = process.samples.last().map(cell).unwrap_or_default();
            // Writing to a string cannot fail.
            let _ = write!(line, "   {} {sample}", process.name);
        }
        line
    }

    /// A table with at most `rows` samples, evenly spread.
    pub(super) fn table(&self, rows: usize) -> Vec<String> {
        let names: Vec<&str> = self.processes.iter().map(|process| process.name).collect();
        let mut lines = vec![
            format!("| minute | {} |", names.join(" | ")),
            format!("|---|{}", "---|".repeat(names.len())),
        ];
        let count = self.times.len();
        let step = count.div_ceil(rows.max(1)).max(1);
        for index in (0..count).filter(|index| index % step == 0 || index + 1 == count) {
            let cells: Vec<String> =
                self.processes.iter().map(|process| cell(&process.samples[index])).collect();
            lines.push(format!("| {} | {} |", minutes(self.times[index]), cells.join(" | ")));
        }
        lines
    }

    /// The growth of every measure from `since` on.
    pub(super) fn growth(&self, since: Duration) -> Vec<Growth> {
        let mut all = Vec::new();
        for process in &self.processes {
            for (index, measure) in MEASURES.into_iter().enumerate() {
                let points = self.times.iter().zip(&process.samples);
                let points = points.filter(|(at, _)| **at >= since);
                let points: Vec<(f64, f64)> = points
                    .filter_map(|(at, sample)| Some((at.as_secs_f64(), sample[index]?)))
                    .collect();
                let (Some((_, first)), Some((_, last))) = (points.first(), points.last()) else {
                    continue;
                };
                let (first, last) = (*first, *last);
                let value = growth(&points);
                all.push(Growth {
                    process: process.name,
                    measure,
                    first,
                    last,
                    value,
                    limit: limit(measure, first),
                });
            }
        }
        all
    }
}

/// What is noise: the allocator keeps pages, and pools of threads and connections breathe.
fn limit(measure: Measure, first: f64) -> f64 {
    match measure {
        Measure::Memory => 3.0 + 0.05 * first,
        Measure::Files => 6.0,
        Measure::Threads => 4.0,
        Measure::Tasks => 10.0,
    }
}

/// The slope of the least-squares line through the points, times the time they span.
fn growth(points: &[(f64, f64)]) -> f64 {
    let count = count(points.len());
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let span =
        points.last().map_or(0.0, |last| last.0) - points.first().map_or(0.0, |first| first.0);
    if variance > 0.0 { covariance / variance * span } else { 0.0 }
}

fn cell(sample: &Sample) -> String {
    let [memory, counts @ ..] = sample;
    let counts =
        counts.iter().map(|value| value.map_or("–".to_owned(), |value| format!("{value:.0}")));
    let memory = format!("{:.1}", memory.unwrap_or_default());
    [memory].into_iter().chain(counts).collect::<Vec<_>>().join(" / ")
}

fn minutes(at: Duration) -> String {
    format!("{:.1}", at.as_secs_f64() / 60.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts here are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_slope_over_the_whole_time_and_noise_is_none() {
        let leak: Vec<(f64, f64)> =
            (0..60).map(|at| (f64::from(at), 100.0 + 0.5 * f64::from(at))).collect();
        let noise: Vec<(f64, f64)> =
            (0..60).map(|at| (f64::from(at), 100.0 + f64::from(at % 2))).collect();

        assert!((growth(&leak) - 29.5).abs() < 1e-6);
        assert!(growth(&noise).abs() < 0.1, "{}", growth(&noise));
        assert!(growth(&[]).abs() < f64::EPSILON && growth(&leak[..1]).abs() < f64::EPSILON);
    }

    #[test]
    fn leak_is_above_the_limit_and_one_process_is_judged_by_itself() {
        let mut samples = Samples::new(&[("console", 1, None), ("worker 1", 2, None)]);
        for at in 0..60_u32 {
            samples.times.push(Duration::from_secs(at.into()));
            let leaking = 50.0 + f64::from(at);
            samples.processes[0].samples.push([Some(50.0), Some(9.0), Some(4.0), None]);
            samples.processes[1].samples.push([Some(leaking), Some(9.0), Some(4.0), Some(7.0)]);
        }

        let growing: Vec<(&str, Measure)> = samples
            .growth(Duration::from_secs(10))
            .into_iter()
            .filter(|growth| growth.value > growth.limit)
            .map(|growth| (growth.process, growth.measure))
            .collect();

        assert_eq!(growing, [("worker 1", Measure::Memory)]);
    }
}
