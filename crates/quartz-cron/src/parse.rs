//! Parses the text of an expression as Quartz 2.3.2 does.

use super::{
    civil::LocalTime,
    days::Days,
    error::{CronError, Field, PartError, Warning, invalid},
    fields::{self, Fields, LAST_YEAR, Years},
    part::{self, Part, Range},
    suggest,
};

pub(super) fn parse(text: &str) -> Result<(Fields, Vec<Warning>), CronError> {
    parse_without_suggestion(text).map_err(|mut error| {
        if let Some(correction) = suggest::correction(text) {
            error.hint = format!("{}, for example {correction:?}", error.hint);
        }
        error
    })
}

/// As [`parse`], but the hint of an error suggests no correction: a suggestion is itself parsed.
pub(super) fn parse_without_suggestion(text: &str) -> Result<(Fields, Vec<Warning>), CronError> {
    let words = split_fields(text);
    if words.len() < 6 {
        let count =
            if words.len() == 1 { "1 field".to_owned() } else { format!("{} fields", words.len()) };
        return Err(FieldError::in_expression(
            format!("has {count}"),
            "seconds come first, then minutes, hours, day of month, month, day of week and optionally a year",
        )
        .into_cron_error(text));
    }
    let mut draft = Draft::default();
    for (&field, word) in Field::ALL.iter().zip(&words) {
        draft.parse_field(field, word).map_err(|error| error.into_cron_error(text))?;
    }
    if words.len() < 7 {
        draft.fill(Field::Year, Range { from: None, to: None, step: None });
    }
    if words.len() > 7 {
        draft.warn(
            None,
            "",
            format!("fields after the seventh are ignored, starting with {:?}", words[7]),
        );
    }
    draft.finish().map_err(|error| error.into_cron_error(text))
}

/// Splits at spaces and tabs, and removes control characters around each field.
pub(super) fn split_fields(text: &str) -> Vec<&str> {
    text.split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_matches(|c| c <= ' '))
        .collect()
}

/// An expression while its fields are parsed one after the other.
#[derive(Debug, Default)]
struct Draft {
    /// The values of each field but the year; bit n is value n.
    sets: [u64; 6],
    years: Years,
    /// The field has a value or `?`.
    has_value: [bool; 7],
    /// The field has `?`.
    is_unspecified: [bool; 7],
    /// `L-n` in the day of month: n.
    last: Option<u32>,
    /// `W` in the day of month.
    is_nearest_weekday: bool,
    /// `nL` in the day of week.
    is_last_of_week: bool,
    /// `n#k` in the day of week: k.
    nth: Option<u32>,
    has_hour_step: bool,
    warnings: Vec<Warning>,
}

/// A problem of one field, or of the whole expression.
struct FieldError {
    /// The field and the part of it that is wrong; `None` for the whole expression.
    location: Option<(Field, String)>,
    problem: PartError,
}

impl FieldError {
    fn in_expression(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { location: None, problem: PartError { problem: problem.into(), hint: hint.into() } }
    }

    fn into_cron_error(self, text: &str) -> CronError {
        let (field, part) = self.location.unzip();
        let PartError { problem, hint } = self.problem;
        CronError { text: text.to_owned(), field, part: part.unwrap_or_default(), problem, hint }
    }
}

impl Draft {
    fn parse_field(&mut self, field: Field, word: &str) -> Result<(), FieldError> {
        let upper = word.to_ascii_uppercase();
        let in_field = |problem| FieldError { location: Some((field, word.to_owned())), problem };
        check_list(field, &upper).map_err(in_field)?;
        for part in word.split(',') {
            if part.is_empty() {
                self.warn(Some(field), word, "an empty part is skipped".to_owned());
                continue;
            }
            let mut warnings = Vec::new();
            part::parse(field, &part.to_ascii_uppercase(), &mut warnings)
                .and_then(|parsed| self.add(field, parsed))
                .map_err(|problem| FieldError {
                    location: Some((field, part.to_owned())),
                    problem,
                })?;
            for warning in warnings {
                self.warn(Some(field), part, warning);
            }
        }
        if !self.has_value[field as usize] {
            return invalid("has no value", field.values()).map_err(in_field);
        }
        if self.is_unspecified[field as usize] && upper != "?" {
            self.warn(Some(field), word, "everything besides ? is ignored".to_owned());
        } else {
            self.warn_about_list(field, word);
        }
        Ok(())
    }

    fn add(&mut self, field: Field, part: Part) -> Result<(), PartError> {
        self.has_value[field as usize] |= part != Part::NoEffect;
        match part {
            Part::NoEffect => {}
            Part::Unspecified => self.is_unspecified[field as usize] = true,
            Part::One(value) => {
                check_bounds(field, value)?;
                self.insert(field, value);
            }
            Part::Range(range) => {
                check_range(field, range)?;
                self.fill(field, range);
            }
            Part::Last { before, weekday } => {
                self.last = Some(before);
                self.is_nearest_weekday |= weekday;
            }
            Part::NearestWeekday(day) => {
                self.is_nearest_weekday = true;
                self.insert(field, day);
            }
            Part::LastOfWeek(day) => {
                self.is_last_of_week = true;
                self.insert(field, day);
            }
            Part::NthOfWeek(day, nth) => {
                self.nth = Some(nth);
                self.insert(field, day);
            }
        }
        Ok(())
    }

    /// Inserts every value of the range, wrapping around at the end of the field.
    fn fill(&mut self, field: Field, range: Range) {
        let (min, max) = field.bounds();
        let (from, to) = (range.from.unwrap_or(min), range.to.unwrap_or(max));
        let step = range.step.unwrap_or(1);
        if step == 0 {
            return self.insert(field, from);
        }
        let wrap = if to < from { value_count(field) } else { 0 };
        let to = if field == Field::Year { to.min(LAST_YEAR) } else { to + wrap };
        let mut count = 0;
        for value in (from..=to).step_by(step as usize) {
            self.insert(field, if value > max { value - wrap } else { value });
            count += 1;
        }
        if field == Field::Hours {
            self.has_hour_step |= range.step.is_some() && count > 1;
        }
    }

    fn insert(&mut self, field: Field, value: i32) {
        match field {
            Field::Year => self.years.insert(value),
            _ => self.sets[field as usize] |= 1 << value,
        }
    }

    fn set(&self, field: Field) -> u64 {
        self.sets[field as usize]
    }

    fn warn_about_list(&mut self, field: Field, word: &str) {
        if field == Field::Year || self.set(field).count_ones() < 2 {
            return;
        }
        let first = fields::first_in_set(self.set(field));
        let message = match (field, self.nth) {
            (Field::DayOfMonth, _) if self.is_nearest_weekday => format!("{first}W"),
            (Field::DayOfWeek, Some(nth)) => format!("{first}#{nth}"),
            _ => return,
        };
        self.warn(Some(field), word, format!("only the smallest day counts: read as {message}"));
    }

    fn warn(&mut self, field: Option<Field>, part: &str, message: String) {
        self.warnings.push(Warning { field, part: part.to_owned(), message });
    }

    fn finish(mut self) -> Result<(Fields, Vec<Warning>), FieldError> {
        let days = self.days()?;
        let hours = self.set(Field::Hours) as u32;
        let fields = Fields {
            seconds: self.set(Field::Seconds),
            minutes: self.set(Field::Minutes),
            hours,
            days,
            months: self.set(Field::Month) as u32,
            years: self.years,
            is_interval: self.has_hour_step || hours.count_ones() == 24,
        };
        if fields.next(LocalTime(0)).is_none() {
            self.warn(
                None,
                "",
                format!("it never fires: there is no such day before the end of {LAST_YEAR}"),
            );
        }
        Ok((fields, self.warnings))
    }

    fn days(&self) -> Result<Days, FieldError> {
        let of_month = self.set(Field::DayOfMonth);
        let of_week = self.set(Field::DayOfWeek);
        match (
            self.is_unspecified[Field::DayOfMonth as usize],
            self.is_unspecified[Field::DayOfWeek as usize],
        ) {
            (true, true) => Err(FieldError::in_expression(
                "has ? for both day of month and day of week",
                "exactly one of them must be ?; the other names the days",
            )),
            (false, false) => Err(FieldError::in_expression(
                "sets both day of month and day of week",
                "exactly one of them must be ?; for both, use two jobs",
            )),
            (false, true) => Ok(match (self.last, self.is_nearest_weekday) {
                (Some(before), false) => Days::Last { before },
                (Some(before), true) => Days::LastWeekday { before },
                (None, true) => Days::NearestWeekday { to: fields::first_in_set(of_month) },
                (None, false) => Days::OfMonth(of_month as u32),
            }),
            (true, false) => {
                let first = match fields::first_in_set(of_week) {
                    0 => 7,
                    first => first,
                };
                Ok(match (self.is_last_of_week, self.nth) {
                    (true, _) => Days::LastOfWeek(first),
                    (false, Some(nth)) => Days::NthOfWeek { weekday: first, nth },
                    (false, None) => Days::OfWeek(of_week as u32),
                })
            }
        }
    }
}

/// Refuses `L` in a list of days and more than one `#`, as Quartz does.
fn check_list(field: Field, word: &str) -> Result<(), PartError> {
    if field.is_day() && word.contains('L') && word.contains(',') {
        return invalid(
            "has an L in a list",
            "a day with L must be alone; for more days, use two jobs",
        );
    }
    if field == Field::DayOfWeek && word.matches('#').count() > 1 {
        return invalid(
            "has more than one #",
            "a day with # must be alone; for more days, use two jobs",
        );
    }
    Ok(())
}

fn check_range(field: Field, range: Range) -> Result<(), PartError> {
    if let Some(from) = range.from {
        check_bounds(field, from)?;
    }
    let max = field.bounds().1;
    let (from, to) = (range.from.unwrap_or(0), range.to.unwrap_or(max));
    if field != Field::Year {
        return if to > max { invalid("is out of range", field.values()) } else { Ok(()) };
    }
    if to < from && range.step != Some(0) {
        return invalid("ends before it begins", "years do not wrap and end with 2199: 2026-2030");
    }
    Ok(())
}

/// Accepts every year, as Quartz does; a year out of range does not fire.
fn check_bounds(field: Field, value: i32) -> Result<(), PartError> {
    let (min, max) = field.bounds();
    if field != Field::Year && !(min..=max).contains(&value) {
        return invalid("is out of range", field.values());
    }
    Ok(())
}

fn value_count(field: Field) -> i32 {
    let (min, max) = field.bounds();
    max - min + 1
}
