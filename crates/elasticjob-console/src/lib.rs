//! The web console: an HTTP API for registries and histories, and the web pages that use it.
//!
//! ```text
//!   request ──▶ http (host, headers, lifecycle) ──▶ auth (cookie, token, password; role) ──▶ jobs | history | registries | legacy
//!                                                                                               │
//!                                   audit ◀── every change ─────────────────────────────────────┤
//!                                                                                               ▼
//!                                                                            elasticjob::admin ──▶ registry
//! ```
//!
//! * [`http`] — settings, listening, TLS; rules for every request; problem details, paging, the OpenAPI document, the embedded pages.
//! * [`auth`] — accounts, sessions, tokens, OpenID Connect; authenticates the caller and checks roles.
//! * [`jobs`] — jobs, shards, servers, instances: lists, changes, triggers.
//! * [`history`] — runs, their output and figures; connections to the history stores.
//! * [`registries`] — the connection to each registry, its mirror, and the event stream.
//! * [`audit`] — the audit trail: who changed what.
//! * [`legacy`] — the same functions under the paths and shapes of the ElasticJob 2.x and 3.x consoles, at `/api`.
//!
//! The console reaches a registry only through [`elasticjob::admin`].

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
        console::{Console, FirstAccount},
        detached_changes::DetachedChanges,
        limits::Limits,
        server::ConsoleServer,
        tls::TlsIdentity,
    },
    registries::catalog::AdditionPolicy,
};
