//! Properties that hold for every expression, zone and time.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp, ToSpan, civil::DateTime, tz::TimeZone};
use proptest::prelude::*;
use quartz_cron::{Cron, Dst, Schedule, Zone};

use crate::{generators, schedule};

const SECOND: SignedDuration = SignedDuration::from_secs(1);

proptest! {
    #[test]
    fn parser_never_panics(text in "\\PC*") {
        let _ = text.parse::<Cron>();
        let _ = text.parse::<Zone>();
    }

    #[test]
    fn error_has_a_problem_and_a_hint(text in generators::mutation()) {
        if let Err(error) = text.parse::<Cron>() {
            let message = error.to_string();

            prop_assert!(message.starts_with("cron ") && !error.problem.is_empty(), "{message}");
            prop_assert!(!error.hint.is_empty(), "{message}");
            prop_assert!(error.field.is_none() || text.contains(&error.part), "{message}");
        }
    }

    #[test]
    fn fires_are_increasing_whole_seconds(
        text in prop_oneof![generators::expression(), generators::mutation()],
        zone in generators::zone(),
        dst in generators::rule(),
        after in generators::moment(),
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
    fn default_rule_fire_matches_local_time_or_follows_a_jump(
        text in generators::expression(),
        zone in generators::zone(),
        after in generators::moment(),
    ) {
        let schedule = schedule(&text, zone, Dst::Default);
        let (utc, clock) = (in_utc(&schedule), schedule.zone.to_time_zone());

        for fire in schedule.after(after).take(20) {
            let follows_jump = clock.to_offset(fire - SECOND) < clock.to_offset(fire);
            prop_assert!(follows_jump || matches_time(&utc, clock.to_datetime(fire)), "{fire}");
        }
    }

    #[test]
    fn previous_fire_is_the_inverse_of_next_fire(
        text in generators::expression(),
        zone in generators::zone(),
        after in generators::moment(),
    ) {
        let schedule = schedule(&text, zone, Dst::Default);

        if let Some(next) = schedule.next_after(after) {
            prop_assert_eq!(schedule.prev_before(next + SECOND), Some(next));
            prop_assert!(schedule.prev_before(next).is_none_or(|previous| previous <= after));
        }
    }

    #[test]
    fn rules_agree_in_a_zone_without_clock_changes(
        text in generators::expression(),
        after in generators::moment(),
    ) {
        // One quirk of Quartz does not depend on clock changes: see `skip_short_month` in `quartz_rule`.
        if ["29W", "30W", "31W"].iter().any(|day| text.contains(day)) {
            return Ok(());
        }
        let fires = |dst| schedule(&text, "GMT+5:45", dst).after(after).take(5).collect::<Vec<_>>();

        prop_assert_eq!(fires(Dst::Default), fires(Dst::Quartz));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A second, naive implementation of the default rule: step through the clock change second by second.
    #[test]
    fn default_rule_agrees_with_a_naive_implementation(
        text in generators::expression(),
        zone in generators::changing_zone(),
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

        let expected = naive_fires(&schedule, &clock, from, to);
        let differences: Vec<_> = fires.symmetric_difference(&expected).take(5).collect();
        prop_assert!(differences.is_empty(), "{differences:?}");
    }
}

fn naive_fires(
    schedule: &Schedule,
    clock: &TimeZone,
    from: Timestamp,
    to: Timestamp,
) -> BTreeSet<Timestamp> {
    let (utc, is_interval) = (in_utc(schedule), schedule.cron.is_interval());
    let mut fires = BTreeSet::new();
    let mut latest = clock.to_datetime(from - 4.hours());
    let mut now = from - 4.hours();
    while now < to {
        now += SECOND;
        let local = clock.to_datetime(now);
        let is_jump = latest + 1.second() < local;
        // A time of day that was shown before has fired before.
        let is_repeated = local <= latest;
        let is_due = (matches_time(&utc, local) && (is_interval || !is_repeated))
            || (is_jump && !is_interval && matches_between(&utc, latest, local));
        if is_due && now > from {
            fires.insert(now);
        }
        latest = latest.max(local);
    }
    fires
}

/// Whether the fields match this local time, computed in UTC, which has no clock changes.
fn matches_time(utc: &Schedule, local: DateTime) -> bool {
    let local = TimeZone::UTC.to_timestamp(local).unwrap();
    utc.next_after(local - SECOND) == Some(local)
}

/// Whether the fields match any local time between two.
fn matches_between(utc: &Schedule, after: DateTime, before: DateTime) -> bool {
    let (after, before) =
        (TimeZone::UTC.to_timestamp(after).unwrap(), TimeZone::UTC.to_timestamp(before).unwrap());
    utc.next_after(after).is_some_and(|fire| fire < before)
}

fn in_utc(schedule: &Schedule) -> Schedule {
    Schedule { cron: schedule.cron.clone(), zone: Zone::utc(), dst: Dst::Default }
}
