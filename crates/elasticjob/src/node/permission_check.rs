//! A program's check whether a job may run with its current configuration.

use std::sync::Arc;

use crate::{
    execution::{Failure, Handler, RunSettings, Work},
    job::Job,
};

type CheckFn = dyn Fn(&Job) -> Result<(), Failure> + Send + Sync;

/// Checks whether a job may run. Called before every run, because the configuration can change between two runs.
pub(super) struct PermissionCheck(Arc<CheckFn>);

impl PermissionCheck {
    pub(super) fn new(check: impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    /// Wraps `work` so that it is checked before it is prepared.
    pub(super) fn wrap(self, work: Arc<dyn Work>) -> Arc<dyn Work> {
        Arc::new(CheckedWork { check: self.0, work })
    }
}

struct CheckedWork {
    check: Arc<CheckFn>,
    work: Arc<dyn Work>,
}

impl Work for CheckedWork {
    fn prepare(&self, setting: &RunSettings<'_>) -> Result<Arc<dyn Handler>, Failure> {
        (self.check)(setting.job).map_err(Failure::permanent)?;
        self.work.prepare(setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{IntoWork, ScriptWork};

    #[test]
    fn refused_work_is_not_prepared_and_not_retried() {
        let job = |line| Job::named("j").unwrap().prop("script.command.line", line).unwrap();
        let permission = PermissionCheck::new(|job| match job.props.get("script.command.line") {
            Some("echo") => Ok(()),
            _ => Err(Failure::new("not one of ours")),
        });

        let work = permission.wrap(ScriptWork::default().into_work());

        assert!(work.prepare(&RunSettings::of(&job("echo"))).is_ok());
        let refused = work.prepare(&RunSettings::of(&job("rm"))).err().unwrap();
        assert_eq!(
            (refused.to_string().as_str(), refused.is_permanent()),
            ("not one of ours", true)
        );
    }
}
