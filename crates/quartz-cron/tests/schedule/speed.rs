//! Speed of the search for the next fire. The limit is asserted in optimised builds only, where it has a tenfold margin.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use quartz_cron::{Dst, Schedule};

use crate::{at, schedule};

const ITERATIONS: u32 = 1000;

#[test]
fn next_fire_is_found_in_less_than_a_microsecond() {
    for cron in ["0/2 * * * * ?", "0 15 10 ? * MON-FRI", "0 15 10 L * ?", "0 0 0 29 2 ?"] {
        for zone in ["UTC", "America/New_York"] {
            for dst in [Dst::Default, Dst::Quartz] {
                let took = fastest(&schedule(cron, zone, dst)) / ITERATIONS;

                eprintln!("{cron:20} {zone:17} {dst:8} {took:?}");
                assert!(cfg!(debug_assertions) || took < Duration::from_micros(1));
            }
        }
    }
}

#[test]
fn never_firing_expression_is_recognised_in_less_than_a_millisecond() {
    for cron in ["0 0 0 30 2 ?", "0 0 0 31 2,4,6,9,11 ?", "0 0 0 L-30W 2 ?"] {
        let never = schedule(cron, "America/New_York", Dst::Default);
        assert_eq!(never.next_after(at("2026-11-15T06:36:07Z")), None);

        let took = fastest(&never) / ITERATIONS;

        eprintln!("{cron:26} {took:?}");
        assert!(cfg!(debug_assertions) || took < Duration::from_millis(1));
    }
}

/// The fastest of five measurements, because other load on the machine only adds time.
fn fastest(schedule: &Schedule) -> Duration {
    let start = at("2026-11-15T06:36:07Z");
    let measure = || {
        let begin = stopwatch();
        let mut fire = start;
        for _ in 0..ITERATIONS {
            fire = black_box(schedule.next_after(black_box(fire))).unwrap_or(start);
        }
        begin.elapsed()
    };
    (0..5).map(|_| measure()).min().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "benchmarks measure real time")]
fn stopwatch() -> Instant {
    Instant::now()
}
