//! Time zones: IANA names, and Java's `GMT+8:00`.

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

use super::{civil::LocalTime, nearest::nearest};

/// A time zone.
///
/// IANA names come from the machine's time zone database, or from the built-in one if the machine has none. `GMT+8:00`, `GMT+08:00`,
/// `GMT+0800` and `GMT+8` are fixed offsets, as in Java. Two zones are equal if their texts are.
///
/// ```
/// use quartz_cron::Zone;
///
/// let zone: Zone = "GMT+8:00".parse()?;
/// assert_eq!(zone.to_string(), "GMT+8:00");
///
/// let error = "Asia/Shangai".parse::<Zone>().unwrap_err();
/// assert_eq!(error.to_string(), r#"time zone "Asia/Shangai" is unknown"#);
/// assert_eq!(error.hint, r#"did you mean "Asia/Shanghai"?"#);
/// # Ok::<(), quartz_cron::ZoneError>(())
/// ```
#[derive(Clone)]
pub struct Zone {
    text: Arc<str>,
    rules: Rules,
}

/// Text that is not a time zone. Java would silently use GMT.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("time zone {text:?} {problem}")]
pub struct ZoneError {
    pub text: String,
    pub problem: String,
    pub hint: String,
}

#[derive(Clone)]
enum Rules {
    /// A constant offset from UTC, in seconds.
    Fixed(i64),
    Named(TimeZone),
}

/// A moment at which the offset from UTC changes. All values are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transition {
    /// When it happens, since 1970 UTC.
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Transition {
    /// The first local time that is skipped or repeated.
    pub(super) fn begin(self) -> LocalTime {
        LocalTime::at(self.at, self.before.min(self.after))
    }

    /// The first local time after that which occurs once.
    pub(super) fn end(self) -> LocalTime {
        LocalTime::at(self.at, self.before.max(self.after))
    }
}

/// How often a local time occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// Once, at this offset from UTC.
    Once(i64),
    /// Never: the clock jumps over it.
    Skipped(Transition),
    /// Twice: the clock is turned back over it.
    Repeated(Transition),
}

impl Zone {
    pub fn utc() -> Self {
        Self { text: "UTC".into(), rules: Rules::Fixed(0) }
    }

    /// The original text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The zone as a jiff type, to format local times.
    pub fn to_time_zone(&self) -> TimeZone {
        match &self.rules {
            Rules::Fixed(seconds) => {
                Offset::from_seconds(*seconds as i32).map_or(TimeZone::UTC, Offset::to_time_zone)
            }
            Rules::Named(zone) => zone.clone(),
        }
    }

    /// The offset from UTC at a UTC second.
    pub(super) fn offset_at(&self, second: i64) -> i64 {
        match &self.rules {
            Rules::Fixed(offset) => *offset,
            Rules::Named(zone) => seconds(zone.to_offset(timestamp(second))),
        }
    }

    pub(super) fn occurrence(&self, local: LocalTime) -> Occurrence {
        let zone = match &self.rules {
            Rules::Fixed(offset) => return Occurrence::Once(*offset),
            Rules::Named(zone) => zone,
        };
        match zone.to_ambiguous_timestamp(datetime(local)).offset() {
            AmbiguousOffset::Unambiguous { offset } => Occurrence::Once(seconds(offset)),
            AmbiguousOffset::Gap { before, after } => {
                let (before, after) = (seconds(before), seconds(after));
                Occurrence::Skipped(transition_after(zone, local.to_utc(after), before, after))
            }
            AmbiguousOffset::Fold { before, after } => {
                let (before, after) = (seconds(before), seconds(after));
                Occurrence::Repeated(transition_after(zone, local.to_utc(before), before, after))
            }
        }
    }
}

fn transition_after(zone: &TimeZone, second: i64, before: i64, after: i64) -> Transition {
    let at = zone
        .following(timestamp(second))
        .find(|transition| seconds(transition.offset()) == after)
        .map_or(second, |transition| transition.timestamp().as_second());
    Transition { at, before, after }
}

fn seconds(offset: Offset) -> i64 {
    i64::from(offset.seconds())
}

/// Schedules only use seconds between 1969 and 2200, which are all valid timestamps.
pub(super) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX)
}

fn datetime(local: LocalTime) -> DateTime {
    Offset::UTC.to_datetime(timestamp(local.0))
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(text: &str) -> Result<Self, ZoneError> {
        if matches!(text, "UTC" | "GMT" | "Z") {
            return Ok(Self { text: text.into(), rules: Rules::Fixed(0) });
        }
        if let Some(offset) = text.strip_prefix("GMT").filter(|rest| rest.starts_with(['+', '-'])) {
            let Some(offset) = parse_offset(offset) else {
                return invalid(
                    text,
                    "is not an offset from GMT",
                    "write GMT+8:00 or GMT-03:30, hours up to 23",
                );
            };
            return Ok(Self { text: text.into(), rules: Rules::Fixed(offset) });
        }
        if let Some((_, zone)) = ABBREVIATIONS.iter().find(|(short, _)| *short == text) {
            return invalid(
                text,
                "is ambiguous",
                format!("Java reads it as {zone}; write that, or the zone you mean"),
            );
        }
        match TimeZone::get(text) {
            Ok(zone) if !zone.is_unknown() => Ok(Self { text: text.into(), rules: rules(zone) }),
            _ => {
                let names = jiff::tz::db().available().map(|name| name.as_str().to_owned());
                let hint =
                    match (text.strip_prefix("UTC").and_then(parse_offset), nearest(text, names)) {
                        (Some(_), _) => format!("did you mean \"GMT{}\"?", &text[3..]),
                        (None, Some(name)) => format!("did you mean {name:?}?"),
                        (None, None) => {
                            "write a name like Asia/Shanghai or an offset like GMT+8:00".to_owned()
                        }
                    };
                invalid(text, "is unknown", hint)
            }
        }
    }
}

fn invalid<T>(text: &str, problem: &str, hint: impl Into<String>) -> Result<T, ZoneError> {
    Err(ZoneError { text: text.to_owned(), problem: problem.to_owned(), hint: hint.into() })
}

/// `+8`, `+08`, `+800`, `+0800`, `+8:00`, `+08:00`.
fn parse_offset(text: &str) -> Option<i64> {
    let (sign, text) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match text.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        None if text.len() <= 2 => (text, "00"),
        None => text.split_at_checked(text.len() - 2)?,
        Some(_) => return None,
    };
    if hours.len() > 2 {
        return None;
    }
    let number = |text: &str| -> Option<i64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse().ok() } else { None }
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

fn rules(zone: TimeZone) -> Rules {
    match zone.to_fixed_offset() {
        Ok(offset) => Rules::Fixed(seconds(offset)),
        Err(_) => Rules::Named(zone),
    }
}

/// Abbreviations that Java accepts although they are ambiguous: CST is Chicago in Java, but many authors mean Shanghai.
const ABBREVIATIONS: [(&str, &str); 25] = [
    ("ACT", "Australia/Darwin"),
    ("AET", "Australia/Sydney"),
    ("AGT", "America/Argentina/Buenos_Aires"),
    ("ART", "Africa/Cairo"),
    ("AST", "America/Anchorage"),
    ("BET", "America/Sao_Paulo"),
    ("BST", "Asia/Dhaka"),
    ("CAT", "Africa/Harare"),
    ("CNT", "America/St_Johns"),
    ("CST", "America/Chicago"),
    ("CTT", "Asia/Shanghai"),
    ("EAT", "Africa/Addis_Ababa"),
    ("ECT", "Europe/Paris"),
    ("IET", "America/Indiana/Indianapolis"),
    ("IST", "Asia/Kolkata"),
    ("JST", "Asia/Tokyo"),
    ("MIT", "Pacific/Apia"),
    ("NET", "Asia/Yerevan"),
    ("NST", "Pacific/Auckland"),
    ("PLT", "Asia/Karachi"),
    ("PNT", "America/Phoenix"),
    ("PRT", "America/Puerto_Rico"),
    ("PST", "America/Los_Angeles"),
    ("SST", "Pacific/Guadalcanal"),
    ("VST", "Asia/Ho_Chi_Minh"),
];

/// For the machine's zone (`TimeZone::system()`), which this crate does not read itself.
impl From<TimeZone> for Zone {
    fn from(zone: TimeZone) -> Self {
        let text = match (zone.iana_name(), zone.to_fixed_offset()) {
            (Some(name), _) => name.to_owned(),
            (None, Ok(offset)) => gmt(seconds(offset)),
            (None, Err(_)) => "local".to_owned(),
        };
        Self { text: text.into(), rules: rules(zone) }
    }
}

fn gmt(offset: i64) -> String {
    let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    format!("GMT{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({:?})", self.text)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}
