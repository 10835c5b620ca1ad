//! Checks the difference between this machine's clock and the registry's.

use crate::{
    admin::JobSummary,
    coordination::{clock_skew, tree::JobTree},
    job::JobName,
    registry::Registry,
    runtime::SystemClock,
};
use jiff::SignedDuration;

use super::{Check, Finding};

/// A larger difference is noticeable in when jobs start.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

pub(super) async fn check(registry: &dyn Registry, jobs: &[JobSummary]) -> Option<Finding> {
    // Measured as Java ElasticJob does, which needs a job that can be read.
    let job = jobs.iter().find(|job| job.problem.is_none())?;
    let name: JobName = job.name.parse().ok()?;
    let tree = JobTree::new(registry.namespace(), &name).ok()?;
    Some(match clock_skew::measure(registry, &SystemClock, &tree).await {
        Ok(ahead) => evaluate(ahead),
        Err(error) => Finding::fact(Check::Clock, None, format!("it cannot be measured: {error}")),
    })
}

fn evaluate(ahead: SignedDuration) -> Finding {
    let (milliseconds, side) =
        (ahead.as_millis(), if ahead.is_negative() { "behind" } else { "ahead of" });
    let message = format!("this machine is {} ms {side} the registry", milliseconds.unsigned_abs());
    if ahead.abs() > TOLERANCE {
        let hint = "synchronize both with a time server, and the machines that run jobs, too";
        return Finding::problem(Check::Clock, None, message, hint);
    }
    Finding::fact(Check::Clock, None, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_difference_of_one_second_is_tolerated_in_either_direction() {
        for (milliseconds, is_problem, message) in [
            (-1001, true, "this machine is 1001 ms behind the registry"),
            (-1000, false, "this machine is 1000 ms behind the registry"),
            (7, false, "this machine is 7 ms ahead of the registry"),
            (90_000, true, "this machine is 90000 ms ahead of the registry"),
        ] {
            let finding = evaluate(SignedDuration::from_millis(milliseconds));

            assert_eq!((finding.is_problem, &*finding.message), (is_problem, message));
        }
    }
}
