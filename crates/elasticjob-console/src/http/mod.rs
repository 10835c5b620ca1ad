//! HTTP itself: from a socket to a handler, and back.
//!
//! * [`server`] — settings, listening, all routes put together; [`tls`] — HTTPS; [`state`] — what all requests share.
//! * [`guard`] — what every request is held to; [`lifecycle`] — answered in time, and audited; [`detached_changes`] — a change outlives its client.
//! * [`problem`] — why a request was not answered; [`extract`] — what a request carries; [`paging`] — what lists have in common.
//! * [`openapi`] — what there is, described by the code itself; [`openapi_common`] — what operations have in common.
//! * [`pages`] — the web pages; [`health`] — how it goes.

pub(crate) mod detached_changes;
pub(crate) mod extract;
pub(crate) mod guard;
pub(crate) mod handler;
pub(crate) mod health;
pub(crate) mod lifecycle;
pub(crate) mod openapi;
pub(crate) mod openapi_common;
pub(crate) mod pages;
pub(crate) mod paging;
pub(crate) mod problem;
pub(crate) mod server;
pub(crate) mod state;
pub(crate) mod tls;
