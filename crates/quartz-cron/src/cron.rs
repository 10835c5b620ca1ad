//! A Quartz cron expression.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use super::{
    error::{CronError, Warning},
    fields::Fields,
    parse::parse,
};

/// A Quartz cron expression, parsed as Quartz 2.3.2 does: seconds, minutes, hours, day of month, month, day of week, and optionally a
/// year. It has no time zone; a [`Schedule`](super::Schedule) has one.
///
/// Invariant: every field has at least one value, and exactly one of the two day fields is `?`. Two expressions are equal if their
/// texts are.
///
/// ```
/// use quartz_cron::Cron;
///
/// let cron: Cron = "0 15 10 ? * MON-FRI".parse()?;
/// assert_eq!(cron.to_string(), "0 15 10 ? * MON-FRI");
/// assert!(cron.warnings().is_empty());
/// # Ok::<(), quartz_cron::CronError>(())
/// ```
#[derive(Clone)]
pub struct Cron {
    text: Arc<str>,
    fields: Fields,
    warnings: Arc<[Warning]>,
}

impl Cron {
    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Parts that Quartz accepts but reads differently from what they look like.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Whether the expression is an interval, as opposed to a set of times of day: its hours are `*` or have a step. An interval continues
    /// while the clocks change; a time of day occurs once a day. See [`Dst::Default`](super::Dst::Default).
    ///
    /// ```
    /// use quartz_cron::Cron;
    ///
    /// assert!("0 0/20 * * * ?".parse::<Cron>()?.is_interval());
    /// assert!("0 0 0/6 * * ?".parse::<Cron>()?.is_interval());
    /// assert!(!"0 0/20 2 * * ?".parse::<Cron>()?.is_interval());
    /// # Ok::<(), quartz_cron::CronError>(())
    /// ```
    pub fn is_interval(&self) -> bool {
        self.fields.is_interval
    }

    pub(super) fn fields(&self) -> &Fields {
        &self.fields
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let (fields, warnings) = parse(text)?;
        Ok(Self { text: text.into(), fields, warnings: warnings.into() })
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({:?})", self.text)
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
