//! What happens while the clocks are changed.

use std::{fmt, str::FromStr};

/// The rule a schedule follows when its local clock jumps forward or is turned back.
///
/// ```
/// use elasticjob::schedule::Dst;
///
/// assert_eq!("quartz".parse(), Ok(Dst::Quartz));
/// assert_eq!(Dst::default().to_string(), "default");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dst {
    /// Nothing falls silent and nothing is left out.
    ///
    /// A schedule whose hours are `*` or have a step keeps its rhythm: it fires in both passes of a repeated hour, and goes on
    /// after a skipped one. Any other schedule is a set of times of day: one that is repeated fires in the first pass only, one
    /// that is skipped fires at the moment of the jump; several that are skipped together are one fire.
    #[default]
    Default,
    /// As Quartz 2.3.2 does: a repeated hour fires in its second pass only, so that everything is silent during the first; a
    /// skipped time does not fire, and sometimes takes others with it.
    Quartz,
}

/// Text that names no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("DST rule {text:?} is unknown; hint: it is default or quartz")]
pub struct DstError {
    /// The text.
    pub text: String,
}

impl FromStr for Dst {
    type Err = DstError;

    fn from_str(text: &str) -> Result<Self, DstError> {
        match text {
            "default" => Ok(Dst::Default),
            "quartz" => Ok(Dst::Quartz),
            _ => Err(DstError { text: text.to_owned() }),
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
