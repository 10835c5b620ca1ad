//! The audit trail: who changed what.
//!
//! * [`trail`] — the entries and their files; `mask` — masks secrets; [`truncate`] — truncates long values; [`limiter`] — limits entries about
//!   refused requests and failed logins.
//! * [`routes`] — the trail over HTTP.

pub(crate) mod limiter;
mod mask;
pub(crate) mod routes;
pub(crate) mod trail;
pub(crate) mod truncate;
