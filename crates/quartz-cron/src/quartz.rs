//! Quartz's rule while the clocks are changed, to the letter.
//!
//! Quartz works on a local calendar that it sets field by field. Such a calendar takes a repeated time for its second pass, so
//! the first pass is silent; and it pushes a skipped time forward by what was skipped, so that a set field may come out as
//! another. Where the search ends well after a change this is the same as "the next local time that exists". Soon after one it is
//! not, because the push may lead past fires that do exist: with clocks going from 2:00 to 2:30 (Lord Howe), `0 15,35 * * * ?`
//! loses 2:35; with clocks going from 23:00 to 0:00 (Nuuk), `0 0 23 * * ?` loses the next day, too. There the steps are followed
//! one by one.
//!
//! Setting field by field also shows where no clock is changed: see [`stride`].

use super::{
    civil::{DAY, Month, Wall},
    days::Days,
    fields::{self, Fields},
    zone::{Reading, Zone},
};

/// For how long after a jump fires can be lost.
const WAKE: i64 = DAY + 4 * 3600;

/// The first fire at or after `from`.
pub(super) fn next(fields: &Fields, zone: &Zone, from: i64) -> Option<i64> {
    let offset = zone.offset_at(from);
    let here = stride(fields, Wall::at(from, offset));
    let mut wall = fields.next(here)?;
    let its_offset = loop {
        match zone.read(wall) {
            Reading::Once(offset) => break offset,
            Reading::Repeated(change) => break change.after,
            Reading::Skipped(change) => wall = fields.next(change.end())?,
        }
    };
    let found = wall.second(its_offset);
    let earlier = if found - from > WAKE { zone.offset_at(found - WAKE) } else { offset };
    if earlier < its_offset {
        let wall = step_by_step(fields, zone, here)?;
        return Some(second(zone, wall));
    }
    Some(found)
}

/// When the weekday nearest to day n of this month is over, Quartz looks at day n of the next month. If that is too short it finds
/// itself in the one after, and a weekday in between is lost: after 30 January 2036 `30W` is 31 March, although asked in
/// February it is 29 February, because 1 March is a Saturday.
fn stride(fields: &Fields, from: Wall) -> Wall {
    let Days::NearestWeekday { to } = fields.days else { return from };
    if to <= 28 {
        return from;
    }
    let day =
        if fields.time_from(from.second_of_day()).is_some() { from.day() } else { from.day() + 1 };
    let (month, day_of_month) = Month::containing(day);
    let (next, _) = Month::containing(month.first + i64::from(month.length));
    let over = fields.days.of(&month) & ((1 << day_of_month) - 1) != 0;
    if over && to > next.length { Wall::on(next.first + i64::from(to) - 1, 0) } else { from }
}

/// The order matters: seconds, minutes and hours are settled on a day before it is asked whether the day is meant at all.
fn step_by_step(fields: &Fields, zone: &Zone, from: Wall) -> Option<Wall> {
    let mut wall = from;
    loop {
        let second = wall.second_of_day() % 60;
        wall = match fields::from(fields.seconds, second) {
            Some(next) => Wall(wall.0 + i64::from(next - second)),
            None => {
                push(zone, Wall(wall.0 + i64::from(60 - second + fields::first(fields.seconds))))
            }
        };

        let (hour, minute) = (wall.second_of_day() / 3600, wall.second_of_day() / 60 % 60);
        match fields::from(fields.minutes, minute) {
            Some(next) if next == minute => {}
            Some(next) => {
                wall = set_time(zone, wall.day(), hour, next);
                continue;
            }
            None => {
                wall = set_time(zone, wall.day(), hour + 1, fields::first(fields.minutes));
                continue;
            }
        }

        match fields::from(u64::from(fields.hours), hour) {
            Some(next) if next == hour => {}
            Some(next) => {
                wall = set_time(zone, wall.day(), next, 0);
                continue;
            }
            None => {
                wall = set_time(zone, wall.day() + 1, fields.hours.trailing_zeros(), 0);
                continue;
            }
        }

        if fields.is_meant(wall.day()) {
            return Some(wall);
        }
        wall = push(zone, Wall::on(fields.day_from(wall.day() + 1)?, 0));
    }
}

/// Quartz sees that it did not get the hour it asked for, and takes the next one to be right.
fn set_time(zone: &Zone, day: i64, hour: u32, minute: u32) -> Wall {
    let wall = push(zone, Wall::on(day, hour * 3600 + minute * 60));
    if wall.second_of_day() / 3600 == hour || hour == 24 {
        return wall;
    }
    let minute = wall.second_of_day() / 60 % 60;
    push(zone, Wall::on(wall.day(), (hour + 1) * 3600 + minute * 60))
}

fn push(zone: &Zone, wall: Wall) -> Wall {
    match zone.read(wall) {
        Reading::Skipped(change) => Wall(wall.0 + change.after - change.before),
        Reading::Once(_) | Reading::Repeated(_) => wall,
    }
}

fn second(zone: &Zone, wall: Wall) -> i64 {
    match zone.read(wall) {
        Reading::Once(offset) => wall.second(offset),
        Reading::Skipped(change) | Reading::Repeated(change) => wall.second(change.after),
    }
}
