//! What stands for several measurements.

/// The one in the middle, so that a round somebody else's work fell into does not count; of an even number the lower one.
///
/// Zero for none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_measurement_does_not_move_the_median() {
        assert!((median([3.0, 1.0, 900.0, 2.0, 2.5]) - 2.5).abs() < f64::EPSILON);
        assert!((median([4.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median([]).abs() < f64::EPSILON);
    }
}
