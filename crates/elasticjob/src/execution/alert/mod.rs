//! Alerts about failed jobs: the counterpart of Java ElasticJob's error handlers.
//!
//! [`job::Alert`](crate::job::Alert) says which alert a job uses; this module delivers it. Failures are always logged, except with `IGNORE`.
//! Mail, chat robots and webhooks are delivered in the background through a bounded queue. A full queue, a failed delivery, a delivery that
//! takes too long and a target that is not allowed are logged; none of them delays or fails a run.

mod dispatcher;
mod notice;
#[cfg(feature = "email")]
mod email;
#[cfg(feature = "http")]
mod webhook;
#[cfg(feature = "http")]
mod sign;

pub use self::{
    dispatcher::{AlertChannel, AlertChannels, Alerts, Routing},
    notice::Notice,
};
