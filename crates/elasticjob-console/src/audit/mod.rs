//! Who changed what.
//!
//! * [`trail`] — the entries, and the files they are kept in; [`truncate`] — long values cut; [`refusals`] — refused requests, counted.
//! * [`routes`] — the trail over HTTP.

pub(crate) mod refusals;
pub(crate) mod routes;
pub(crate) mod trail;
pub(crate) mod truncate;
