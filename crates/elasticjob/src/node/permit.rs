//! Who may run, as the configuration is now.

use std::sync::Arc;

use crate::{
    execution::{Failure, Handler, Setting, Work},
    job::Job,
};

type May = dyn Fn(&Job) -> Result<(), Failure> + Send + Sync;

/// Asked before every run, because a configuration can change between two.
pub(super) struct Permit(Arc<May>);

impl Permit {
    pub(super) fn new(may: impl Fn(&Job) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self(Arc::new(may))
    }

    /// The work, which now asks first.
    pub(super) fn over(self, work: Arc<dyn Work>) -> Arc<dyn Work> {
        Arc::new(Permitted { may: self.0, work })
    }
}

struct Permitted {
    may: Arc<May>,
    work: Arc<dyn Work>,
}

impl Work for Permitted {
    fn prepare(&self, setting: &Setting<'_>) -> Result<Arc<dyn Handler>, Failure> {
        (self.may)(setting.job).map_err(Failure::lasting)?;
        self.work.prepare(setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::{IntoWork, ScriptWork};

    #[test]
    fn what_is_refused_is_not_prepared_and_not_tried_again() {
        let job = |line| Job::named("j").unwrap().prop("script.command.line", line).unwrap();
        let permit = Permit::new(|job| match job.props.get("script.command.line") {
            Some("echo") => Ok(()),
            _ => Err(Failure::new("not one of ours")),
        });

        let work = permit.over(ScriptWork::default().into_work());

        assert!(work.prepare(&Setting::of(&job("echo"))).is_ok());
        let refused = work.prepare(&Setting::of(&job("rm"))).err().unwrap();
        assert_eq!((refused.to_string().as_str(), refused.is_lasting()), ("not one of ours", true));
    }
}
