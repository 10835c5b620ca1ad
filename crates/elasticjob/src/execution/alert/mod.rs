//! Alerts about failed jobs: the counterpart of Java ElasticJob's error handlers.
//!
//! [`job::Alert`](crate::job::Alert) says which alert a job uses; this module delivers it. Failures are always logged, except with `IGNORE`.
//! Mail, chat robots and webhooks are delivered in the background through a queue in which each job has a bounded share, so that the alerts of one job
//! never push out those of another. A full share, a failed delivery, a delivery that takes too long and a target that is not allowed are logged and
//! counted; none of them delays or fails a run.

mod dispatcher;
mod notice;
mod queue;
#[cfg(feature = "email")]
mod email;
#[cfg(feature = "http")]
mod webhook;
#[cfg(feature = "http")]
mod sign;

pub use self::{
    dispatcher::{AlertChannel, AlertChannels, AlertOutcome, Alerts, Routing},
    notice::Notice,
};
