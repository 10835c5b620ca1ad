//! How long the next fire takes to find. The bar is asserted in optimised builds only, where it has a tenfold margin.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use quartz_cron::{Dst, Schedule};

use crate::{at, schedule};

const ROUND: u32 = 1000;

#[test]
fn the_next_fire_of_an_ordinary_expression_takes_less_than_a_microsecond() {
    for cron in ["0/2 * * * * ?", "0 15 10 ? * MON-FRI", "0 15 10 L * ?", "0 0 0 29 2 ?"] {
        for zone in ["UTC", "America/New_York"] {
            for dst in [Dst::Default, Dst::Quartz] {
                let took = best_round(&schedule(cron, zone, dst)) / ROUND;

                eprintln!("{cron:20} {zone:17} {dst:8} {took:?}");
                assert!(cfg!(debug_assertions) || took < Duration::from_micros(1));
            }
        }
    }
}

#[test]
fn a_day_that_never_comes_is_known_in_less_than_a_millisecond() {
    for cron in ["0 0 0 30 2 ?", "0 0 0 31 2,4,6,9,11 ?", "0 0 0 L-30W 2 ?"] {
        let never = schedule(cron, "America/New_York", Dst::Default);
        assert_eq!(never.next_after(at("2026-11-15T06:36:07Z")), None);

        let took = best_round(&never) / ROUND;

        eprintln!("{cron:26} {took:?}");
        assert!(cfg!(debug_assertions) || took < Duration::from_millis(1));
    }
}

/// Of some rounds the fastest: what else the machine does only ever adds to it.
fn best_round(schedule: &Schedule) -> Duration {
    let start = at("2026-11-15T06:36:07Z");
    let round = || {
        let begin = stopwatch();
        let mut fire = start;
        for _ in 0..ROUND {
            fire = black_box(schedule.next_after(black_box(fire))).unwrap_or(start);
        }
        begin.elapsed()
    };
    (0..5).map(|_| round()).min().unwrap()
}

#[expect(clippy::disallowed_methods, reason = "how long something takes is measured in real time")]
fn stopwatch() -> Instant {
    Instant::now()
}
