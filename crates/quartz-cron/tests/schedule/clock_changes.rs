//! The default rule at both clock changes. Fires are written with their offset from UTC, which distinguishes the two passes of a
//! repeated hour.

use jiff::tz::TimeZone;
use quartz_cron::Dst;

use crate::{at, schedule};

/// The first fires after `after`, as local `MM-DDTHH:MM:SS±HH:MM`.
fn fires<const N: usize>(dst: Dst, cron: &str, zone: &str, after: &str) -> [String; N] {
    let schedule = schedule(cron, zone, dst);
    let zone = TimeZone::get(zone).unwrap();
    let mut fires = schedule.after(at(after));
    std::array::from_fn(|_| {
        fires.next().unwrap().to_zoned(zone.clone()).strftime("%m-%dT%H:%M:%S%:z").to_string()
    })
}

mod forward {
    use super::*;

    // New York, 10 March 2024: 2:00 → 3:00.
    const NEW_YORK: (&str, &str) = ("America/New_York", "2024-03-10T05:50:00Z");

    fn new_york<const N: usize>(cron: &str) -> [String; N] {
        fires(Dst::Default, cron, NEW_YORK.0, NEW_YORK.1)
    }

    #[test]
    fn skipped_time_fires_right_after_the_jump() {
        assert_eq!(new_york("0 30 2 * * ?"), ["03-10T03:00:00-04:00", "03-11T02:30:00-04:00"]);
        assert_eq!(new_york("0 0 2 ? * SUN"), ["03-10T03:00:00-04:00", "03-17T02:00:00-04:00"]);
    }

    #[test]
    fn times_skipped_together_become_one_fire() {
        let expected = ["03-10T03:00:00-04:00", "03-11T02:00:00-04:00", "03-11T02:10:00-04:00"];
        assert_eq!(new_york("0 0/10 2 * * ?"), expected);
    }

    #[test]
    fn skipped_time_and_time_at_the_end_of_the_jump_are_one_fire() {
        assert_eq!(
            new_york("0 30,0 2,3 * * ?"),
            ["03-10T03:00:00-04:00", "03-10T03:30:00-04:00", "03-11T02:00:00-04:00"]
        );
        assert_eq!(
            new_york("0 0 2,3,4 * * ?"),
            ["03-10T03:00:00-04:00", "03-10T04:00:00-04:00", "03-11T02:00:00-04:00"]
        );
    }

    #[test]
    fn interval_continues_across_the_jump() {
        assert_eq!(
            new_york("0 0/20 * * * ?"),
            [
                "03-10T01:00:00-05:00",
                "03-10T01:20:00-05:00",
                "03-10T01:40:00-05:00",
                "03-10T03:00:00-04:00",
                "03-10T03:20:00-04:00"
            ]
        );
        assert_eq!(
            new_york("0 30 * * * ?"),
            ["03-10T01:30:00-05:00", "03-10T03:30:00-04:00", "03-10T04:30:00-04:00"]
        );
        assert_eq!(new_york("0 0 0/2 * * ?"), ["03-10T04:00:00-04:00", "03-10T06:00:00-04:00"]);
    }

    #[test]
    fn jump_on_a_day_without_fires_adds_none() {
        assert_eq!(new_york("0 30 2 ? * MON"), ["03-11T02:30:00-04:00"]);
    }

    #[test]
    fn fire_in_the_last_second_before_the_jump_does_not_hide_the_next() {
        assert_eq!(
            new_york("59 59 1,2 * * ?"),
            ["03-10T01:59:59-05:00", "03-10T03:00:00-04:00", "03-11T01:59:59-04:00"]
        );
    }

    #[test]
    fn search_from_the_jump_excludes_its_fire() {
        let fires: [String; 1] =
            fires(Dst::Default, "0 30 2 * * ?", NEW_YORK.0, "2024-03-10T07:00:00Z");

        assert_eq!(fires, ["03-11T02:30:00-04:00"]);
    }

    #[test]
    fn jumps_of_other_zones_and_lengths() {
        for (cron, zone, after, expected) in [
            // 2:00 → 3:00.
            ("0 30 2 * * ?", "Europe/Berlin", "2024-03-30T12:00:00Z", "03-31T03:00:00+02:00"),
            // 2:00 → 2:30.
            ("0 15 2 * * ?", "Australia/Lord_Howe", "2024-10-05T10:00:00Z", "10-06T02:30:00+11:00"),
            ("0 45 2 * * ?", "Australia/Lord_Howe", "2024-10-05T10:00:00Z", "10-06T02:45:00+11:00"),
            // 1:00 → 3:00.
            ("0 30 1,2 * * ?", "Antarctica/Troll", "2024-03-30T12:00:00Z", "03-31T03:00:00+02:00"),
            // Midnight → 1:00.
            ("0 0 0 * * ?", "Africa/Cairo", "2024-04-25T12:00:00Z", "04-26T01:00:00+03:00"),
            ("0 0 0 26W * ?", "Africa/Cairo", "2024-04-25T12:00:00Z", "04-26T01:00:00+03:00"),
            // 23:00 → midnight of the next day.
            ("0 30 23 ? * SAT", "America/Nuuk", "2024-03-30T12:00:00Z", "03-31T00:00:00-01:00"),
        ] {
            assert_eq!(fires(Dst::Default, cron, zone, after), [expected], "{cron} in {zone}");
        }
    }

    #[test]
    fn quartz_rule_drops_a_skipped_time() {
        let fires: [String; 1] = fires(Dst::Quartz, "0 30 2 * * ?", NEW_YORK.0, NEW_YORK.1);

        assert_eq!(fires, ["03-11T02:30:00-04:00"]);
    }
}

mod back {
    use super::*;

    // New York, 3 November 2024: 2:00 → 1:00.
    const NEW_YORK: (&str, &str) = ("America/New_York", "2024-11-03T04:50:00Z");

    fn new_york<const N: usize>(cron: &str) -> [String; N] {
        fires(Dst::Default, cron, NEW_YORK.0, NEW_YORK.1)
    }

    #[test]
    fn repeated_time_fires_once() {
        assert_eq!(new_york("0 30 1 * * ?"), ["11-03T01:30:00-04:00", "11-04T01:30:00-05:00"]);
        assert_eq!(
            new_york("0 0/30 1-2 * * ?"),
            [
                "11-03T01:00:00-04:00",
                "11-03T01:30:00-04:00",
                "11-03T02:00:00-05:00",
                "11-03T02:30:00-05:00"
            ]
        );
    }

    #[test]
    fn interval_fires_in_both_passes() {
        assert_eq!(
            new_york("0 0/30 * * * ?"),
            [
                "11-03T01:00:00-04:00",
                "11-03T01:30:00-04:00",
                "11-03T01:00:00-05:00",
                "11-03T01:30:00-05:00",
                "11-03T02:00:00-05:00"
            ]
        );
        assert_eq!(
            new_york("0 45 1/2 * * ?"),
            ["11-03T01:45:00-04:00", "11-03T01:45:00-05:00", "11-03T03:45:00-05:00"]
        );
    }

    #[test]
    fn last_second_of_first_pass_is_followed_by_second_pass() {
        assert_eq!(
            new_york::<6>("0,59 0,59 1/2 * * ?")[3..],
            ["11-03T01:59:59-04:00", "11-03T01:00:00-05:00", "11-03T01:00:59-05:00"]
        );
        assert_eq!(new_york("59 59 1 * * ?"), ["11-03T01:59:59-04:00", "11-04T01:59:59-05:00"]);
    }

    #[test]
    fn second_pass_repeats_intervals_but_not_times_of_day() {
        let second_pass = "2024-11-03T06:10:00Z";
        let time_of_day: [String; 1] = fires(Dst::Default, "0 30 1 * * ?", NEW_YORK.0, second_pass);
        let interval: [String; 1] = fires(Dst::Default, "0 30 * * * ?", NEW_YORK.0, second_pass);

        assert_eq!(time_of_day, ["11-04T01:30:00-05:00"]);
        assert_eq!(interval, ["11-03T01:30:00-05:00"]);
    }

    #[test]
    fn interval_on_a_single_day_still_has_its_second_pass() {
        // Beirut, 26 October 2024: midnight → 23:00, on a Saturday, the only day of the schedule.
        let zone = ("Asia/Beirut", "2024-10-26T20:10:00Z");
        let fires: [String; 3] = fires(Dst::Default, "0 5/30 1/2 ? * SAT", zone.0, zone.1);

        let expected = ["10-26T23:35:00+03:00", "10-26T23:05:00+02:00", "10-26T23:35:00+02:00"];
        assert_eq!(fires, expected);
    }

    #[test]
    fn second_pass_is_found_even_if_no_later_fire_exists() {
        let cron = "0 0 * 3 11 ? 2024";
        let fires = schedule(cron, NEW_YORK.0, Dst::Default);
        let fires: Vec<_> = fires.after(at("2024-11-03T05:30:00Z")).collect();

        assert_eq!(fires[0], at("2024-11-03T06:00:00Z"));
        assert_eq!(fires.len(), 23);
    }

    #[test]
    fn turn_backs_of_other_zones_and_lengths() {
        for (cron, zone, after, expected) in [
            // 3:00 → 2:00.
            (
                "0 30 2 * * ?",
                "Europe/Berlin",
                "2024-10-26T22:00:00Z",
                ["10-27T02:30:00+02:00", "10-28T02:30:00+01:00"],
            ),
            // 2:00 → 1:30.
            (
                "0 45 * * * ?",
                "Australia/Lord_Howe",
                "2024-04-06T14:00:00Z",
                ["04-07T01:45:00+11:00", "04-07T01:45:00+10:30"],
            ),
            (
                "0 15 1/2 * * ?",
                "Australia/Lord_Howe",
                "2024-04-06T14:00:00Z",
                ["04-07T01:15:00+11:00", "04-07T03:15:00+10:30"],
            ),
            // 3:00 → 1:00.
            (
                "0 0 1,2 * * ?",
                "Antarctica/Troll",
                "2024-10-26T22:00:00Z",
                ["10-27T01:00:00+02:00", "10-27T02:00:00+02:00"],
            ),
            // 1:00 → midnight.
            (
                "0 30 0 * * ?",
                "America/Havana",
                "2024-11-02T12:00:00Z",
                ["11-03T00:30:00-04:00", "11-04T00:30:00-05:00"],
            ),
        ] {
            assert_eq!(fires(Dst::Default, cron, zone, after), expected, "{cron} in {zone}");
        }
    }

    #[test]
    fn quartz_rule_has_no_fires_in_the_first_pass() {
        let fires: [String; 2] = fires(Dst::Quartz, "0 0/30 * * * ?", NEW_YORK.0, NEW_YORK.1);

        assert_eq!(fires, ["11-03T01:00:00-05:00", "11-03T01:30:00-05:00"]);
    }
}
