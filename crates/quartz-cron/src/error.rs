//! Errors and warnings about expressions.

use std::fmt;

/// The seven fields of an expression, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// 0 to 59.
    Seconds,
    /// 0 to 59.
    Minutes,
    /// 0 to 23.
    Hours,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12 or JAN to DEC.
    Month,
    /// 1 to 7 or SUN to SAT.
    DayOfWeek,
    /// 1970 to 2199; optional.
    Year,
}

impl Field {
    pub(super) const ALL: [Field; 7] = [
        Field::Seconds,
        Field::Minutes,
        Field::Hours,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
        Field::Year,
    ];

    /// Smallest and largest value.
    pub(super) fn bounds(self) -> (i32, i32) {
        match self {
            Field::Seconds | Field::Minutes => (0, 59),
            Field::Hours => (0, 23),
            Field::DayOfMonth => (1, 31),
            Field::Month => (1, 12),
            Field::DayOfWeek => (1, 7),
            Field::Year => (super::fields::FIRST_YEAR, super::fields::LAST_YEAR),
        }
    }

    /// The allowed values, as a hint.
    pub(super) fn values(self) -> &'static str {
        match self {
            Field::Seconds => "seconds are 0 to 59",
            Field::Minutes => "minutes are 0 to 59",
            Field::Hours => "hours are 0 to 23",
            Field::DayOfMonth => "days of the month are 1 to 31, or L for the last",
            Field::Month => "months are 1 to 12 or JAN to DEC",
            Field::DayOfWeek => "days of the week are 1 (Sunday) to 7 (Saturday) or SUN to SAT",
            Field::Year => "years are 1970 to 2199",
        }
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Field::DayOfMonth | Field::DayOfWeek)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Field::Seconds => "seconds",
            Field::Minutes => "minutes",
            Field::Hours => "hours",
            Field::DayOfMonth => "day of month",
            Field::Month => "month",
            Field::DayOfWeek => "day of week",
            Field::Year => "year",
        })
    }
}

/// Text that is not a Quartz cron expression: which field, which part, and what would be right.
///
/// ```
/// use quartz_cron::{Cron, Field};
///
/// let error = "0 0 24 * * ?".parse::<Cron>().unwrap_err();
///
/// assert_eq!(error.field, Some(Field::Hours));
/// assert_eq!(error.part, "24");
/// assert_eq!(
///     error.to_string(),
///     r#"cron "0 0 24 * * ?": hours "24" is out of range"#
/// );
/// assert_eq!(error.hint, "hours are 0 to 23");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cron {text:?}: {}{problem}", Location { field: *field, part })]
pub struct CronError {
    /// The expression.
    pub text: String,
    /// `None` if it concerns the whole expression.
    pub field: Option<Field>,
    /// The part of the field.
    pub part: String,
    pub problem: String,
    pub hint: String,
}

/// A part that Quartz accepts but reads differently from what it looks like. The schedule does what Quartz does.
///
/// ```
/// use quartz_cron::Cron;
///
/// let cron: Cron = "0 0 9 ? * MON-FRI/2".parse()?;
///
/// assert_eq!(
///     cron.warnings()[0].to_string(),
///     r#"day of week "MON-FRI/2": "/2" is ignored; a step needs numbers, as in 2-6/2"#
/// );
/// # Ok::<(), quartz_cron::CronError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// `None` if it concerns the whole expression.
    pub field: Option<Field>,
    /// The part of the field.
    pub part: String,
    /// How the part is read.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field} {:?}: {}", self.part, self.message),
            None => f.write_str(&self.message),
        }
    }
}

struct Location<'a> {
    field: Option<Field>,
    part: &'a str,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field} {:?} ", self.part),
            None => Ok(()),
        }
    }
}

/// A problem with a part, without its location.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartError {
    pub(super) problem: String,
    pub(super) hint: String,
}

pub(super) fn invalid<T>(
    problem: impl Into<String>,
    hint: impl Into<String>,
) -> Result<T, PartError> {
    Err(PartError { problem: problem.into(), hint: hint.into() })
}
