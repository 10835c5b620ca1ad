//! The seams that tests and the simulation turn by hand: what time it is, who stops what was started, and how it is told.
//!
//! Everybody may name this room; it names nobody.

mod cancel;
mod carried;
mod clock;
mod random;
mod tasks;

pub(crate) use self::carried::Carried;
pub use self::{
    cancel::{Cancel, CancelReason},
    clock::{Clock, Monotonic, SystemClock},
    random::{Randomness, SystemRandomness},
    tasks::Tasks,
};
