//! The default rule while the clocks are changed: nothing falls silent, nothing is left out.

use super::{
    civil::{DAY, Wall},
    fields::Fields,
    zone::{Reading, Zone},
};

/// The first fire at or after `from`.
pub(super) fn next(fields: &Fields, zone: &Zone, from: i64) -> Option<i64> {
    // A time of day may be skipped by a jump at this very second, so it looks from the clock as it was before.
    let offset = zone.offset_at(if fields.interval { from } else { from - 1 });
    let here = Wall::at(from, offset);
    let Some((found, its_offset)) = next_in_first_pass(fields, zone, from, here) else {
        return second_pass(fields, zone, offset, here);
    };
    // Only if the clock was changed on the way can there be a second pass, and looking for it costs another question.
    if fields.interval && (its_offset != offset || found - from > DAY) {
        return second_pass(fields, zone, offset, here).or(Some(found));
    }
    Some(found)
}

/// The first fire, and the distance from UTC it has, as if a repeated time came once again only for those that are in it already.
fn next_in_first_pass(fields: &Fields, zone: &Zone, from: i64, here: Wall) -> Option<(i64, i64)> {
    let mut wall = fields.next(here)?;
    loop {
        match zone.read(wall) {
            Reading::Once(offset) => return Some((wall.second(offset), offset)),
            Reading::Skipped(change) if !fields.interval => return Some((change.at, change.after)),
            Reading::Skipped(change) => wall = fields.next(change.end())?,
            Reading::Repeated(change) => {
                let first = wall.second(change.before);
                if first >= from {
                    return Some((first, change.before));
                }
                if fields.interval {
                    return Some((wall.second(change.after), change.after));
                }
                // It was in the first pass, and a time of day comes once a day.
                wall = fields.next(change.end())?;
            }
        }
    }
}

/// What a rhythm still has to do when the clock is turned back over `here`.
fn second_pass(fields: &Fields, zone: &Zone, offset: i64, here: Wall) -> Option<i64> {
    match zone.read(here) {
        Reading::Repeated(change) if fields.interval && change.before == offset => {
            let wall = fields.next(change.begin()).filter(|wall| *wall < change.end())?;
            Some(wall.second(change.after))
        }
        _ => None,
    }
}
