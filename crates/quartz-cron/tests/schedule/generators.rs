//! Random expressions, zones, rules and times for the property tests.

use jiff::Timestamp;
use proptest::{prelude::*, sample::select};
use quartz_cron::Dst;

/// Expressions of every kind Quartz documents.
pub(crate) fn expression() -> impl Strategy<Value = String> {
    let days = prop_oneof![
        day_of_month().prop_map(|day| (day, "?".to_owned())),
        day_of_week().prop_map(|day| ("?".to_owned(), day)),
    ];
    let year = prop_oneof![
        8 => Just(String::new()),
        1 => select(&[" 2026", " 2026-2030", " 2026/2", " */3", " 2028,2031"][..])
            .prop_map(str::to_owned),
    ];
    let second = prop_oneof![Just("0".to_owned()), field(0, 59)];
    (second, field(0, 59), field(0, 23), days, month(), year).prop_map(
        |(second, minute, hour, (day, weekday), month, year)| {
            format!("{second} {minute} {hour} {day} {month} {weekday}{year}")
        },
    )
}

/// Expressions with a few characters changed: some are still valid, some are quirks, most are invalid.
pub(crate) fn mutation() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), any::<bool>(), "[0-9*?/,#LW A-Z-]");
    (expression(), prop::collection::vec(change, 1..4)).prop_map(|(expression, changes)| {
        let mut letters: Vec<char> = expression.chars().collect();
        for (at, replace, letter) in changes {
            let at = at.index(letters.len());
            letters.splice(at..at + usize::from(replace), letter.chars());
        }
        letters.into_iter().collect()
    })
}

fn field(min: u32, max: u32) -> BoxedStrategy<String> {
    let value = min..=max;
    let step = 1..=max.min(23);
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => value.clone().prop_map(|value| value.to_string()),
        2 => prop::collection::vec(value.clone(), 2..5).prop_map(|values| {
            values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        }),
        1 => (value.clone(), value.clone()).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => (value.clone(), value.clone(), 1..=12_u32)
            .prop_map(|(from, to, step)| format!("{from}-{to}/{step}")),
        1 => (value, step.clone()).prop_map(|(from, step)| format!("{from}/{step}")),
        1 => step.prop_map(|step| format!("*/{step}")),
    ]
    .boxed()
}

fn day_of_month() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => field(1, 31),
        1 => (1..=31_u32).prop_map(|day| format!("{day}W")),
        1 => (0..=30_u32).prop_map(|before| format!("L-{before}")),
        1 => (0..=30_u32).prop_map(|before| format!("L-{before}W")),
        1 => select(&["L", "LW"][..]).prop_map(str::to_owned),
    ]
}

fn month() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        1 => field(1, 12),
        1 => select(&["JAN", "NOV-FEB", "feb,AUG", "JUN-JUN"][..]).prop_map(str::to_owned),
    ]
}

fn day_of_week() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => field(1, 7),
        1 => (1..=7_u32).prop_map(|day| format!("{day}L")),
        1 => (1..=7_u32, 1..=5_u32).prop_map(|(day, nth)| format!("{day}#{nth}")),
        1 => select(&["MON-FRI", "SAT-MON", "sun", "FRIL", "TUE#2", "L"][..])
            .prop_map(str::to_owned),
    ]
}

/// Zones with clock changes of every kind, and three without.
pub(crate) fn zone() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        4 => changing_zone(),
        1 => select(&["UTC", "Asia/Kathmandu", "GMT+8:00"][..]),
    ]
}

/// Zones with clock changes: by one hour, half an hour or two hours; at night, at midnight, before midnight.
pub(crate) fn changing_zone() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "America/New_York",
            "Europe/Berlin",
            "Europe/Dublin",
            "Australia/Lord_Howe",
            "Antarctica/Troll",
            "America/Nuuk",
            "America/Havana",
            "Asia/Beirut",
            "Africa/Cairo",
            "Atlantic/Azores",
            "Africa/Casablanca",
        ][..],
    )
}

pub(crate) fn rule() -> impl Strategy<Value = Dst> {
    select(&[Dst::Default, Dst::Quartz][..])
}

/// Mostly present times, sometimes any timestamp.
pub(crate) fn moment() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        9 => (1_700_000_000..2_000_000_000_i64, 0..1_000_000_000)
            .prop_map(|(second, nano)| Timestamp::new(second, nano).unwrap()),
        1 => (-377_705_023_201..=253_402_207_200_i64)
            .prop_map(|second| Timestamp::from_second(second).unwrap()),
    ]
}
