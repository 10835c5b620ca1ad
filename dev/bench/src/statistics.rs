//! Median and ratio of repeated measurements.

/// The middle value, so that a round disturbed by other programs does not count; the lower of the two middle values for an even number.
///
/// Zero for no values.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

/// The median of the quotients `ours / theirs`, round by round. A machine that becomes busy halfway through slows both values of a quotient, but may
/// change the median of one side only.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_that_becomes_busy_does_not_change_the_ratio() {
        let theirs = [100.0, 100.0, 50.0, 50.0, 50.0];
        let ours = [200.0, 200.0, 200.0, 100.0, 100.0];

        assert!((ratio(&ours, &theirs) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn one_outlier_does_not_change_the_median() {
        assert!((median([3.0, 1.0, 900.0, 2.0, 2.5]) - 2.5).abs() < f64::EPSILON);
        assert!((median([4.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median([]).abs() < f64::EPSILON);
    }
}
