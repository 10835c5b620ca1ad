//! One part of a field, that is what stands between two commas: what Quartz 2.3.2 reads in it.
//!
//! Quartz reads a part from the left until it has enough and leaves the rest alone: `MONDAY` is `MON`, `5X` is `5`, `1-5W` is
//! `1-5`. That is followed here, with a note for each of them, because such expressions are stored and running.

use super::error::{Field, Wrong, wrong};

/// What a part says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `?`
    Unspecified,
    One(i32),
    Span(Span),
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
    /// Quartz reads it and does nothing: an `L` where no days are.
    Nothing,
}

/// Values from one to another, where the second may be the smaller: then it wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// `None` is the smallest value.
    pub(super) from: Option<i32>,
    /// `None` is the largest value.
    pub(super) to: Option<i32>,
    /// `None` if there was no `/`.
    pub(super) step: Option<u32>,
}

/// Reads a part, in upper case and not empty. What is odd about it goes to `notes`.
pub(super) fn read(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    match part.as_bytes()[0] {
        b'A'..=b'Z' if !is_last(part) => name(field, part, notes),
        b'?' => unspecified(field, part, notes),
        b'*' | b'/' => every(field, part, notes),
        b'L' => last(field, part, notes),
        b'0'..=b'9' => number(field, part, notes),
        b'-' => wrong("begins with a minus", field.values()),
        _ => wrong("cannot be read", field.values()),
    }
}

/// `L`, `LW`, `L-n`, `L-nW`.
fn is_last(part: &str) -> bool {
    let Some(rest) = part.strip_prefix('L') else { return false };
    let rest = rest.strip_prefix('-').map_or(rest, |rest| digits(rest).1);
    matches!(rest, "" | "W")
}

fn name(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    let (value, rest) = one_name(field, part)?;
    if let Some(rest) = rest.strip_prefix('-') {
        let Ok((to, rest)) = one_name(field, rest) else {
            return wrong(
                "is a range from a name to something else",
                "both ends are names, as in MON-FRI, or both are numbers, as in 2-6",
            );
        };
        if rest.starts_with('/') {
            notes.push(format!("{rest:?} is ignored; a step needs numbers, as in 2-6/2"));
        } else {
            leftover(rest, notes);
        }
        return Ok(Part::Span(Span { from: Some(value), to: Some(to), step: None }));
    }
    if field == Field::DayOfWeek {
        if let Some(nth) = rest.strip_prefix('#') {
            return Ok(Part::NthOfWeek(value, which(nth, notes)?));
        }
        if let Some(rest) = rest.strip_prefix('L') {
            leftover(rest, notes);
            return Ok(Part::LastOfWeek(value));
        }
    }
    if rest.starts_with('/') {
        notes.push(format!("{rest:?} is ignored; a step needs a number before it, as in 2/2"));
    } else {
        leftover(rest, notes);
    }
    Ok(Part::One(value))
}

/// The value of the name that `text` begins with, and what follows.
fn one_name(field: Field, text: &str) -> Result<(i32, &str), Wrong> {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let names = match field {
        Field::Month => &MONTHS[..],
        Field::DayOfWeek => &WEEKDAYS[..],
        Field::DayOfMonth => {
            return wrong(
                "has letters that mean nothing here",
                "the last days of a month are L, L-1, L-2 …; weekdays are LW and 15W",
            );
        }
        _ => return wrong("has letters where only numbers can be", field.values()),
    };
    let found = text.get(..3).and_then(|name| names.iter().position(|known| *known == name));
    match found {
        Some(at) => Ok((at as i32 + 1, &text[3..])),
        None if text.starts_with('L') && field == Field::DayOfWeek => wrong(
            "has its L in front",
            "the last Friday of a month is 6L or FRIL; L alone is Saturday",
        ),
        None => wrong("has a name nobody knows", field.values()),
    }
}

fn unspecified(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    if !field.is_day() {
        return wrong(
            "cannot be left open",
            "? is for one of the two day fields; write * for every value",
        );
    }
    // Quartz counts UTF-16 units and misses a single one after the question mark.
    if part.encode_utf16().count() > 2 {
        return wrong("has more after its ?", "? stands alone");
    }
    leftover(&part[1..], notes);
    Ok(Part::Unspecified)
}

/// `*`, `*/n`, `/n`.
fn every(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    let everything = Part::Span(Span { from: None, to: None, step: None });
    let rest = part.strip_prefix('*').unwrap_or(part);
    let Some(step) = rest.strip_prefix('/') else {
        leftover(rest, notes);
        return Ok(everything);
    };
    if part.starts_with('/') {
        notes.push(format!("read as *{part}"));
    }
    let Some(step) = integer(step, notes) else {
        return wrong(
            "has no number after /",
            format!("a step looks like {}", step_example(field)),
        );
    };
    check_step(field, step)?;
    match u32::try_from(step) {
        Ok(step) if step > 0 => Ok(Part::Span(Span { from: None, to: None, step: Some(step) })),
        _ => {
            notes.push("a step of nothing: read as *".to_owned());
            Ok(everything)
        }
    }
}

fn last(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    let rest = &part[1..];
    match field {
        Field::DayOfMonth => last_of_month(rest, notes),
        Field::DayOfWeek => {
            if !rest.is_empty() {
                notes.push(format!("{rest:?} is ignored; read as L, every Saturday"));
            }
            Ok(Part::One(7))
        }
        _ => {
            notes.push("ignored: L has a meaning for days only".to_owned());
            Ok(Part::Nothing)
        }
    }
}

/// What follows `L`: nothing, `W`, `-n`, `-nW`.
fn last_of_month(rest: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    const EXAMPLE: &str = "L-3 is three days before the last; at most it is L-30";
    let Some(before) = rest.strip_prefix('-') else {
        return Ok(Part::Last { before: 0, weekday: rest == "W" });
    };
    match digits(before) {
        ("", "") => wrong("has no number after L-", EXAMPLE),
        ("", _) => {
            notes.push("no number after L-: read as LW".to_owned());
            Ok(Part::Last { before: 0, weekday: true })
        }
        (number, rest) => match number.parse() {
            Ok(before) if before <= 30 => Ok(Part::Last { before, weekday: rest == "W" }),
            _ => wrong("goes back more than a month", EXAMPLE),
        },
    }
}

/// Everything that begins with a digit.
fn number(field: Field, part: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    let (value, rest) = value(field, part)?;
    match rest.as_bytes().first() {
        None => Ok(Part::One(value)),
        Some(b'-') => range(field, value, &rest[1..], notes),
        Some(b'/') => {
            let (step, rest) = match digits(&rest[1..]) {
                ("", _) => {
                    let hint = format!("a step looks like {}", step_example(field));
                    return wrong("has no number after /", hint);
                }
                // Quartz is strict after one digit and lenient after two.
                (step, rest) if step.len() == 1 && !rest.is_empty() => {
                    return wrong(
                        format!("has {rest:?} after its step"),
                        format!("a step looks like {}", step_example(field)),
                    );
                }
                (step, rest) => (small(step)?, rest),
            };
            leftover(rest, notes);
            check_step(field, step)?;
            if step == 0 {
                notes.push(format!("a step of 0: read as {value}"));
                return Ok(Part::One(value));
            }
            Ok(Part::Span(Span { from: Some(value), to: None, step: Some(step as u32) }))
        }
        Some(b'L') if field == Field::DayOfWeek => {
            leftover(&rest[1..], notes);
            if !(1..=7).contains(&value) {
                return wrong("is out of range", field.values());
            }
            Ok(Part::LastOfWeek(value))
        }
        Some(b'L') => wrong(
            "has an L after a number",
            "6L is for days of the week; the last days of a month are L, L-1, L-2 …",
        ),
        Some(b'W') if field == Field::DayOfMonth => {
            leftover(&rest[1..], notes);
            if !(1..=31).contains(&value) {
                return wrong("is out of range", "nW is the weekday nearest to day n, 1 to 31");
            }
            Ok(Part::NearestWeekday(value))
        }
        Some(b'W') => {
            wrong("has a W after a number", "15W is for days of the month: the nearest weekday")
        }
        Some(b'#') if field == Field::DayOfWeek => {
            let nth = which(&rest[1..], notes)?;
            if value > 7 {
                return wrong("is out of range", field.values());
            }
            if value == 0 {
                notes.push("day 0: read as 7, Saturday".to_owned());
            }
            Ok(Part::NthOfWeek(value, nth))
        }
        Some(b'#') => {
            wrong("has a # after a number", "6#3 is for days of the week: the third Friday")
        }
        Some(_) => {
            leftover(rest, notes);
            Ok(Part::One(value))
        }
    }
}

/// What follows `from-`.
fn range(field: Field, from: i32, text: &str, notes: &mut Vec<String>) -> Result<Part, Wrong> {
    let (to, rest) = match digits(text) {
        ("", _) => {
            return wrong(
                "is a range without an end",
                "a range looks like 5-9; with names both ends are names, as in MON-FRI",
            );
        }
        (to, rest) => (small(to)?, rest),
    };
    if to == 0 && field.bounds().0 == 1 {
        notes.push(format!("a range to 0: read as up to {}", field.bounds().1));
    }
    let Some(rest) = rest.strip_prefix('/') else {
        leftover(rest, notes);
        return Ok(Part::Span(Span { from: Some(from), to: Some(to), step: None }));
    };
    let (step, rest) = match digits(rest) {
        ("", _) => return wrong("has no number after /", "a range with a step looks like 5-9/2"),
        (step, rest) => (small(step)?, rest),
    };
    leftover(rest, notes);
    if step == 0 {
        notes.push(format!("a step of 0: read as {from}"));
    }
    Ok(Part::Span(Span { from: Some(from), to: Some(to), step: Some(step as u32) }))
}

/// Which one of its kind: 1 to 5.
fn which(text: &str, notes: &mut Vec<String>) -> Result<u32, Wrong> {
    match integer(text, notes) {
        Some(nth @ 1..=5) => Ok(nth as u32),
        _ => wrong("has no 1 to 5 after #", "6#3 and FRI#3 are the third Friday of a month"),
    }
}

/// The number that `text` begins with, and what follows.
fn value(field: Field, text: &str) -> Result<(i32, &str), Wrong> {
    let (number, rest) = digits(text);
    let value = small(number)?;
    // Quartz uses these two inside for `?` and `*`, and so reads them as that: a slip of the finger would run every second.
    if value == 99 || value == 98 && field.is_day() {
        return wrong("is out of range", field.values());
    }
    Ok((value, rest))
}

fn check_step(field: Field, step: i32) -> Result<(), Wrong> {
    let most = match field {
        Field::Seconds | Field::Minutes => 59,
        Field::Hours => 23,
        Field::DayOfMonth => 31,
        Field::Month => 12,
        Field::DayOfWeek => 7,
        Field::Year => i32::MAX,
    };
    if step > most {
        let hint = format!("a step here is at most {most}, as in {}", step_example(field));
        return wrong(format!("has a step of {step}"), hint);
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

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn small(digits: &str) -> Result<i32, Wrong> {
    digits
        .parse()
        .or_else(|_| wrong("has a number that is far too large", "nothing here is over 2199"))
}

/// All of `text` as a number, with a sign if it has one, as Java reads it.
fn integer(text: &str, notes: &mut Vec<String>) -> Option<i32> {
    let number = text.parse().ok()?;
    if text.starts_with('+') {
        notes.push(format!("{text:?} is read as {number}"));
    }
    Some(number)
}

fn leftover(rest: &str, notes: &mut Vec<String>) {
    if !rest.is_empty() {
        notes.push(format!("{rest:?} is ignored"));
    }
}
