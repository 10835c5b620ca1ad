//! The audit trail: who changed what.
//!
//! * [`trail`] — the entries and their files; `mask` — masks secrets; [`truncate`] — truncates long values; [`refusals`] — limits entries about
//!   refused requests.
//! * [`routes`] — the trail over HTTP.

mod mask;
pub(crate) mod refusals;
pub(crate) mod routes;
pub(crate) mod trail;
pub(crate) mod truncate;
