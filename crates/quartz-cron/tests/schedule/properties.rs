//! What holds for whatever anybody may write, wherever and whenever.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use proptest::prelude::*;
use quartz_cron::{Cron, Dst, Schedule, Zone};

use crate::{any, schedule};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = text.parse::<Cron>();
        let _ = text.parse::<Zone>();
    }

    #[test]
    fn an_error_ends_with_a_way_out(text in any::mutation()) {
        if let Err(error) = text.parse::<Cron>() {
            let said = error.to_string();

            prop_assert!(said.starts_with("cron ") && !error.problem.is_empty(), "{said}");
            prop_assert!(said.contains("; hint: ") && !error.hint.is_empty(), "{said}");
            prop_assert!(error.field.is_none() || text.contains(&error.part), "{said}");
        }
    }

    #[test]
    fn whatever_is_taken_has_its_next_fires_or_none_in_bounded_time(
        text in prop_oneof![any::expression(), any::mutation()],
        zone in any::zone(),
        dst in any::rule(),
        after in any::moment(),
    ) {
        let Ok(cron) = text.parse::<Cron>() else { return Ok(()) };
        let schedule = Schedule { cron, zone: zone.parse().unwrap(), dst };

        let fires: Vec<Timestamp> = schedule.after(after).take(20).collect();

        for pair in [&[after][..], &fires].concat().windows(2) {
            prop_assert!(pair[0] < pair[1], "{pair:?}");
            prop_assert_eq!(pair[1].subsec_nanosecond(), 0);
        }
        prop_assert_eq!(fires.is_empty(), schedule.next_after(after).is_none());
    }

    #[test]
    fn a_fire_of_the_default_rule_fits_the_clock_unless_it_was_moved_to_the_end_of_a_jump(
        text in any::expression(),
        zone in any::zone(),
        after in any::moment(),
    ) {
        let schedule = schedule(&text, zone, Dst::Default);
        let (quiet, clock) = (on_a_quiet_clock(&schedule), schedule.zone.to_time_zone());

        for fire in schedule.after(after).take(20) {
            let moved = clock.to_offset(fire - SECOND) < clock.to_offset(fire);
            prop_assert!(moved || is_meant(&quiet, clock.to_datetime(fire)), "{fire}");
        }
    }

    #[test]
    fn what_came_before_the_next_fire_is_not_after_now(
        text in any::expression(),
        zone in any::zone(),
        after in any::moment(),
    ) {
        let schedule = schedule(&text, zone, Dst::Default);

        if let Some(next) = schedule.next_after(after) {
            prop_assert_eq!(schedule.prev_before(next + SECOND), Some(next));
            prop_assert!(schedule.prev_before(next).is_none_or(|previous| previous <= after));
        }
    }

    #[test]
    fn in_a_place_without_clock_changes_both_rules_are_one(
        text in any::expression(),
        after in any::moment(),
    ) {
        // One habit of Quartz has nothing to do with clocks: see `stride` in its rule.
        if ["29W", "30W", "31W"].iter().any(|day| text.contains(day)) {
            return Ok(());
        }
        let fires = |dst| schedule(&text, "GMT+5:45", dst).after(after).take(5).collect::<Vec<_>>();

        prop_assert_eq!(fires(Dst::Default), fires(Dst::Quartz));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The default rule once more, as it is told to people: go through the night second by second and look at the clock.
    #[test]
    fn the_default_rule_is_what_a_patient_watcher_would_do(
        text in any::expression(),
        zone in any::changing_zone(),
        change in any::<prop::sample::Index>(),
    ) {
        let schedule = schedule(&text, zone, Dst::Default);
        let clock = TimeZone::get(zone).unwrap();
        let changes: Vec<Timestamp> = clock
            .following("2023-06-01T00:00:00Z".parse().unwrap())
            .map(|change| change.timestamp())
            .take_while(|at| *at < "2025-06-01T00:00:00Z".parse().unwrap())
            .collect();
        let around = changes[change.index(changes.len())];
        let (from, to) = (around - 3.hours(), around + 4.hours());

        let fires: BTreeSet<Timestamp> = schedule.fires_between(from, to).collect();

        let seen = watch(&schedule, &clock, from, to);
        let differences: Vec<_> = fires.symmetric_difference(&seen).take(5).collect();
        prop_assert!(differences.is_empty(), "{differences:?}");
    }
}

fn watch(
    schedule: &Schedule,
    clock: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> BTreeSet<Timestamp> {
    let (quiet, rhythm) = (on_a_quiet_clock(schedule), schedule.cron.is_interval());
    let mut fires = BTreeSet::new();
    let mut latest = clock.to_datetime(from - 4.hours());
    let mut now = from - 4.hours();
    while now < to {
        now += SECOND;
        let shown = clock.to_datetime(now);
        let skipped = latest + 1.second() < shown;
        // What a time of day has been shown before, it has been done before.
        let repeated = shown <= latest;
        let due = (is_meant(&quiet, shown) && (rhythm || !repeated))
            || (skipped && !rhythm && any_is_meant(&quiet, latest, shown));
        if due && now > from {
            fires.insert(now);
        }
        latest = latest.max(shown);
    }
    fires
}

/// Whether the fields fit this local time, told by a clock on which nothing ever happens.
fn is_meant(quiet: &Schedule, shown: DateTime) -> bool {
    let shown = TimeZone::UTC.to_timestamp(shown).unwrap();
    quiet.next_after(shown - SECOND) == Some(shown)
}

/// The same for any local time between two.
fn any_is_meant(quiet: &Schedule, after: DateTime, before: DateTime) -> bool {
    let (after, before) =
        (TimeZone::UTC.to_timestamp(after).unwrap(), TimeZone::UTC.to_timestamp(before).unwrap());
    quiet.next_after(after).is_some_and(|fire| fire < before)
}

fn on_a_quiet_clock(schedule: &Schedule) -> Schedule {
    Schedule { cron: schedule.cron.clone(), zone: Zone::utc(), dst: Dst::Default }
}
