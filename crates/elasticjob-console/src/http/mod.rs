//! From socket to handler and back.
//!
//! * [`console`] — settings and startup; [`stores`] — what the console stores; [`folder_lock`] — one console per data folder.
//! * [`server`] — serves connections; [`tls`] — HTTPS.
//! * [`limits`] — how much a client may take; [`connections`] — which connection gives way; [`streams`] — event streams and exports;
//!   [`body`] — bodies of requests; [`write_timeout`] — clients that do not read; [`quota`] and [`client_network`] — what these count, and by what.
//! * [`router`] — the complete router; [`state`] — state shared by all requests.
//! * [`guard`] — host check and security headers; [`lifecycle`] — timeout and audit of refusals; [`detached_changes`] — changes outlive their client.
//! * [`problem`] — RFC 9457 problem details; [`extract`] — extractors for bodies, queries and path parameters; [`paging`] — shared by all lists.
//! * [`openapi`] — the OpenAPI document, generated from the code; [`openapi_common`] — parts that all operations share.
//! * [`openapi_responses`] — required properties of responses; [`handler`] — boxed handlers.
//! * [`pages`] — the web pages; [`health`] — health endpoints.

mod body;
pub(crate) mod client_network;
mod connections;
pub(crate) mod console;
pub(crate) mod detached_changes;
pub(crate) mod extract;
mod folder_lock;
pub(crate) mod guard;
pub(crate) mod handler;
pub(crate) mod health;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod openapi;
pub(crate) mod openapi_common;
mod openapi_responses;
pub(crate) mod pages;
pub(crate) mod paging;
pub(crate) mod problem;
pub(crate) mod quota;
mod router;
pub(crate) mod server;
pub(crate) mod state;
mod stores;
pub(crate) mod streams;
pub(crate) mod tls;
mod write_timeout;
