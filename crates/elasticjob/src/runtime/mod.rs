//! The parts of the environment that tests and the simulation replace: clock, random numbers, tasks and cancellation.
//!
//! Every module may use this one; it uses no other module of the crate.

mod attached_value;
mod cancel;
mod clock;
mod random;
mod tasks;

pub(crate) use self::attached_value::AttachedValue;
pub use self::{
    cancel::{CancelReason, CancelToken},
    clock::{Clock, Monotonic, SystemClock},
    random::{Randomness, SystemRandomness},
    tasks::Tasks,
};
