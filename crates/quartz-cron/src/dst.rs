//! Daylight saving rules.

use std::{fmt, str::FromStr};

/// What a schedule does when its local clock jumps forward or is turned back.
///
/// ```
/// use quartz_cron::Dst;
///
/// assert_eq!("quartz".parse(), Ok(Dst::Quartz));
/// assert_eq!(Dst::default().to_string(), "default");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dst {
    /// A clock change causes no silent hour in a schedule that is an interval, and drops no time of day.
    ///
    /// A schedule whose hours are `*` or have a step is an interval: it fires in both passes of a repeated hour and continues after a
    /// skipped one. Any other schedule is a set of times of day: a repeated one fires in the first pass only, a skipped one fires at the
    /// moment of the jump; several that are skipped together become one fire.
    #[default]
    Default,
    /// As Quartz 2.3.2: a repeated hour fires in its second pass only, so nothing fires during the first; a skipped time does not fire,
    /// and sometimes later fires are lost with it.
    Quartz,
}

/// Text that is not a daylight saving rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("DST rule {text:?} is unknown")]
pub struct DstError {
    pub text: String,
    pub hint: String,
}

impl FromStr for Dst {
    type Err = DstError;

    fn from_str(text: &str) -> Result<Self, DstError> {
        match text {
            "default" => Ok(Dst::Default),
            "quartz" => Ok(Dst::Quartz),
            _ => Err(DstError { text: text.to_owned(), hint: "use default or quartz".to_owned() }),
        }
    }
}

impl fmt::Display for Dst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Dst::Default => "default",
            Dst::Quartz => "quartz",
        })
    }
}
