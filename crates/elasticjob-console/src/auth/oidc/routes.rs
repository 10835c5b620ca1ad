//! The two steps of logging in elsewhere, and what the page that logs in has to know. Both steps are for browsers that are on their way: whatever happens, they
//! are sent on, and the page at the other end says what it was.

use crate::http::handler::routes;
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::{
    Oidc, claims,
    logins::{LIFE, Login},
    provider::Failed,
};
use crate::{
    audit::trail::Entry,
    auth::{
        accounts::Roles,
        routes::cookie,
        who::{address, cookie as cookie_of},
    },
    http::{
        extract::Query,
        problem::{Code, Problem},
        state::Shared,
    },
};

/// Whose login that is.
const COOKIE: &str = "elasticjob_oidc";
/// Where that cookie is sent.
const PATH: &str = "/api/v1/login/oidc";

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(methods))
        .routes(routes!(begin_oidc))
        .routes(routes!(end_oidc))
}

/// How one can log in here, besides with a password.
#[derive(Serialize, ToSchema)]
struct LoginMethods {
    /// At a provider, if there is one.
    oidc: Option<OidcMethod>,
}

/// Logging in at a provider.
#[derive(Serialize, ToSchema)]
struct OidcMethod {
    /// What the button says.
    label: String,
    /// Where the button leads.
    href: &'static str,
    /// Why that did not work when somebody last tried.
    problem: Option<String>,
}

/// How one can log in here, besides with a password.
#[utoipa::path(get, path = "/login/methods", tag = "session", security(()), responses((status = 200, body = LoginMethods)))]
async fn methods(State(shared): State<Shared>) -> Json<LoginMethods> {
    let oidc = shared.oidc.as_ref().map(|Oidc { provider, .. }| OidcMethod {
        label: provider.settings.label.clone(),
        href: PATH,
        problem: provider.problem(),
    });
    Json(LoginMethods { oidc })
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct BeginAsked {
    /// Where to go afterwards: a path of this console.
    to: Option<String>,
}

/// Sends a browser to the provider, to log in there.
#[utoipa::path(get, path = "/login/oidc", tag = "session", security(()), params(BeginAsked),
    responses((status = 303, description = "To the provider; to the page that logs in, if it does not answer"), (status = 404, body = Problem)))]
async fn begin_oidc(
    State(shared): State<Shared>,
    Query(asked): Query<BeginAsked>,
) -> Result<Response, Problem> {
    let Oidc { provider, logins } = oidc(&shared)?;
    let to = asked.to.filter(|to| is_here(to)).unwrap_or_else(|| "/".to_owned());
    let (login, secret) = logins.begin(to, shared.clock.monotonic())?;
    match provider.door(&login, &*shared.clock).await {
        Ok(door) => sent(door.as_str(), Some(binding(&secret, &shared)?)),
        Err(failed) => {
            tracing::warn!(%failed, "nobody can log in at the provider");
            outside(&login.to, Outcome::of(&failed))
        }
    }
}

/// What a provider sends back. It may say more.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct EndAsked {
    code: Option<String>,
    state: Option<String>,
    /// Which provider says so, if it says.
    iss: Option<String>,
    error: Option<String>,
}

/// Where the provider sends a browser back to: logs in, or says why not.
#[utoipa::path(get, path = "/login/oidc/callback", tag = "session", security(()), params(EndAsked),
    responses((status = 303, description = "To where the login began"), (status = 404, body = Problem)))]
async fn end_oidc(
    State(shared): State<Shared>,
    parts: Parts,
    Query(asked): Query<EndAsked>,
) -> Result<Response, Problem> {
    let Oidc { provider, logins } = oidc(&shared)?;
    let secret = cookie_of(&parts.headers, COOKIE).unwrap_or_default();
    let state = asked.state.as_deref().unwrap_or_default();
    let Some(login) = logins.take(secret, state, shared.clock.monotonic()) else {
        return outside("/", Outcome::Stale);
    };
    let address = address(&parts, &shared);
    if asked.iss.is_some_and(|iss| iss != provider.settings.issuer) {
        note(&shared, "oidc:", address, Err("the answer is of another provider"));
        return outside(&login.to, Outcome::Failed);
    }
    let Some(code) = asked.code.filter(|_| asked.error.is_none()) else {
        return outside(&login.to, Outcome::Denied);
    };
    match enter(&shared, &code, &login, address).await {
        Ok(secret) => sent(&login.to, cookie(&secret, &shared)?.remove(header::SET_COOKIE)),
        Err(outcome) => outside(&login.to, outcome),
    }
}

/// The secret of a new session.
async fn enter(
    shared: &Shared,
    code: &str,
    login: &Login,
    address: Option<String>,
) -> Result<String, Outcome> {
    let Oidc { provider, .. } = oidc(shared).map_err(|_| Outcome::Failed)?;
    let claims = provider.claims(code, login, &*shared.clock).await.map_err(|failed| {
        tracing::warn!(%failed, "nobody was logged in by the provider");
        note(shared, "oidc:", address.clone(), Err(&failed.to_string()));
        Outcome::of(&failed)
    })?;
    let username = claims::username(&claims, &provider.settings).map_err(|problem| {
        tracing::warn!(problem, "somebody the provider knows has no name here");
        note(shared, "oidc:", address.clone(), Err(&problem));
        Outcome::Failed
    })?;
    let roles = claims::roles(&claims, &provider.settings);
    if roles.is_empty() {
        note(shared, &username, address, Err("nothing the provider says gives them a role"));
        return Err(Outcome::NoRole);
    }
    note(shared, &username, address, Ok(&roles));
    let now = shared.clock.monotonic();
    let begun = shared.sessions.begin(&username, true, Some(roles), now);
    Ok(begun.map_err(|_| Outcome::Failed)?.1)
}

/// Writes down who came in, or did not.
fn note(shared: &Shared, username: &str, address: Option<String>, outcome: Result<&Roles, &str>) {
    let mut entry = Entry::of_login(shared.clock.now(), username, "oidc", address);
    match outcome {
        Ok(roles) => entry.result = json!({ "roles": roles }),
        Err(problem) => entry.problem = Some(problem.to_owned()),
    }
    shared.audit.add(entry);
}

/// How it ended, in a word that the page knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The provider does not answer.
    Unreachable,
    /// It was begun in another browser, too long ago, or is over.
    Stale,
    /// The provider says no.
    Denied,
    /// What the provider says is not good.
    Failed,
    /// They are known, and may nothing here.
    NoRole,
}

impl Outcome {
    fn of(failed: &Failed) -> Self {
        match failed {
            Failed::Unreachable(_) => Self::Unreachable,
            Failed::Code(_) | Failed::Token(_) => Self::Failed,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Stale => "stale",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::NoRole => "noRole",
        }
    }
}

fn oidc(shared: &Shared) -> Result<&Oidc, Problem> {
    shared.oidc.as_ref().ok_or_else(|| {
        Problem::new(
            Code::NotFound,
            "nobody logs in elsewhere here; hint: [oidc] in the configuration file names a provider",
        )
    })
}

/// Whether that is a path of this console, and nothing that a browser takes for another place.
fn is_here(to: &str) -> bool {
    let rest = to.strip_prefix('/');
    rest.is_some_and(|rest| !rest.starts_with(['/', '\\']))
        && to.chars().all(|c| c.is_ascii_graphic())
}

/// Back to the page, which says what it was.
fn outside(to: &str, outcome: Outcome) -> Result<Response, Problem> {
    let path = to.split(['?', '#']).next().unwrap_or_default();
    sent(&format!("{path}?oidc={}", outcome.word()), None)
}

fn sent(to: &str, cookie: Option<HeaderValue>) -> Result<Response, Problem> {
    let wrong = |_| Problem::new(Code::Internal, "the way on cannot be written");
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::try_from(to).map_err(wrong)?);
    if let Some(cookie) = cookie {
        headers.insert(header::SET_COOKIE, cookie);
    }
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// The cookie that a browser brings back from the provider: `Lax`, for it comes from another site then.
fn binding(secret: &str, shared: &Shared) -> Result<HeaderValue, Problem> {
    let secure = if shared.is_secure { "; Secure" } else { "" };
    let age = LIFE.as_secs();
    let cookie =
        format!("{COOKIE}={secret}; Path={PATH}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    HeaderValue::try_from(cookie)
        .map_err(|_| Problem::new(Code::Internal, "the cookie cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_to_another_place_after_logging_in() {
        for to in ["/", "/r/prod/jobs?search=a%20b", "/r/x#y"] {
            assert!(is_here(to), "{to}");
        }
        for to in ["", "//evil", "/\\evil", "https://evil", "r/x", "/a\tb", "/a b", "/\r\nx: y"] {
            assert!(!is_here(to), "{to:?}");
        }
    }
}
