//! Quartz's behaviour when the clocks change, reproduced exactly.
//!
//! Quartz sets the fields of a local calendar one by one. Such a calendar interprets a repeated time as its second pass, so nothing fires
//! during the first; and it pushes a skipped time forward by the length of the gap, which changes fields that are already set. Well
//! after a transition, the result is "the next local time that exists". Soon after one it is not, because the push may lead past
//! fires that exist: with clocks going from 2:00 to 2:30 (Lord Howe), `0 15,35 * * * ?` loses 2:35; with clocks going from 23:00 to
//! 0:00 (Nuuk), `0 0 23 * * ?` loses the next day, too. In that period, this module repeats Quartz's steps one by one.
//!
//! Setting fields one by one has an effect without clock changes, too: see [`skip_short_month`].

use super::{
    civil::{DAY_SECONDS, LocalTime, Month},
    days::Days,
    fields::{self, Fields},
    zone::{Occurrence, Zone},
};

/// How long after a jump fires can be lost, in seconds.
const AFFECTED_SECONDS: i64 = DAY_SECONDS + 4 * 3600;

/// The first fire at or after `from`.
pub(super) fn next(fields: &Fields, zone: &Zone, from: i64) -> Option<i64> {
    let offset = zone.offset_at(from);
    let local_from = skip_short_month(fields, LocalTime::at(from, offset));
    let mut local = fields.next(local_from)?;
    let found_offset = loop {
        match zone.occurrence(local) {
            Occurrence::Once(offset) => break offset,
            Occurrence::Repeated(transition) => break transition.after,
            Occurrence::Skipped(transition) => local = fields.next(transition.end())?,
        }
    };
    let found = local.to_utc(found_offset);
    let earlier = if found - from > AFFECTED_SECONDS {
        zone.offset_at(found - AFFECTED_SECONDS)
    } else {
        offset
    };
    if earlier < found_offset {
        let local = search_field_by_field(fields, zone, local_from)?;
        return Some(utc_second(zone, local));
    }
    Some(found)
}

/// Once the weekday nearest to day n of a month has passed, Quartz goes to day n of the next month. If that month is too short, it lands
/// in the month after, and a fire in between is lost: after 30 January 2036, the next `30W` is 31 March, although from within
/// February it is 29 February, because 1 March is a Saturday.
fn skip_short_month(fields: &Fields, from: LocalTime) -> LocalTime {
    let Days::NearestWeekday { to } = fields.days else { return from };
    if to <= 28 {
        return from;
    }
    let day =
        if fields.next_time(from.second_of_day()).is_some() { from.day() } else { from.day() + 1 };
    let (month, day_of_month) = Month::containing(day);
    let (next, _) = Month::containing(month.first + i64::from(month.length));
    let is_over = fields.days.in_month(&month) & ((1 << day_of_month) - 1) != 0;
    if is_over && to > next.length {
        LocalTime::from_day(next.first + i64::from(to) - 1, 0)
    } else {
        from
    }
}

/// The order matters: seconds, minutes and hours are set before the day is checked.
fn search_field_by_field(fields: &Fields, zone: &Zone, from: LocalTime) -> Option<LocalTime> {
    let mut local = from;
    loop {
        let second = local.second_of_day() % 60;
        local = match fields::next_in_set(fields.seconds, second) {
            Some(next) => LocalTime(local.0 + i64::from(next - second)),
            None => push_forward(
                zone,
                LocalTime(local.0 + i64::from(60 - second + fields::first_in_set(fields.seconds))),
            ),
        };

        let (hour, minute) = (local.second_of_day() / 3600, local.second_of_day() / 60 % 60);
        match fields::next_in_set(fields.minutes, minute) {
            Some(next) if next == minute => {}
            Some(next) => {
                local = set_time(zone, local.day(), hour, next);
                continue;
            }
            None => {
                local = set_time(zone, local.day(), hour + 1, fields::first_in_set(fields.minutes));
                continue;
            }
        }

        match fields::next_in_set(u64::from(fields.hours), hour) {
            Some(next) if next == hour => {}
            Some(next) => {
                local = set_time(zone, local.day(), next, 0);
                continue;
            }
            None => {
                local = set_time(zone, local.day() + 1, fields.hours.trailing_zeros(), 0);
                continue;
            }
        }

        if fields.includes_day(local.day()) {
            return Some(local);
        }
        local = push_forward(zone, LocalTime::from_day(fields.next_day(local.day() + 1)?, 0));
    }
}

/// If the hour is not the one that was set, Quartz sets the next one.
fn set_time(zone: &Zone, day: i64, hour: u32, minute: u32) -> LocalTime {
    let local = push_forward(zone, LocalTime::from_day(day, hour * 3600 + minute * 60));
    if local.second_of_day() / 3600 == hour || hour == 24 {
        return local;
    }
    let minute = local.second_of_day() / 60 % 60;
    push_forward(zone, LocalTime::from_day(local.day(), (hour + 1) * 3600 + minute * 60))
}

fn push_forward(zone: &Zone, local: LocalTime) -> LocalTime {
    match zone.occurrence(local) {
        Occurrence::Skipped(transition) => {
            LocalTime(local.0 + transition.after - transition.before)
        }
        Occurrence::Once(_) | Occurrence::Repeated(_) => local,
    }
}

fn utc_second(zone: &Zone, local: LocalTime) -> i64 {
    match zone.occurrence(local) {
        Occurrence::Once(offset) => local.to_utc(offset),
        Occurrence::Skipped(transition) | Occurrence::Repeated(transition) => {
            local.to_utc(transition.after)
        }
    }
}
