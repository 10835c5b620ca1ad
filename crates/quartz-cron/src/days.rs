//! The days of a month on which a schedule fires.

use super::civil::{Month, weekday};

const SUNDAY: u32 = 1;
const SATURDAY: u32 = 7;

/// The two day fields combined; exactly one of them is `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Days {
    /// Days of the month; bit n is day n.
    OfMonth(u32),
    /// `L`, `L-n`: `before` days before the last day.
    Last { before: u32 },
    /// `LW`, `L-nW`: the Monday to Friday nearest to that day.
    LastWeekday { before: u32 },
    /// `nW`: the Monday to Friday nearest to day n.
    NearestWeekday { to: u32 },
    /// Days of the week; bit n is day n, Sunday is 1.
    OfWeek(u32),
    /// `nL`: the last such day of the week in the month.
    LastOfWeek(u32),
    /// `n#k`: the k-th such day of the week in the month.
    NthOfWeek { weekday: u32, nth: u32 },
}

impl Days {
    /// The matching days of a month; bit n is day n.
    pub(super) fn in_month(self, month: &Month) -> u32 {
        match self {
            Days::OfMonth(days) => days & all_days(month),
            Days::Last { before } => day_bit(i64::from(month.length) - i64::from(before), month),
            Days::LastWeekday { before } => {
                nearest_weekday(i64::from(month.length) - i64::from(before), month)
            }
            Days::NearestWeekday { to } => nearest_weekday(i64::from(to), month),
            Days::OfWeek(weekdays) => days_of_week(weekdays, month),
            Days::LastOfWeek(weekday) => {
                let days = days_of_week(1 << weekday, month);
                1 << days.ilog2()
            }
            Days::NthOfWeek { weekday, nth } => {
                let first = days_of_week(1 << weekday, month).trailing_zeros();
                day_bit(i64::from(first + 7 * (nth - 1)), month)
            }
        }
    }
}

fn all_days(month: &Month) -> u32 {
    (u32::MAX >> (31 - month.length)) & !1
}

fn day_bit(day: i64, month: &Month) -> u32 {
    if (1..=i64::from(month.length)).contains(&day) { 1 << day } else { 0 }
}

/// `day` may be outside the month. Quartz uses the day of the week it has there, which can lead back into the month: `31W` is 30 April
/// if 1 May is a Saturday.
fn nearest_weekday(day: i64, month: &Month) -> u32 {
    let day = match weekday(month.first + day - 1) {
        SATURDAY if day == 1 => day + 2,
        SATURDAY => day - 1,
        SUNDAY if day == i64::from(month.length) => day - 2,
        SUNDAY => day + 1,
        _ => day,
    };
    day_bit(day, month)
}

fn days_of_week(weekdays: u32, month: &Month) -> u32 {
    let week = u64::from(weekdays >> 1);
    let weeks = week | week << 7 | week << 14 | week << 21 | week << 28 | week << 35;
    let from_first = weeks >> (weekday(month.first) - 1);
    (from_first << 1) as u32 & all_days(month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_match_the_calendar() {
        let february = Month::of(2026, 2); // The first is a Sunday, it has 28 days.
        let may = Month::of(2026, 5); // The first is a Friday, the last a Sunday.
        let monday = 2;

        assert_eq!(Days::OfMonth(u32::MAX).in_month(&february), 0x1FFF_FFFE);
        assert_eq!(Days::Last { before: 0 }.in_month(&may), 1 << 31);
        assert_eq!(Days::Last { before: 30 }.in_month(&february), 0);
        assert_eq!(Days::LastWeekday { before: 0 }.in_month(&may), 1 << 29);
        assert_eq!(Days::NearestWeekday { to: 1 }.in_month(&february), 1 << 2);
        assert_eq!(Days::NearestWeekday { to: 2 }.in_month(&may), 1 << 1);
        assert_eq!(Days::OfWeek(1 << monday).in_month(&may), 1 << 4 | 1 << 11 | 1 << 18 | 1 << 25);
        assert_eq!(Days::LastOfWeek(monday).in_month(&may), 1 << 25);
        assert_eq!(Days::NthOfWeek { weekday: 6, nth: 5 }.in_month(&may), 1 << 29);
        assert_eq!(Days::NthOfWeek { weekday: monday, nth: 5 }.in_month(&may), 0);
    }

    #[test]
    fn nearest_weekday_to_a_saturday_the_first_stays_in_the_month() {
        let august = Month::of(2026, 8); // The first is a Saturday.

        assert_eq!(Days::NearestWeekday { to: 1 }.in_month(&august), 1 << 3);
    }

    #[test]
    fn nearest_weekday_to_31_april_is_the_30th_if_may_starts_on_saturday() {
        assert_eq!(Days::NearestWeekday { to: 31 }.in_month(&Month::of(2027, 4)), 1 << 30);
        assert_eq!(Days::NearestWeekday { to: 31 }.in_month(&Month::of(2026, 4)), 0);
    }
}
