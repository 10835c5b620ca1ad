//! Calendar arithmetic: days since 1970, months with their length, seconds on a local clock.

pub(super) const DAY_SECONDS: i64 = 86_400;

/// Seconds on a local clock since its 1970-01-01T00:00:00, independent of the offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalTime(pub i64);

impl LocalTime {
    /// The local time at a UTC second; `offset` is seconds ahead of UTC, so it is positive in the east.
    pub(super) fn at(second: i64, offset: i64) -> Self {
        Self(second + offset)
    }

    /// The UTC second of this local time.
    pub(super) fn to_utc(self, offset: i64) -> i64 {
        self.0 - offset
    }

    pub(super) fn day(self) -> i64 {
        self.0.div_euclid(DAY_SECONDS)
    }

    pub(super) fn second_of_day(self) -> u32 {
        self.0.rem_euclid(DAY_SECONDS) as u32
    }

    pub(super) fn from_day(day: i64, second_of_day: u32) -> Self {
        Self(day * DAY_SECONDS + i64::from(second_of_day))
    }
}

/// A month of a year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Month {
    pub(super) year: i32,
    /// January is 1.
    pub(super) number: u32,
    /// The first day of the month, in days since 1970.
    pub(super) first: i64,
    pub(super) length: u32,
}

impl Month {
    pub(super) fn of(year: i32, month: u32) -> Self {
        Self { year, number: month, first: first_day(year, month), length: length(year, month) }
    }

    /// The month that contains a day, and the day of the month.
    pub(super) fn containing(day: i64) -> (Self, u32) {
        let (year, month, day_of_month) = date(day);
        let first = day - i64::from(day_of_month) + 1;
        (Self { year, number: month, first, length: length(year, month) }, day_of_month)
    }
}

/// Sunday is 1, as in Quartz.
pub(super) fn weekday(day: i64) -> u32 {
    // 1 January 1970 was a Thursday.
    (day + 4).rem_euclid(7) as u32 + 1
}

fn length(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

// Both directions count years from March, so that the leap day is the last day of a year, in eras of 400 years.
// See Howard Hinnant, "chrono-compatible low-level date algorithms".

fn first_day(year: i32, month: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = i64::from((153 * ((month + 9) % 12) + 2) / 5);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn date(day: i64) -> (i32, u32, u32) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097) as u32;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = i64::from(year_of_era) + era * 400 + i64::from(month <= 2);
    (year as i32, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use jiff::{ToSpan, civil};

    use super::*;

    #[test]
    fn calendar_agrees_with_jiff_over_five_centuries() {
        let epoch = civil::date(1970, 1, 1);
        for day in -100_000..100_000 {
            let expected = epoch + day.days();

            let (month, day_of_month) = Month::containing(day);

            let found = (month.year, month.number, day_of_month);
            let (year, number) = (i32::from(expected.year()), expected.month() as u32);
            assert_eq!(found, (year, number, expected.day() as u32));
            assert_eq!(month, Month::of(year, number));
            assert_eq!(month.length, expected.days_in_month() as u32);
            assert_eq!(weekday(day), expected.weekday().to_sunday_one_offset() as u32);
        }
    }
}
