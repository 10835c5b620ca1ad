//! Time zone names and offsets.

use jiff::{Timestamp, tz::TimeZone};
use quartz_cron::{Dst, Schedule, Zone};

use crate::at;

fn midnight(zone: Zone) -> Timestamp {
    let daily = Schedule { cron: "0 0 0 * * ?".parse().unwrap(), zone, dst: Dst::Default };
    daily.next_after(at("2026-11-15T12:00:00Z")).unwrap()
}

#[test]
fn gmt_offsets_are_parsed_as_java_does() {
    for (text, expected) in [
        ("GMT+8:00", "2026-11-15T16:00:00Z"),
        ("GMT+08:00", "2026-11-15T16:00:00Z"),
        ("GMT+0800", "2026-11-15T16:00:00Z"),
        ("GMT+800", "2026-11-15T16:00:00Z"),
        ("GMT+8", "2026-11-15T16:00:00Z"),
        ("GMT-3", "2026-11-16T03:00:00Z"),
        ("GMT-03:30", "2026-11-16T03:30:00Z"),
        ("GMT+5:45", "2026-11-15T18:15:00Z"),
        ("GMT+23:59", "2026-11-16T00:01:00Z"),
        ("GMT", "2026-11-16T00:00:00Z"),
        ("UTC", "2026-11-16T00:00:00Z"),
        ("Z", "2026-11-16T00:00:00Z"),
        ("Etc/GMT+8", "2026-11-16T08:00:00Z"),
    ] {
        let zone: Zone = text.parse().unwrap();

        assert_eq!(zone.to_string(), text);
        assert_eq!(midnight(zone), at(expected), "{text}");
    }
}

#[test]
fn iana_names_ignore_case() {
    for text in ["Asia/Shanghai", "asia/shanghai", "PRC"] {
        assert_eq!(midnight(text.parse().unwrap()), at("2026-11-15T16:00:00Z"), "{text}");
    }
}

#[test]
fn names_that_java_silently_reads_as_gmt_are_errors_with_a_hint() {
    for (text, hint) in [
        ("Asia/Shangai", "did you mean \"Asia/Shanghai\"?"),
        ("Shanghai", "did you mean \"Asia/Shanghai\"?"),
        ("America/New York", "did you mean \"America/New_York\"?"),
        ("UTC+8", "did you mean \"GMT+8\"?"),
        ("GMT+24:00", "write GMT+8:00 or GMT-03:30, hours up to 23"),
        ("GMT+8:0", "write GMT+8:00 or GMT-03:30, hours up to 23"),
        ("GMT+:30", "write GMT+8:00 or GMT-03:30, hours up to 23"),
        ("GMT+é", "write GMT+8:00 or GMT-03:30, hours up to 23"),
        ("GMT+1é1", "write GMT+8:00 or GMT-03:30, hours up to 23"),
        ("CST", "Java reads it as America/Chicago; write that, or the zone you mean"),
        ("nowhere at all", "write a name like Asia/Shanghai or an offset like GMT+8:00"),
        ("", "write a name like Asia/Shanghai or an offset like GMT+8:00"),
        ("Etc/Unknown", "write a name like Asia/Shanghai or an offset like GMT+8:00"),
    ] {
        let error = text.parse::<Zone>().unwrap_err();

        assert_eq!(error.hint, hint, "{error}");
    }
}

#[test]
fn zone_from_a_jiff_time_zone_parses_back() {
    for zone in ["Europe/Berlin", "GMT-03:30", "GMT+08:00"] {
        let zone: Zone = zone.parse().unwrap();

        assert_eq!(Zone::from(zone.to_time_zone()), zone);
    }
    assert_eq!(Zone::from(TimeZone::UTC), Zone::utc());
}
