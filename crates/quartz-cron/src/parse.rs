//! From text to fields, as Quartz 2.3.2 does it.

use super::{
    civil::Wall,
    days::Days,
    error::{CronError, Field, Warning, Wrong, wrong},
    fields::{self, Fields, LAST_YEAR, Years},
    part::{self, Part, Span},
    suggest,
};

pub(super) fn parse(text: &str) -> Result<(Fields, Vec<Warning>), CronError> {
    parse_strictly(text).map_err(|mut error| {
        if let Some(better) = suggest::instead_of(text) {
            error.hint = format!("{}, for example {better:?}", error.hint);
        }
        error
    })
}

/// The same without a proposal in the error.
pub(super) fn parse_strictly(text: &str) -> Result<(Fields, Vec<Warning>), CronError> {
    let words = words(text);
    if words.len() < 6 {
        let count =
            if words.len() == 1 { "1 field".to_owned() } else { format!("{} fields", words.len()) };
        return Err(Placed::nowhere(
            format!("has {count}"),
            "seconds come first, then minutes, hours, day of month, month, day of week and perhaps a year",
        )
        .error(text));
    }
    let mut draft = Draft::default();
    for (&field, word) in Field::ALL.iter().zip(&words) {
        draft.read(field, word).map_err(|at| at.error(text))?;
    }
    if words.len() < 7 {
        draft.fill(Field::Year, Span { from: None, to: None, step: None });
    }
    if words.len() > 7 {
        draft.warn(None, "", format!("what follows the seventh field is ignored: {:?}", words[7]));
    }
    draft.finish().map_err(|at| at.error(text))
}

/// Fields stand between spaces and tabs; what is invisible around one is not part of it.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split([' ', '\t'])
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_matches(|c| c <= ' '))
        .collect()
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Draft {
    /// The values of each field but the year; bit n is value n.
    sets: [u64; 6],
    years: Years,
    /// Whether the field said anything at all.
    said: [bool; 7],
    /// Whether the field said `?`.
    open: [bool; 7],
    last: Option<u32>,
    weekday: bool,
    last_of_week: bool,
    nth: Option<u32>,
    stepped_hours: bool,
    warnings: Vec<Warning>,
}

/// A problem and where it stands.
struct Placed {
    at: Option<(Field, String)>,
    wrong: Wrong,
}

impl Placed {
    fn nowhere(problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { at: None, wrong: Wrong { problem: problem.into(), hint: hint.into() } }
    }

    fn error(self, text: &str) -> CronError {
        let (field, part) = self.at.unzip();
        let Wrong { problem, hint } = self.wrong;
        CronError { text: text.to_owned(), field, part: part.unwrap_or_default(), problem, hint }
    }
}

impl Draft {
    fn read(&mut self, field: Field, word: &str) -> Result<(), Placed> {
        let upper = word.to_ascii_uppercase();
        let whole = |wrong| Placed { at: Some((field, word.to_owned())), wrong };
        check_list(field, &upper).map_err(whole)?;
        for part in word.split(',') {
            if part.is_empty() {
                self.warn(Some(field), word, "an empty part is skipped".to_owned());
                continue;
            }
            let mut notes = Vec::new();
            part::read(field, &part.to_ascii_uppercase(), &mut notes)
                .and_then(|read| self.add(field, read))
                .map_err(|wrong| Placed { at: Some((field, part.to_owned())), wrong })?;
            for note in notes {
                self.warn(Some(field), part, note);
            }
        }
        if !self.said[field as usize] {
            return wrong("names no value", field.values()).map_err(whole);
        }
        if self.open[field as usize] && upper != "?" {
            self.warn(Some(field), word, "everything beside ? is ignored".to_owned());
        } else {
            self.warn_about_list(field, word);
        }
        Ok(())
    }

    fn add(&mut self, field: Field, part: Part) -> Result<(), Wrong> {
        self.said[field as usize] |= part != Part::Nothing;
        match part {
            Part::Nothing => {}
            Part::Unspecified => self.open[field as usize] = true,
            Part::One(value) => {
                check_bounds(field, value)?;
                self.insert(field, value);
            }
            Part::Span(span) => {
                check_span(field, span)?;
                self.fill(field, span);
            }
            Part::Last { before, weekday } => {
                self.last = Some(before);
                self.weekday |= weekday;
            }
            Part::NearestWeekday(day) => {
                self.weekday = true;
                self.insert(field, day);
            }
            Part::LastOfWeek(day) => {
                self.last_of_week = true;
                self.insert(field, day);
            }
            Part::NthOfWeek(day, nth) => {
                self.nth = Some(nth);
                self.insert(field, day);
            }
        }
        Ok(())
    }

    /// Everything in the span, around the end of the field if need be.
    fn fill(&mut self, field: Field, span: Span) {
        let (least, most) = field.bounds();
        let (from, to) = (span.from.unwrap_or(least), span.to.unwrap_or(most));
        let step = span.step.unwrap_or(1);
        if step == 0 {
            return self.insert(field, from);
        }
        let around = if to < from { values(field) } else { 0 };
        let to = if field == Field::Year { to.min(LAST_YEAR) } else { to + around };
        let mut count = 0;
        for value in (from..=to).step_by(step as usize) {
            self.insert(field, if value > most { value - around } else { value });
            count += 1;
        }
        if field == Field::Hours {
            self.stepped_hours |= span.step.is_some() && count > 1;
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
        let first = fields::first(self.set(field));
        let message = match (field, self.nth) {
            (Field::DayOfMonth, _) if self.weekday => format!("{first}W"),
            (Field::DayOfWeek, Some(nth)) => format!("{first}#{nth}"),
            _ => return,
        };
        self.warn(Some(field), word, format!("only the smallest day counts: read as {message}"));
    }

    fn warn(&mut self, field: Option<Field>, part: &str, message: String) {
        self.warnings.push(Warning { field, part: part.to_owned(), message });
    }

    fn finish(mut self) -> Result<(Fields, Vec<Warning>), Placed> {
        let days = self.days()?;
        let hours = self.set(Field::Hours) as u32;
        let fields = Fields {
            seconds: self.set(Field::Seconds),
            minutes: self.set(Field::Minutes),
            hours,
            days,
            months: self.set(Field::Month) as u32,
            years: self.years,
            interval: self.stepped_hours || hours.count_ones() == 24,
        };
        if fields.next(Wall(0)).is_none() {
            self.warn(
                None,
                "",
                format!("it never fires: no such day before the end of {LAST_YEAR}"),
            );
        }
        Ok((fields, self.warnings))
    }

    fn days(&self) -> Result<Days, Placed> {
        let of_month = self.set(Field::DayOfMonth);
        let of_week = self.set(Field::DayOfWeek);
        match (self.open[Field::DayOfMonth as usize], self.open[Field::DayOfWeek as usize]) {
            (true, true) => Err(Placed::nowhere(
                "says ? for both day of month and day of week",
                "exactly one of them is ?, the other says which days",
            )),
            (false, false) => Err(Placed::nowhere(
                "says both which day of month and which day of week",
                "exactly one of them is ?; if you want both, that is two jobs",
            )),
            (false, true) => Ok(match (self.last, self.weekday) {
                (Some(before), false) => Days::Last { before },
                (Some(before), true) => Days::LastWeekday { before },
                (None, true) => Days::NearestWeekday { to: fields::first(of_month) },
                (None, false) => Days::OfMonth(of_month as u32),
            }),
            (true, false) => {
                let first = match fields::first(of_week) {
                    0 => 7,
                    first => first,
                };
                Ok(match (self.last_of_week, self.nth) {
                    (true, _) => Days::LastOfWeek(first),
                    (false, Some(nth)) => Days::NthOfWeek { weekday: first, nth },
                    (false, None) => Days::OfWeek(of_week as u32),
                })
            }
        }
    }
}

/// What Quartz refuses to see together.
fn check_list(field: Field, word: &str) -> Result<(), Wrong> {
    if field.is_day() && word.contains('L') && word.contains(',') {
        return wrong(
            "has an L in a list",
            "a day with L stands alone; if you want more, that is two jobs",
        );
    }
    if field == Field::DayOfWeek && word.matches('#').count() > 1 {
        return wrong(
            "has more than one #",
            "a day with # stands alone; if you want more, that is two jobs",
        );
    }
    Ok(())
}

fn check_span(field: Field, span: Span) -> Result<(), Wrong> {
    if let Some(from) = span.from {
        check_bounds(field, from)?;
    }
    let most = field.bounds().1;
    let (from, to) = (span.from.unwrap_or(0), span.to.unwrap_or(most));
    if field != Field::Year {
        return if to > most { wrong("is out of range", field.values()) } else { Ok(()) };
    }
    if to < from && span.step != Some(0) {
        return wrong("ends before it begins", "years do not wrap and end with 2199: 2026-2030");
    }
    Ok(())
}

/// Years are not bounded: those out of reach never come.
fn check_bounds(field: Field, value: i32) -> Result<(), Wrong> {
    let (least, most) = field.bounds();
    if field != Field::Year && !(least..=most).contains(&value) {
        return wrong("is out of range", field.values());
    }
    Ok(())
}

/// How many values the field has, to wrap around.
fn values(field: Field) -> i32 {
    let (least, most) = field.bounds();
    most - least + 1
}
