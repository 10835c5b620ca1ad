//! Telling somebody that something went wrong: the ancestor's error handlers.
//!
//! Who is told about which job is [`job::Alert`](crate::job::Alert); here is how. The log is told always, except with `IGNORE`. Mail,
//! robots and webhooks are told in the background: there is a queue, and when it is full, or somebody does not answer in time, that
//! is logged. It never holds up a run, and never fails one.

mod desk;
mod notice;
#[cfg(feature = "email")]
mod email;
#[cfg(feature = "http")]
mod robot;
#[cfg(feature = "http")]
mod sign;

pub use self::{
    desk::{Alerts, Messenger, Verdict, Ways},
    notice::Notice,
};
