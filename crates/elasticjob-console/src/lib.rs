//! The console: an HTTP API on registries and histories, and the pages on top of it.
//!
//! ```text
//!   request ──▶ http (host, headers, lifecycle) ──▶ auth (cookie, token, password; role) ──▶ jobs | history | registries | legacy
//!                                                                                               │
//!                                   audit ◀── every change ─────────────────────────────────────┤
//!                                                                                               ▼
//!                                                                            elasticjob::admin ──▶ registry
//! ```
//!
//! * [`http`] — settings, listening, TLS; what every request is held to; problems, paging, the OpenAPI document, the embedded pages.
//! * [`auth`] — accounts, sessions, tokens, OpenID Connect; who asks, and what they may.
//! * [`jobs`] — jobs, shards, servers, instances: lists, changes, triggers.
//! * [`history`] — runs, their output, figures; the history stores themselves.
//! * [`registries`] — the connection to each registry, its mirror, and the stream of what happens there.
//! * [`audit`] — who changed what.
//! * [`legacy`] — the same under the paths and shapes of ElasticJob 2.x and 3.x UIs, at `/api`.
//!
//! The console reaches a registry through [`elasticjob::admin`] alone.

mod audit;
mod auth;
mod error;
mod files;
mod history;
mod http;
mod jobs;
mod legacy;
mod registries;

pub use self::{
    auth::{
        oidc::{OidcFile, Settings as OidcSettings},
        proxies::TrustedProxies,
    },
    error::{ConsoleError, ConsoleErrorKind},
    http::{
        detached_changes::DetachedChanges,
        server::{Console, ConsoleServer, FirstAccount},
        tls::TlsIdentity,
    },
    registries::catalog::AdditionPolicy,
};
