//! The two steps of a login at a provider, and the login methods. Both steps are browser navigations: whatever happens, the browser is
//! redirected, and the page it lands on shows the outcome.

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

use super::{Oidc, claims, cookies::Slot, logins::PendingLogin, provider::LoginError};
use crate::{
    audit::trail::Entry,
    auth::{
        accounts::Roles, caller::request_source, proxies::RequestSource, routes::session_cookie,
    },
    http::{
        extract::Query,
        problem::{Code, Problem},
        state::AppState,
    },
};

/// Path of the login, and of its cookie, unless the name of the cookie requires another.
pub(super) const LOGIN_PATH: &str = "/api/v1/login/oidc";

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(methods))
        .routes(routes!(begin_oidc))
        .routes(routes!(end_oidc))
}

/// Login methods besides a password.
#[derive(Serialize, ToSchema)]
struct LoginMethods {
    /// The OIDC provider, if configured.
    oidc: Option<OidcMethod>,
}

#[derive(Serialize, ToSchema)]
struct OidcMethod {
    /// Label of the button.
    label: String,
    /// Target of the button.
    href: &'static str,
    /// Why the last attempt to reach the provider failed.
    problem: Option<String>,
}

/// Returns the login methods besides a password.
#[utoipa::path(get, path = "/login/methods", tag = "session", security(()), responses((status = 200, body = LoginMethods)))]
async fn methods(State(app): State<AppState>) -> Json<LoginMethods> {
    let oidc = app.oidc.as_ref().map(|Oidc { provider, .. }| OidcMethod {
        label: provider.settings.label.clone(),
        href: LOGIN_PATH,
        problem: provider.problem(),
    });
    Json(LoginMethods { oidc })
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LoginQuery {
    /// Where to go after the login: a path of this console.
    #[serde(rename = "to")]
    return_to: Option<String>,
}

/// Redirects the browser to the provider's login.
#[utoipa::path(get, path = "/login/oidc", tag = "session", security(()), params(LoginQuery),
    responses((status = 303, description = "To the provider; to the login page if it does not answer"), (status = 404, body = Problem)))]
async fn begin_oidc(
    State(app): State<AppState>,
    headers: HeaderMap,
    Query(query): Query<LoginQuery>,
) -> Result<Response, Problem> {
    let Oidc { provider, seal } = oidc(&app)?;
    let return_to = query
        .return_to
        .filter(|return_to| is_local_path(return_to))
        .unwrap_or_else(|| "/".to_owned());
    let now = app.clock.monotonic();
    let login = PendingLogin::new(return_to, now)?;
    match provider.authorization_url(&login, &*app.clock).await {
        Ok(authorization_url) => {
            let slot = Slot::for_new(&headers, seal, now, &app);
            redirect(authorization_url.as_str(), [slot.cookie(&seal.seal(&login)?, &app)?])
        }
        Err(error) => {
            tracing::warn!(%error, "provider unreachable");
            redirect_with_failure(&login.return_to, LoginFailure::from(&error), None)
        }
    }
}

/// Query of the provider's redirect. It may contain more.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
struct CallbackQuery {
    code: Option<String>,
    state: Option<String>,
    /// The issuer, if the provider sends it.
    iss: Option<String>,
    error: Option<String>,
}

/// Target of the provider's redirect: logs the user in, or redirects with the reason why not.
#[utoipa::path(get, path = "/login/oidc/callback", tag = "session", security(()), params(CallbackQuery),
    responses((status = 303, description = "To where the login began"), (status = 404, body = Problem)))]
async fn end_oidc(
    State(app): State<AppState>,
    parts: Parts,
    Query(query): Query<CallbackQuery>,
) -> Result<Response, Problem> {
    let Oidc { provider, seal } = oidc(&app)?;
    let state = query.state.as_deref().unwrap_or_default();
    let now = app.clock.monotonic();
    let Some((slot, login)) = Slot::find(&parts.headers, state, seal, now, &app) else {
        // Other logins of this browser go on.
        return redirect_with_failure("/", LoginFailure::Stale, None);
    };
    let source = request_source(&parts, &app);
    let client = source.and_then(|source| source.client);
    let deleted = slot.cookie("", &app)?;
    let Ok(mut attempt) = app.throttle.begin_at_provider(client, now) else {
        tracing::debug!(?client, "too many failed logins at the provider");
        return redirect_with_failure(&login.return_to, LoginFailure::TooMany, Some(deleted));
    };
    let Some(code) = query.code.filter(|_| query.error.is_none()) else {
        return redirect_with_failure(&login.return_to, LoginFailure::Denied, Some(deleted));
    };
    attempt.begin_check();
    if query.iss.is_some_and(|iss| iss != provider.settings.issuer) {
        audit_login(&app, "oidc:", source, Err("the response is from another provider"));
        return redirect_with_failure(&login.return_to, LoginFailure::Other, Some(deleted));
    }
    match log_in(&app, &code, &login, source).await {
        Ok(secret) => {
            attempt.succeed();
            let session = session_cookie(&secret, &app)?.remove(header::SET_COOKIE);
            redirect(&login.return_to, session.into_iter().chain([deleted]))
        }
        Err(failure) => redirect_with_failure(&login.return_to, failure, Some(deleted)),
    }
}

/// Returns the secret of a new session.
async fn log_in(
    app: &AppState,
    code: &str,
    login: &PendingLogin,
    source: Option<RequestSource>,
) -> Result<String, LoginFailure> {
    let Oidc { provider, .. } = oidc(app).map_err(|_| LoginFailure::Other)?;
    let claims = provider.claims(code, login, &*app.clock).await.map_err(|error| {
        tracing::warn!(%error, "login at the provider failed");
        audit_login(app, "oidc:", source, Err(&error.to_string()));
        LoginFailure::from(&error)
    })?;
    let username = claims::username(&claims, &provider.settings).map_err(|problem| {
        tracing::warn!(problem, "login without a valid username claim");
        audit_login(app, "oidc:", source, Err(&problem));
        LoginFailure::Other
    })?;
    let roles = claims::roles(&claims, &provider.settings);
    if roles.is_empty() {
        audit_login(app, &username, source, Err("no claim of the provider grants a role"));
        return Err(LoginFailure::NoRole);
    }
    audit_login(app, &username, source, Ok(&roles));
    let now = app.clock.monotonic();
    let session = app.sessions.create(&username, true, Some(roles), now);
    Ok(session.map_err(|_| LoginFailure::Other)?.1)
}

/// Audits a login or a failed attempt.
fn audit_login(
    app: &AppState,
    username: &str,
    source: Option<RequestSource>,
    outcome: Result<&Roles, &str>,
) {
    let address = source.map(|source| source.address.to_string());
    let mut entry = Entry::login(app.clock.now(), username, "oidc", address);
    match outcome {
        Ok(roles) => {
            entry.result = json!({ "roles": roles });
            app.audit.add(entry);
        }
        Err(problem) => {
            entry.problem = Some(problem.to_owned());
            app.audit_failed_login(entry, source.and_then(|source| source.client));
        }
    }
}

/// Why a login failed, shown by the login page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoginFailure {
    Unreachable,
    /// Started in another browser, expired, or already used.
    Stale,
    /// The provider denied the login.
    Denied,
    /// The user has no role here.
    NoRole,
    /// Too many logins from this address failed.
    TooMany,
    /// Anything else, usually an invalid answer of the provider; the log tells more.
    Other,
}

impl From<&LoginError> for LoginFailure {
    fn from(error: &LoginError) -> Self {
        match error {
            LoginError::Unreachable(_) => Self::Unreachable,
            LoginError::Code(_) | LoginError::Token(_) => Self::Other,
        }
    }
}

impl LoginFailure {
    fn query_value(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Stale => "stale",
            Self::Denied => "denied",
            Self::NoRole => "noRole",
            Self::TooMany => "tooMany",
            Self::Other => "failed",
        }
    }
}

fn oidc(app: &AppState) -> Result<&Oidc, Problem> {
    app.oidc.as_ref().ok_or_else(|| {
        Problem::new(Code::NotFound, "no OpenID Connect provider is configured")
            .with_hint("[oidc] in the configuration file")
    })
}

/// Whether this is a path of this console that no browser resolves to another host.
fn is_local_path(return_to: &str) -> bool {
    let rest = return_to.strip_prefix('/');
    rest.is_some_and(|rest| !rest.starts_with(['/', '\\']))
        && return_to.chars().all(|c| c.is_ascii_graphic())
}

/// Redirects to the page, which shows the failure. The login is over: `deleted` is its cookie.
fn redirect_with_failure(
    return_to: &str,
    failure: LoginFailure,
    deleted: Option<HeaderValue>,
) -> Result<Response, Problem> {
    let path = return_to.split(['?', '#']).next().unwrap_or_default();
    redirect(&format!("{path}?oidc={}", failure.query_value()), deleted)
}

fn redirect(
    return_to: &str,
    cookies: impl IntoIterator<Item = HeaderValue>,
) -> Result<Response, Problem> {
    let wrong = |_| Problem::new(Code::Internal, "cannot encode the redirect");
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::try_from(return_to).map_err(wrong)?);
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_redirects_only_to_local_paths() {
        for return_to in ["/", "/r/prod/jobs?search=a%20b", "/r/x#y"] {
            assert!(is_local_path(return_to), "{return_to}");
        }
        for return_to in
            ["", "//evil", "/\\evil", "https://evil", "r/x", "/a\tb", "/a b", "/\r\nx: y"]
        {
            assert!(!is_local_path(return_to), "{return_to:?}");
        }
    }
}
