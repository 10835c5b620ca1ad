//! A cron expression as bit sets, and the search for the next local time.

use super::{
    civil::{LocalTime, Month},
    days::Days,
};

pub(super) const FIRST_YEAR: i32 = 1970;
/// Where every search ends. Quartz ends a hundred years after its process was started; without a clock, the bound must be fixed.
pub(super) const LAST_YEAR: i32 = 2199;

/// Invariant: no set is empty, except that [`Years`] may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    /// January is bit 1.
    pub(super) months: u32,
    pub(super) years: Years,
    /// The hours are `*` or have a step.
    pub(super) is_interval: bool,
}

impl Fields {
    /// The first local time at or after `from` that matches all fields.
    pub(super) fn next(&self, from: LocalTime) -> Option<LocalTime> {
        let day = from.day();
        if self.includes_day(day)
            && let Some(time) = self.next_time(from.second_of_day())
        {
            return Some(LocalTime::from_day(day, time));
        }
        Some(LocalTime::from_day(self.next_day(day + 1)?, self.first_time()))
    }

    /// Whether the day matches the day, month and year fields.
    pub(super) fn includes_day(&self, day: i64) -> bool {
        let (month, day_of_month) = Month::containing(day);
        self.years.contains(month.year)
            && self.months & 1 << month.number != 0
            && self.days.in_month(&month) & 1 << day_of_month != 0
    }

    /// The first matching day at or after this one. Checks at most 230 years of months.
    pub(super) fn next_day(&self, day: i64) -> Option<i64> {
        let (start, mut day_of_month) = Month::containing(day);
        let (mut year, mut month) = (start.year, start.number);
        loop {
            let next_year = self.years.next(year)?;
            if next_year != year {
                (year, month, day_of_month) = (next_year, 1, 1);
            }
            let Some(next_month) = next_in_set(u64::from(self.months), month) else {
                (year, month, day_of_month) = (year + 1, 1, 1);
                continue;
            };
            if next_month != month {
                (month, day_of_month) = (next_month, 1);
            }
            let candidate = Month::of(year, month);
            if let Some(found) =
                next_in_set(u64::from(self.days.in_month(&candidate)), day_of_month)
            {
                return Some(candidate.first + i64::from(found) - 1);
            }
            (month, day_of_month) = (month + 1, 1);
        }
    }

    /// The first matching time of day at or after this one.
    pub(super) fn next_time(&self, second_of_day: u32) -> Option<u32> {
        let (hour, minute, second) =
            (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        if self.hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = next_in_set(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = next_in_set(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first_in_set(self.seconds));
            }
        }
        let hour = next_in_set(u64::from(self.hours), hour + 1)?;
        Some(hour * 3600 + first_in_set(self.minutes) * 60 + first_in_set(self.seconds))
    }

    fn first_time(&self) -> u32 {
        self.hours.trailing_zeros() * 3600
            + first_in_set(self.minutes) * 60
            + first_in_set(self.seconds)
    }
}

/// The smallest member of `set` that is at least `min`, which is at most 63.
pub(super) fn next_in_set(set: u64, min: u32) -> Option<u32> {
    let rest = set >> min << min;
    (rest != 0).then(|| rest.trailing_zeros())
}

pub(super) fn first_in_set(set: u64) -> u32 {
    set.trailing_zeros()
}

/// A set of years between [`FIRST_YEAR`] and [`LAST_YEAR`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Years([u64; 4]);

impl Years {
    /// Years out of range are ignored.
    pub(super) fn insert(&mut self, year: i32) {
        if (FIRST_YEAR..=LAST_YEAR).contains(&year) {
            let at = (year - FIRST_YEAR) as usize;
            self.0[at / 64] |= 1 << (at % 64);
        }
    }

    fn contains(&self, year: i32) -> bool {
        let at = year - FIRST_YEAR;
        (0..256).contains(&at) && self.0[at as usize / 64] & 1 << (at % 64) != 0
    }

    /// The first year in the set that is at least `min`.
    fn next(&self, min: i32) -> Option<i32> {
        let at = u32::try_from(min - FIRST_YEAR).unwrap_or(0);
        let word = (at / 64) as usize;
        let found = next_in_set(*self.0.get(word)?, at % 64).map(|bit| (word, bit)).or_else(|| {
            let later = (word + 1..4).find(|&word| self.0[word] != 0)?;
            Some((later, first_in_set(self.0[later])))
        });
        found.map(|(word, bit)| FIRST_YEAR + word as i32 * 64 + bit as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn year_search_crosses_words_and_ends_at_the_last_year() {
        let mut years = Years::default();
        for year in [1969, 1970, 2033, 2034, 2199, 2200] {
            years.insert(year);
        }

        assert_eq!(years.next(-5), Some(1970));
        assert_eq!(years.next(1971), Some(2033));
        assert_eq!(years.next(2034), Some(2034));
        assert_eq!(years.next(2035), Some(2199));
        assert_eq!(years.next(2200), None);
        assert_eq!(years.next(9999), None);
        assert!(!years.contains(1969) && years.contains(2199) && !years.contains(2200));
    }
}
