//! The seams that tests and the simulation turn by hand: what time it is, and who stops what was started.
//!
//! Everybody may name this room; it names nobody.

mod clock;
mod tasks;

pub use self::{
    clock::{Clock, Monotonic, SystemClock},
    tasks::Tasks,
};
