//! Counts of values by bucket.

#[derive(Debug, Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    /// Values per bucket, not cumulative.
    counts: Vec<u64>,
    sum: f64,
    /// All values, including those above the last bound.
    count: u64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], sum: 0.0, count: 0 }
    }

    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        if let Some(index) = self.bounds.iter().position(|bound| value <= *bound) {
            self.counts[index] += 1;
        }
    }

    /// The bounds, each with the number of values up to it.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut cumulative = 0;
        self.bounds.iter().zip(&self.counts).map(move |(bound, count)| {
            cumulative += count;
            (*bound, cumulative)
        })
    }

    pub(super) fn sum(&self) -> f64 {
        self.sum
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
