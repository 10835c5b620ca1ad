//! The default daylight saving rule: no hour without fires, and no lost fires. See [`Dst::Default`](super::Dst::Default).

use super::{
    civil::{DAY_SECONDS, LocalTime},
    fields::Fields,
    zone::{Occurrence, Zone},
};

/// The first fire at or after `from`.
pub(super) fn next(fields: &Fields, zone: &Zone, from: i64) -> Option<i64> {
    // A jump at this very second may skip a time of day, so the search starts from the offset before it.
    let offset = zone.offset_at(if fields.is_interval { from } else { from - 1 });
    let local_from = LocalTime::at(from, offset);
    let Some((found, found_offset)) = next_in_first_pass(fields, zone, from, local_from) else {
        return second_pass(fields, zone, offset, local_from);
    };
    // There can be a second pass only if the offset changed in between; this avoids another lookup in most cases.
    if fields.is_interval && (found_offset != offset || found - from > DAY_SECONDS) {
        return second_pass(fields, zone, offset, local_from).or(Some(found));
    }
    Some(found)
}

/// The first fire and its offset from UTC. Considers the second pass of a repeated time only if `from` is already in it.
fn next_in_first_pass(
    fields: &Fields,
    zone: &Zone,
    from: i64,
    local_from: LocalTime,
) -> Option<(i64, i64)> {
    let mut local = fields.next(local_from)?;
    loop {
        match zone.occurrence(local) {
            Occurrence::Once(offset) => return Some((local.to_utc(offset), offset)),
            Occurrence::Skipped(transition) if !fields.is_interval => {
                return Some((transition.at, transition.after));
            }
            Occurrence::Skipped(transition) => local = fields.next(transition.end())?,
            Occurrence::Repeated(transition) => {
                let first = local.to_utc(transition.before);
                if first >= from {
                    return Some((first, transition.before));
                }
                if fields.is_interval {
                    return Some((local.to_utc(transition.after), transition.after));
                }
                // It fired in the first pass, and a time of day fires once a day.
                local = fields.next(transition.end())?;
            }
        }
    }
}

/// The first fire of an interval in the second pass, if the clock is turned back over `local_from`.
fn second_pass(fields: &Fields, zone: &Zone, offset: i64, local_from: LocalTime) -> Option<i64> {
    match zone.occurrence(local_from) {
        Occurrence::Repeated(transition) if fields.is_interval && transition.before == offset => {
            let local =
                fields.next(transition.begin()).filter(|local| *local < transition.end())?;
            Some(local.to_utc(transition.after))
        }
        _ => None,
    }
}
