//! Cron expressions, time zones and the search for fires. The input is an expression, a time zone and a second since 1970, each on its own line.
//!
//! Every search ends soon, the next fire is always later than the one before, and the search backwards finds what the search forwards passed.

use jiff::{SignedDuration, Timestamp};
use libfuzzer_sys::Corpus;
use quartz_cron::{Cron, Dst, Schedule, Zone};

use crate::limits::Limits;

const LIMITS: Limits = Limits { fixed: 1 << 20, per_byte: 256 };
const FIRES: usize = 8;

pub fn check(bytes: &[u8]) -> Corpus {
    let Ok(text) = std::str::from_utf8(bytes) else { return Corpus::Reject };
    let mut lines = text.split('\n');
    let expression = lines.next().unwrap_or_default();
    let zone = lines.next().unwrap_or_default();
    let second = lines.next().and_then(|second| second.parse().ok()).unwrap_or(1_700_000_000);
    LIMITS.check(text.len(), || {
        let zone = zone.parse::<Zone>().unwrap_or_else(|error| {
            assert!(!error.hint.is_empty());
            Zone::utc()
        });
        let cron = match expression.parse::<Cron>() {
            Ok(cron) => cron,
            Err(error) => return assert!(!error.hint.is_empty(), "{error}"),
        };
        assert_eq!(cron.to_string().parse::<Cron>().ok().as_ref(), Some(&cron));
        let from = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
        for dst in [Dst::Default, Dst::Quartz] {
            search(&Schedule { cron: cron.clone(), zone: zone.clone(), dst }, from);
        }
    });
    Corpus::Keep
}

fn search(schedule: &Schedule, from: Timestamp) {
    let mut last = from;
    for fire in schedule.after(from).take(FIRES) {
        assert!(fire > last, "{schedule:?}: {fire} after {last}");
        assert_eq!(fire.subsec_nanosecond(), 0);
        let before = schedule.prev_before(fire);
        assert!(
            before.is_none_or(|before| before < fire),
            "{schedule:?}: {before:?} before {fire}"
        );
        if last > from {
            assert_eq!(before, Some(last), "{schedule:?}: before {fire}");
        }
        last = fire;
    }
    if let Some(missed) = schedule.missed(from, last, SignedDuration::from_hours(24)) {
        assert!(missed.first > from && missed.first <= missed.last && missed.last <= last);
    }
}
