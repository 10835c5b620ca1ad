//! Quartz cron expressions with time zones and daylight saving rules: the next fire, and missed fires.
//!
//! A [`Schedule`] consists of a [`Cron`] expression, the [`Zone`] it is evaluated in, and the [`Dst`] rule for the days on which the
//! clocks change. It computes [the next fire](Schedule::next_after) and [missed fires](Schedule::missed). Both take the time as an
//! argument: this crate reads no clock and does not wait.
//!
//! * **Expressions mean what they mean to Quartz 2.3.2**, including its quirks, because Java instances read the same expressions from
//!   the registry. A quirk is accepted with a [`Warning`]; an error is a [`CronError`] that names the field and the part and gives a
//!   hint. The few deliberate differences are listed in `docs/cron.md`.
//! * **A fire is a whole second**, and the next fire is always later than the previous one, under both rules.
//! * **Every search ends.** Years go up to 2199, so an expression that never fires is recognised after at most 230 years of months,
//!   within microseconds.
//!
//! An expression is parsed into bit sets (`fields`), in which the next *local* time is found by counting zeros. `default_rule` and
//! `quartz_rule` convert local times to UTC around clock changes.

mod civil;
mod cron;
mod days;
mod default_rule;
mod dst;
mod error;
mod fields;
mod missed;
mod nearest;
mod parse;
mod part;
mod quartz_rule;
mod schedule;
mod suggest;
mod zone;

pub use self::{
    cron::Cron,
    dst::{Dst, DstError},
    error::{CronError, Field, Warning},
    missed::{Missed, is_misfire},
    schedule::{Fires, Schedule},
    zone::{Zone, ZoneError},
};
