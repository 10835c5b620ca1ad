//! The console's HTTP API, and the pages on top of it.
//!
//! ```text
//!   request ──▶ guard (host, headers) ──▶ who (cookie, token, password; role) ──▶ door ──▶ elasticjob::admin ──▶ registry
//!                                                                                  │
//!                                          audit ◀── every change ─────────────────┘      mirror ◀── watch ── registry
//!                                                                             lists, events ◀──┘
//! ```
//!
//! * [`server`] — settings, listening, all routes put together; [`tls`] — HTTPS; [`guard`] — what every request is held to; [`passage`] — answered in time, and brought
//!   to its end; [`state`] — what all requests share.
//! * [`shelf`] — what is named or added; [`registries`], [`mirror`] — the line to each registry, and all of its jobs kept up to date; [`live`] — telling what happens.
//! * [`jobs`], [`overview`], [`search`], [`bulk`], [`config`], [`trigger`], [`shards`], [`servers`], [`places`], [`examined`], [`audited`],
//!   [`tools`] — what can be asked and done, at `/api/v1`.
//! * [`verbs`] — what is done to jobs, shards and servers, once for all who offer it; [`lists`] — what lists have in common.
//! * [`history`] — what was: runs, what they printed, figures.
//! * [`ancestor`] — the same under the ancestor's paths and shapes, at `/api`.
//! * [`auth`] — who asks, and what they may; [`audit`], [`cut`] — who changed what, in few words; [`files`] — what is kept on disk; [`health`] — how it goes.
//! * [`problem`] — why a request was not answered; [`extract`] — what a request carries.
//! * [`openapi`] — what there is, described by the code itself; [`usual`] — what operations have in common; [`pages`] — the web pages.

mod ancestor;
mod audit;
mod audited;
mod auth;
mod bulk;
mod config;
mod cut;
mod errands;
mod examined;
mod extract;
mod files;
mod guard;
mod health;
mod history;
mod instances;
mod jobs;
mod lists;
mod live;
mod mirror;
mod openapi;
mod overview;
mod pages;
mod passage;
mod places;
mod problem;
mod refusals;
mod registries;
mod search;
mod servers;
mod server;
mod shards;
mod shelf;
mod state;
mod tls;
mod tools;
mod trigger;
mod usual;
mod verbs;

pub(crate) use self::{
    auth::{
        oidc::{OidcFile, Settings as OidcSettings},
        proxies::Proxies,
    },
    server::{Console, First, Listening},
    shelf::Adding,
    tls::Identity,
};
