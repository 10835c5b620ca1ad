//! When a job is due: Quartz cron expressions, time zones, and the arithmetic of being late.
//!
//! A [`Schedule`] is a [`Cron`] expression, the [`Zone`] whose clock it is read on, and the [`Dst`] rule for the two nights a year
//! in which that clock is changed. It answers two questions, [what comes next](Schedule::next_after) and [what was
//! missed](Schedule::missed), and both take the time as an argument: nothing here asks what time it is, and nothing here waits.
//!
//! * **Expressions mean what they mean to Quartz 2.3.2**, down to its accidents, because they are stored in registries that Java
//!   instances read, too. An accident is accepted with a [`Warning`]; a mistake is a [`CronError`] that says which field, which
//!   part, and what would be right. The few deliberate differences are listed in `docs/cron.md`.
//! * **A fire is a whole second**, and the next one is always later than the one before, under both rules.
//! * **Every search ends.** Years go up to 2199; a day that never comes is known after at most that many years of months, which is
//!   a matter of microseconds.
//!
//! How it works: an expression becomes sets of bits (`fields`), in which the next *local* time is a matter of counting zeros.
//! When that is on a clock that is changed now and then is the rule's business (`steady` and `quartz`).

mod civil;
mod cron;
mod days;
mod dst;
mod error;
mod fields;
mod missed;
mod nearest;
mod parse;
mod part;
mod quartz;
mod steady;
mod suggest;
mod when;
mod zone;

pub use self::{
    cron::Cron,
    dst::{Dst, DstError},
    error::{CronError, Field, Warning},
    missed::{Missed, is_misfire},
    when::{Fires, Schedule},
    zone::{Zone, ZoneError},
};
