//! Parses one part of a field, that is the text between two commas, as Quartz 2.3.2 does.
//!
//! Quartz reads a part from the left until it is complete and ignores the rest: `MONDAY` is `MON`, `5X` is `5`, `1-5W` is `1-5`. This
//! parser does the same, with a warning for each, because such expressions are in use.

use super::error::{Field, PartError, invalid};

/// A parsed part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `?`
    Unspecified,
    One(i32),
    Range(Range),
    /// `L`, `LW`, `L-n`, `L-nW` among the days of the month.
    Last {
        before: u32,
        weekday: bool,
    },
    /// `nW`
    NearestWeekday(i32),
    /// `nL`
    LastOfWeek(i32),
    /// `n#k`, where n may be 0.
    NthOfWeek(i32, u32),
    /// Quartz accepts it without effect: an `L` in a field other than the days.
    NoEffect,
}

/// A range of values; it wraps around if `to` is smaller than `from`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    /// `None` is the smallest value of the field.
    pub(super) from: Option<i32>,
    /// `None` is the largest value of the field.
    pub(super) to: Option<i32>,
    /// `None` if there is no `/`.
    pub(super) step: Option<u32>,
}

/// Parses a non-empty part in upper case. Adds a warning for each quirk.
pub(super) fn parse(
    field: Field,
    part: &str,
    warnings: &mut Vec<String>,
) -> Result<Part, PartError> {
    match part.as_bytes()[0] {
        b'A'..=b'Z' if !is_last(part) => parse_name(field, part, warnings),
        b'?' => parse_unspecified(field, part, warnings),
        b'*' | b'/' => parse_every(field, part, warnings),
        b'L' => parse_last(field, part, warnings),
        b'0'..=b'9' => parse_number(field, part, warnings),
        b'-' => invalid("begins with a minus", field.values()),
        _ => invalid("is not valid", field.values()),
    }
}

/// `L`, `LW`, `L-n`, `L-nW`.
fn is_last(part: &str) -> bool {
    let Some(rest) = part.strip_prefix('L') else { return false };
    let rest = rest.strip_prefix('-').map_or(rest, |rest| split_digits(rest).1);
    matches!(rest, "" | "W")
}

fn parse_name(field: Field, part: &str, warnings: &mut Vec<String>) -> Result<Part, PartError> {
    let (value, rest) = split_name(field, part)?;
    if let Some(rest) = rest.strip_prefix('-') {
        let Ok((to, rest)) = split_name(field, rest) else {
            return invalid(
                "is a range from a name to something else",
                "both ends are names, as in MON-FRI, or both are numbers, as in 2-6",
            );
        };
        if rest.starts_with('/') {
            warnings.push(format!("{rest:?} is ignored; a step needs numbers, as in 2-6/2"));
        } else {
            warn_ignored(rest, warnings);
        }
        return Ok(Part::Range(Range { from: Some(value), to: Some(to), step: None }));
    }
    if field == Field::DayOfWeek {
        if let Some(nth) = rest.strip_prefix('#') {
            return Ok(Part::NthOfWeek(value, parse_nth(nth, warnings)?));
        }
        if let Some(rest) = rest.strip_prefix('L') {
            warn_ignored(rest, warnings);
            return Ok(Part::LastOfWeek(value));
        }
    }
    if rest.starts_with('/') {
        warnings.push(format!("{rest:?} is ignored; a step needs a number before it, as in 2/2"));
    } else {
        warn_ignored(rest, warnings);
    }
    Ok(Part::One(value))
}

/// Splits `text` into the value of the name it begins with and the rest.
fn split_name(field: Field, text: &str) -> Result<(i32, &str), PartError> {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let names = match field {
        Field::Month => &MONTHS[..],
        Field::DayOfWeek => &WEEKDAYS[..],
        Field::DayOfMonth => {
            return invalid(
                "has letters that have no meaning here",
                "the last days of a month are L, L-1, L-2 …; weekdays are LW and 15W",
            );
        }
        _ => return invalid("has letters where only numbers are allowed", field.values()),
    };
    let found = text.get(..3).and_then(|name| names.iter().position(|known| *known == name));
    match found {
        Some(at) => Ok((at as i32 + 1, &text[3..])),
        None if text.starts_with('L') && field == Field::DayOfWeek => invalid(
            "has its L in front",
            "the last Friday of a month is 6L or FRIL; L alone is Saturday",
        ),
        None => invalid("has an unknown name", field.values()),
    }
}

fn parse_unspecified(
    field: Field,
    part: &str,
    warnings: &mut Vec<String>,
) -> Result<Part, PartError> {
    if !field.is_day() {
        return invalid(
            "cannot be unspecified",
            "? is for one of the two day fields; write * for every value",
        );
    }
    // Quartz counts UTF-16 units and overlooks a single one after the question mark.
    if part.encode_utf16().count() > 2 {
        return invalid("has text after its ?", "? must be alone");
    }
    warn_ignored(&part[1..], warnings);
    Ok(Part::Unspecified)
}

/// `*`, `*/n`, `/n`.
fn parse_every(field: Field, part: &str, warnings: &mut Vec<String>) -> Result<Part, PartError> {
    let all_values = Part::Range(Range { from: None, to: None, step: None });
    let rest = part.strip_prefix('*').unwrap_or(part);
    let Some(step) = rest.strip_prefix('/') else {
        warn_ignored(rest, warnings);
        return Ok(all_values);
    };
    if part.starts_with('/') {
        warnings.push(format!("read as *{part}"));
    }
    let Some(step) = parse_signed(step, warnings) else {
        return invalid(
            "has no number after /",
            format!("a step looks like {}", step_example(field)),
        );
    };
    check_step(field, step)?;
    match u32::try_from(step) {
        Ok(step) if step > 0 => Ok(Part::Range(Range { from: None, to: None, step: Some(step) })),
        _ => {
            warnings.push("a step of 0 or less: read as *".to_owned());
            Ok(all_values)
        }
    }
}

fn parse_last(field: Field, part: &str, warnings: &mut Vec<String>) -> Result<Part, PartError> {
    let rest = &part[1..];
    match field {
        Field::DayOfMonth => parse_last_of_month(rest, warnings),
        Field::DayOfWeek => {
            if !rest.is_empty() {
                warnings.push(format!("{rest:?} is ignored; read as L, every Saturday"));
            }
            Ok(Part::One(7))
        }
        _ => {
            warnings.push("ignored: L has a meaning only for days".to_owned());
            Ok(Part::NoEffect)
        }
    }
}

/// Parses the text after `L`: empty, `W`, `-n` or `-nW`.
fn parse_last_of_month(rest: &str, warnings: &mut Vec<String>) -> Result<Part, PartError> {
    const EXAMPLE: &str = "L-3 is three days before the last; the limit is L-30";
    let Some(before) = rest.strip_prefix('-') else {
        return Ok(Part::Last { before: 0, weekday: rest == "W" });
    };
    match split_digits(before) {
        ("", "") => invalid("has no number after L-", EXAMPLE),
        ("", _) => {
            warnings.push("no number after L-: read as LW".to_owned());
            Ok(Part::Last { before: 0, weekday: true })
        }
        (number, rest) => match number.parse() {
            Ok(before) if before <= 30 => Ok(Part::Last { before, weekday: rest == "W" }),
            _ => invalid("goes back more than a month", EXAMPLE),
        },
    }
}

/// Parses a part that begins with a digit.
fn parse_number(field: Field, part: &str, warnings: &mut Vec<String>) -> Result<Part, PartError> {
    let (value, rest) = parse_value(field, part)?;
    match rest.as_bytes().first() {
        None => Ok(Part::One(value)),
        Some(b'-') => parse_range(field, value, &rest[1..], warnings),
        Some(b'/') => {
            let (step, rest) = match split_digits(&rest[1..]) {
                ("", _) => {
                    let hint = format!("a step looks like {}", step_example(field));
                    return invalid("has no number after /", hint);
                }
                // Quartz refuses extra characters after a one-digit step and ignores them after a longer one.
                (step, rest) if step.len() == 1 && !rest.is_empty() => {
                    return invalid(
                        format!("has {rest:?} after its step"),
                        format!("a step looks like {}", step_example(field)),
                    );
                }
                (step, rest) => (parse_i32(step)?, rest),
            };
            warn_ignored(rest, warnings);
            check_step(field, step)?;
            if step == 0 {
                warnings.push(format!("a step of 0: read as {value}"));
                return Ok(Part::One(value));
            }
            Ok(Part::Range(Range { from: Some(value), to: None, step: Some(step as u32) }))
        }
        Some(b'L') if field == Field::DayOfWeek => {
            warn_ignored(&rest[1..], warnings);
            if !(1..=7).contains(&value) {
                return invalid("is out of range", field.values());
            }
            Ok(Part::LastOfWeek(value))
        }
        Some(b'L') => invalid(
            "has an L after a number",
            "6L is for days of the week; the last days of a month are L, L-1, L-2 …",
        ),
        Some(b'W') if field == Field::DayOfMonth => {
            warn_ignored(&rest[1..], warnings);
            if !(1..=31).contains(&value) {
                return invalid("is out of range", "nW is the weekday nearest to day n, 1 to 31");
            }
            Ok(Part::NearestWeekday(value))
        }
        Some(b'W') => {
            invalid("has a W after a number", "15W is for days of the month: the nearest weekday")
        }
        Some(b'#') if field == Field::DayOfWeek => {
            let nth = parse_nth(&rest[1..], warnings)?;
            if value > 7 {
                return invalid("is out of range", field.values());
            }
            if value == 0 {
                warnings.push("day 0: read as 7, Saturday".to_owned());
            }
            Ok(Part::NthOfWeek(value, nth))
        }
        Some(b'#') => {
            invalid("has a # after a number", "6#3 is for days of the week: the third Friday")
        }
        Some(_) => {
            warn_ignored(rest, warnings);
            Ok(Part::One(value))
        }
    }
}

/// Parses the text after `from-`.
fn parse_range(
    field: Field,
    from: i32,
    text: &str,
    warnings: &mut Vec<String>,
) -> Result<Part, PartError> {
    let (to, rest) = match split_digits(text) {
        ("", _) => {
            return invalid(
                "is a range without an end",
                "a range looks like 5-9; with names both ends are names, as in MON-FRI",
            );
        }
        (to, rest) => (parse_i32(to)?, rest),
    };
    if to == 0 && field.bounds().0 == 1 {
        warnings.push(format!("a range to 0: read as up to {}", field.bounds().1));
    }
    let Some(rest) = rest.strip_prefix('/') else {
        warn_ignored(rest, warnings);
        return Ok(Part::Range(Range { from: Some(from), to: Some(to), step: None }));
    };
    let (step, rest) = match split_digits(rest) {
        ("", _) => return invalid("has no number after /", "a range with a step looks like 5-9/2"),
        (step, rest) => (parse_i32(step)?, rest),
    };
    warn_ignored(rest, warnings);
    if step == 0 {
        warnings.push(format!("a step of 0: read as {from}"));
    }
    Ok(Part::Range(Range { from: Some(from), to: Some(to), step: Some(step as u32) }))
}

/// Parses the number after `#`: 1 to 5.
fn parse_nth(text: &str, warnings: &mut Vec<String>) -> Result<u32, PartError> {
    match parse_signed(text, warnings) {
        Some(nth @ 1..=5) => Ok(nth as u32),
        _ => invalid("has no 1 to 5 after #", "6#3 and FRI#3 are the third Friday of a month"),
    }
}

/// Splits `text` into the number it begins with and the rest.
fn parse_value(field: Field, text: &str) -> Result<(i32, &str), PartError> {
    let (number, rest) = split_digits(text);
    let value = parse_i32(number)?;
    // Quartz uses 98 and 99 internally for `?` and `*`, and reads them as such: a typo would make a job run every second.
    if value == 99 || value == 98 && field.is_day() {
        return invalid("is out of range", field.values());
    }
    Ok((value, rest))
}

fn check_step(field: Field, step: i32) -> Result<(), PartError> {
    let max = match field {
        Field::Seconds | Field::Minutes => 59,
        Field::Hours => 23,
        Field::DayOfMonth => 31,
        Field::Month => 12,
        Field::DayOfWeek => 7,
        Field::Year => i32::MAX,
    };
    if step > max {
        let hint = format!("a step here is at most {max}, as in {}", step_example(field));
        return invalid(format!("has a step of {step}"), hint);
    }
    Ok(())
}

fn step_example(field: Field) -> &'static str {
    match field {
        Field::Seconds | Field::Minutes => "0/5",
        Field::Hours => "0/2",
        Field::DayOfMonth | Field::DayOfWeek => "1/2",
        Field::Month => "1/3",
        Field::Year => "2026/2",
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn parse_i32(digits: &str) -> Result<i32, PartError> {
    digits
        .parse()
        .or_else(|_| invalid("has a number that is far too large", "no value is over 2199"))
}

/// Parses all of `text` as a number with an optional sign, as Java does.
fn parse_signed(text: &str, warnings: &mut Vec<String>) -> Option<i32> {
    let number = text.parse().ok()?;
    if text.starts_with('+') {
        warnings.push(format!("{text:?} is read as {number}"));
    }
    Some(number)
}

fn warn_ignored(rest: &str, warnings: &mut Vec<String>) {
    if !rest.is_empty() {
        warnings.push(format!("{rest:?} is ignored"));
    }
}
