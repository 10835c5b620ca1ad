//! Linear models of a cost: fitted by least squares, and asked for a prediction.

use std::fmt::{self, Write as _};

/// A number of jobs, the shards of each, and the processes that take part in every job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) jobs: f64,
    pub(super) shards: f64,
    pub(super) instances: f64,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "J = {}, S = {}, I = {}", self.jobs, self.shards, self.instances)
    }
}

/// What a cost may grow with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    Constant,
    Jobs,
    JobShards,
    JobInstances,
}

impl Term {
    fn of(self, size: Size) -> f64 {
        match self {
            Term::Constant => 1.0,
            Term::Jobs => size.jobs,
            Term::JobShards => size.jobs * size.shards,
            Term::JobInstances => size.jobs * size.instances,
        }
    }

    fn symbol(self) -> &'static str {
        match self {
            Term::Constant => "",
            Term::Jobs => "J",
            Term::JobShards => "J·S",
            Term::JobInstances => "J·I",
        }
    }
}

/// A cost as a sum of terms.
#[derive(Debug)]
pub(super) struct Model {
    terms: Vec<(Term, f64)>,
}

impl Model {
    /// Minimises the relative errors, so that a small size counts as much as a large one. There must be at least as many measurements as terms.
    pub(super) fn fit(terms: &[Term], measured: &[(Size, f64)]) -> Self {
        let count = terms.len();
        // The normal equations, with the right side as the last column.
        let mut rows = vec![vec![0.0; count + 1]; count];
        for (size, value) in measured {
            let weight = 1.0 / value.abs().max(1.0);
            let features: Vec<f64> = terms.iter().map(|term| term.of(*size) * weight).collect();
            for row in 0..count {
                for column in 0..count {
                    rows[row][column] += features[row] * features[column];
                }
                rows[row][count] += features[row] * value * weight;
            }
        }
        Self { terms: terms.iter().copied().zip(solve(rows)).collect() }
    }

    pub(super) fn predict(&self, size: Size) -> f64 {
        self.terms.iter().map(|(term, factor)| factor * term.of(size)).sum()
    }

    /// The formula with rounded factors.
    pub(super) fn formula(&self) -> String {
        let mut formula = String::new();
        for (term, factor) in &self.terms {
            let number = round(factor.abs());
            if number == "0" {
                continue;
            }
            let sign = match (formula.is_empty(), *factor < 0.0) {
                (true, false) => "",
                (true, true) => "−",
                (false, false) => " + ",
                (false, true) => " − ",
            };
            let product = if *term == Term::Constant { "" } else { "·" };
            // Writing to a string cannot fail.
            let _ = write!(formula, "{sign}{number}{product}{}", term.symbol());
        }
        if formula.is_empty() { "0".to_owned() } else { formula }
    }
}

/// Solves linear equations whose right side is the last column.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let count = rows.len();
    for pivot in 0..count {
        let largest = (pivot..count)
            .max_by(|one, other| rows[*one][pivot].abs().total_cmp(&rows[*other][pivot].abs()));
        rows.swap(pivot, largest.unwrap_or(pivot));
        let above = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(number, _)| *number != pivot) {
            let factor = row[pivot] / above[pivot];
            for (value, above) in row.iter_mut().zip(&above) {
                *value -= factor * above;
            }
        }
    }
    (0..count).map(|row| rows[row][count] / rows[row][row]).collect()
}

/// About three significant digits.
fn round(number: f64) -> String {
    match number {
        _ if number < 0.000_5 => "0".to_owned(),
        _ if number < 0.1 => format!("{number:.4}"),
        _ if number < 10.0 => format!("{number:.2}"),
        _ if number < 100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_finds_the_factors_that_made_the_numbers() {
        let sizes = [(100.0, 2.0, 1.0), (200.0, 4.0, 2.0), (400.0, 8.0, 3.0)]
            .map(|(jobs, shards, instances)| Size { jobs, shards, instances });
        let cost = |size: Size| size.jobs * (7.0 + 2.0 * size.shards + 0.5 * size.instances);
        let measured = sizes.map(|size| (size, cost(size)));

        let model = Model::fit(&[Term::Jobs, Term::JobShards, Term::JobInstances], &measured);

        let other = Size { jobs: 1_000.0, shards: 6.0, instances: 5.0 };
        assert!((model.predict(other) - cost(other)).abs() < 1e-3);
        assert_eq!(model.formula(), "7.00·J + 2.00·J·S + 0.50·J·I");
    }

    #[test]
    fn more_measurements_than_terms_are_averaged() {
        let size = |jobs| Size { jobs, shards: 1.0, instances: 1.0 };
        let measured = [(size(10.0), 95.0), (size(10.0), 105.0)];

        let model = Model::fit(&[Term::Jobs], &measured);

        assert!((model.predict(size(20.0)) - 200.0).abs() < 3.0);
    }
}
