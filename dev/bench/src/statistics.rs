//! What stands for several measurements.

/// The one in the middle, so that a round somebody else's work fell into does not count; of an even number the lower one.
///
/// Zero for none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// By how much ours are larger than theirs: the median of the quotients, round by round. A machine that gets busy half way
/// through slows both sides of a quotient; it may well slow the median of one side only.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_gets_busy_does_not_move_the_ratio() {
        let theirs = [100.0, 100.0, 50.0, 50.0, 50.0];
        let ours = [200.0, 200.0, 200.0, 100.0, 100.0];

        assert!((ratio(&ours, &theirs) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn one_wild_measurement_does_not_move_the_median() {
        assert!((median([3.0, 1.0, 900.0, 2.0, 2.5]) - 2.5).abs() < f64::EPSILON);
        assert!((median([4.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median([]).abs() < f64::EPSILON);
    }
}
