//! The audit trail: who changed what.
//!
//! * [`trail`] — the entries and their files; [`truncate`] — truncates long values; [`refusals`] — limits entries about refused requests.
//! * [`routes`] — the trail over HTTP.

pub(crate) mod refusals;
pub(crate) mod routes;
pub(crate) mod trail;
pub(crate) mod truncate;
