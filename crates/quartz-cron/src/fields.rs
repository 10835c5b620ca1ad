//! A cron expression as sets of bits, and the search for the next local time in them.

use super::{
    civil::{Month, Wall},
    days::Days,
};

/// The years a schedule knows.
pub(super) const FIRST_YEAR: i32 = 1970;
/// Where every search ends. Quartz ends a hundred years after its process was started; without a clock the bound has to stand still.
pub(super) const LAST_YEAR: i32 = 2199;

/// Invariant: no set is empty, except that [`Years`] may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u32,
    pub(super) days: Days,
    /// Bit 1 is January.
    pub(super) months: u32,
    pub(super) years: Years,
    /// The hours are `*` or have a step.
    pub(super) interval: bool,
}

impl Fields {
    /// The first local time at or after `from` that all fields agree on.
    pub(super) fn next(&self, from: Wall) -> Option<Wall> {
        let day = from.day();
        if self.is_meant(day)
            && let Some(time) = self.time_from(from.second_of_day())
        {
            return Some(Wall::on(day, time));
        }
        Some(Wall::on(self.day_from(day + 1)?, self.first_time()))
    }

    /// Whether the schedule has anything to do with that day.
    pub(super) fn is_meant(&self, day: i64) -> bool {
        let (month, day_of_month) = Month::containing(day);
        self.years.contains(month.year)
            && self.months & 1 << month.number != 0
            && self.days.of(&month) & 1 << day_of_month != 0
    }

    /// The first day at or after this one that the schedule has something to do with. At most 230 years of months are looked at.
    pub(super) fn day_from(&self, day: i64) -> Option<i64> {
        let (start, mut day_of_month) = Month::containing(day);
        let (mut year, mut month) = (start.year, start.number);
        loop {
            let next_year = self.years.from(year)?;
            if next_year != year {
                (year, month, day_of_month) = (next_year, 1, 1);
            }
            let Some(next_month) = from(u64::from(self.months), month) else {
                (year, month, day_of_month) = (year + 1, 1, 1);
                continue;
            };
            if next_month != month {
                (month, day_of_month) = (next_month, 1);
            }
            let candidate = Month::of(year, month);
            if let Some(found) = from(u64::from(self.days.of(&candidate)), day_of_month) {
                return Some(candidate.first + i64::from(found) - 1);
            }
            (month, day_of_month) = (month + 1, 1);
        }
    }

    /// The first time of day at or after this one.
    pub(super) fn time_from(&self, second_of_day: u32) -> Option<u32> {
        let (hour, minute, second) =
            (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
        if self.hours & 1 << hour != 0 {
            if self.minutes & 1 << minute != 0
                && let Some(second) = from(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = from(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + first(self.seconds));
            }
        }
        let hour = from(u64::from(self.hours), hour + 1)?;
        Some(hour * 3600 + first(self.minutes) * 60 + first(self.seconds))
    }

    fn first_time(&self) -> u32 {
        self.hours.trailing_zeros() * 3600 + first(self.minutes) * 60 + first(self.seconds)
    }
}

/// The smallest member of `set` that is at least `least`, which is at most 63.
pub(super) fn from(set: u64, least: u32) -> Option<u32> {
    let rest = set >> least << least;
    (rest != 0).then(|| rest.trailing_zeros())
}

pub(super) fn first(set: u64) -> u32 {
    set.trailing_zeros()
}

/// A set of years between [`FIRST_YEAR`] and [`LAST_YEAR`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Years([u64; 4]);

impl Years {
    /// Years that are out of reach are left out.
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

    fn from(&self, least: i32) -> Option<i32> {
        let at = u32::try_from(least - FIRST_YEAR).unwrap_or(0);
        let word = (at / 64) as usize;
        let found = from(*self.0.get(word)?, at % 64).map(|bit| (word, bit)).or_else(|| {
            let later = (word + 1..4).find(|&word| self.0[word] != 0)?;
            Some((later, first(self.0[later])))
        });
        found.map(|(word, bit)| FIRST_YEAR + word as i32 * 64 + bit as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_are_found_across_words_and_end_where_they_end() {
        let mut years = Years::default();
        for year in [1969, 1970, 2033, 2034, 2199, 2200] {
            years.insert(year);
        }

        assert_eq!(years.from(-5), Some(1970));
        assert_eq!(years.from(1971), Some(2033));
        assert_eq!(years.from(2034), Some(2034));
        assert_eq!(years.from(2035), Some(2199));
        assert_eq!(years.from(2200), None);
        assert_eq!(years.from(9999), None);
        assert!(!years.contains(1969) && years.contains(2199) && !years.contains(2200));
    }
}
