//! Login and logout, accounts, tokens.

use std::time::Duration;

use crate::http::handler::routes;
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::{
    accounts::{Role, Roles},
    caller::{AuthMethod, COOKIE, Caller, check_origin, cookie_name, request_source},
};
use crate::{
    audit::trail::Entry,
    http::{
        extract::{Body, Path, parse_timestamp},
        problem::{Code, Problem},
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(logout))
        .routes(routes!(session))
        .routes(routes!(change_password))
        .routes(routes!(accounts))
        .routes(routes!(put_account, delete_account))
        .routes(routes!(tokens, add_token))
        .routes(routes!(delete_token))
        .routes(routes!(revoke_token))
        .routes(routes!(sessions))
        .routes(routes!(end_sessions))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Credentials {
    pub(crate) username: String,
    #[schema(format = Password)]
    pub(crate) password: String,
}

/// The logged-in user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Session)]
struct SessionInfo {
    username: String,
    /// Roles by registry; `*` stands for all of them and the console itself.
    roles: Roles,
    /// CSRF token that a change by cookie sends as X-CSRF-Token; null without a cookie.
    csrf_token: Option<String>,
    /// Whether the user has an account here, with password and tokens; a user who logged in at a provider may have none.
    has_account: bool,
    /// Whether registries can be added at run time.
    can_add_registries: bool,
    /// Whether histories can be added at run time.
    can_add_histories: bool,
    /// Version of the console.
    version: &'static str,
}

fn session_info(
    username: String,
    roles: Roles,
    csrf_token: Option<String>,
    app: &AppState,
) -> SessionInfo {
    SessionInfo {
        has_account: app.accounts.roles(&username).is_some(),
        username,
        roles,
        csrf_token,
        can_add_registries: app.registries.additions().is_enabled,
        can_add_histories: app.histories.additions().is_enabled,
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Logs in; the response sets the session cookie.
#[utoipa::path(post, path = "/login", tag = "session", security(()), request_body = Credentials,
    responses((status = 200, body = SessionInfo), (status = 401, body = Problem), (status = 429, body = Problem, description = "Wait as long as Retry-After says")))]
async fn login(
    State(app): State<AppState>,
    parts: Parts,
    Body(Credentials { username, password }): Body<Credentials>,
) -> Result<Response, Problem> {
    check_origin(&parts.headers)?;
    let source = request_source(&parts, &app);
    let credential = app.check_password(&username, &password, source).await?;
    let (session, secret) = app.open_session(&username, &credential, true)?;
    let address = source.map(|source| source.address.to_string());
    app.audit.add(Entry::login(app.clock.now(), &username, "login", address));
    let roles = app.accounts.roles(&username).unwrap_or_default();
    let info = session_info(username, roles, Some(session.csrf), &app);
    Ok((session_cookie(&secret, &app)?, Json(info)).into_response())
}

/// The session cookie; an empty secret deletes it.
pub(super) fn session_cookie(secret: &str, app: &AppState) -> Result<HeaderMap, Problem> {
    let name = cookie_name(COOKIE, app);
    let secure = if app.is_https { "; Secure" } else { "" };
    let age = if secret.is_empty() { "; Max-Age=0" } else { "" };
    let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    let cookie = HeaderValue::try_from(cookie)
        .map_err(|_| Problem::new(Code::Internal, "cannot encode the cookie"))?;
    Ok(HeaderMap::from_iter([(header::SET_COOKIE, cookie)]))
}

/// Logs out.
#[utoipa::path(post, path = "/logout", tag = "session", responses((status = 204), (status = 401, body = Problem)))]
async fn logout(State(app): State<AppState>, caller: Caller) -> Result<Response, Problem> {
    if let AuthMethod::Session(secret) | AuthMethod::AccessToken(secret) = &caller.via {
        app.sessions.end(secret);
    }
    Ok((StatusCode::NO_CONTENT, session_cookie("", &app)?).into_response())
}

/// The logged-in user, their roles, and the session's CSRF token.
#[utoipa::path(get, path = "/session", tag = "session", responses((status = 200, body = SessionInfo), (status = 401, body = Problem)))]
async fn session(State(app): State<AppState>, caller: Caller) -> Json<SessionInfo> {
    let csrf = match &caller.via {
        AuthMethod::Session(secret) => app.sessions.find(secret, true, app.clock.monotonic()),
        _ => None,
    };
    let roles = caller.roles().clone();
    Json(session_info(caller.username, roles, csrf.map(|session| session.csrf), &app))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PasswordChange {
    #[schema(format = Password)]
    old_password: String,
    #[schema(format = Password, min_length = 8, max_length = 1024)]
    new_password: String,
}

/// Changes the own password; all other sessions end.
#[utoipa::path(post, path = "/password", tag = "session", request_body = PasswordChange,
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
async fn change_password(
    State(app): State<AppState>,
    caller: Caller,
    Body(change): Body<PasswordChange>,
) -> Result<StatusCode, Problem> {
    let AuthMethod::Session(secret) = &caller.via else {
        return Err(Problem::new(
            Code::Forbidden,
            "only a user who logged in can change the own password",
        )
        .with_hint("log in"));
    };
    require_account(&app, &caller)?;
    let wrong = || Problem::invalid("oldPassword", "wrong password");
    let old = app.check_password(&caller.username, &change.old_password, caller.source).await;
    let old = old.map_err(|problem| match problem.code {
        Code::NotAuthenticated => wrong(),
        _ => problem,
    })?;
    let changed = app.accounts.replace_password(&caller.username, &old, change.new_password).await;
    let changed = match changed {
        Ok(true) => Ok(()),
        Ok(false) => Err(wrong()),
        Err(problem) => Err(problem.with_field("newPassword")),
    };
    let outcome = changed.as_ref().map(|()| Value::Null);
    caller.audit(&app, "password.change", &caller.username, Value::Null, outcome);
    changed?;
    app.sessions.end_all(&caller.username, Some(secret));
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Account)]
struct AccountInfo {
    username: String,
    roles: Roles,
    tokens: Vec<TokenInfo>,
}

/// Lists all accounts. Requires an admin of `*`.
#[utoipa::path(get, path = "/accounts", tag = "accounts", responses((status = 200, body = [AccountInfo]), (status = 403, body = Problem)))]
async fn accounts(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Json<Vec<AccountInfo>>, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let accounts = app.accounts.all().into_iter().map(|(username, account)| AccountInfo {
        username,
        roles: account.roles,
        tokens: account.tokens.into_iter().map(TokenInfo::from).collect(),
    });
    Ok(Json(accounts.collect()))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AccountRequest)]
struct AccountBody {
    /// Required for a new account.
    #[schema(format = Password, min_length = 8, max_length = 1024)]
    password: Option<String>,
    /// Required for a new account.
    roles: Option<Roles>,
}

/// Creates or updates an account; omitted fields stay unchanged. Requires an admin of `*`, and a session: a token cannot change accounts.
#[utoipa::path(put, path = "/accounts/{username}", tag = "accounts", request_body = AccountBody, params(("username" = String, Path)),
    responses((status = 204), (status = 201), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn put_account(
    State(app): State<AppState>,
    caller: Caller,
    Path(username): Path<String>,
    Body(AccountBody { password, roles }): Body<AccountBody>,
) -> Result<StatusCode, Problem> {
    caller.require_everywhere(Role::Admin)?;
    caller.require_in_person()?;
    let has_password = password.is_some();
    let before = app.accounts.roles(&username);
    let put = app.accounts.put(&username, password, roles).await;
    let outcome = put.as_ref().map(|is_new| {
        let after = app.accounts.roles(&username);
        json!({ "isNew": is_new, "passwordChanged": has_password, "before": before, "roles": after })
    });
    caller.audit(&app, "account.put", &username, Value::Null, outcome);
    let is_new = put?;
    if has_password {
        let own = match &caller.via {
            AuthMethod::Session(secret) if caller.username == username => Some(secret.as_str()),
            _ => None,
        };
        app.sessions.end_all(&username, own);
    }
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// Removes an account and ends its sessions and tokens. Requires an admin of `*`, and a session: a token cannot change accounts.
#[utoipa::path(delete, path = "/accounts/{username}", tag = "accounts", params(("username" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn delete_account(
    State(app): State<AppState>,
    caller: Caller,
    Path(username): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require_everywhere(Role::Admin)?;
    caller.require_in_person()?;
    let removed = app.accounts.remove(&username);
    let outcome = removed.as_ref().map(|()| Value::Null);
    caller.audit(&app, "account.remove", &username, Value::Null, outcome);
    removed?;
    app.sessions.end_all(&username, None);
    Ok(StatusCode::NO_CONTENT)
}

/// An API token without its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Token)]
struct TokenInfo {
    id: String,
    name: String,
    /// Upper limit; the token never has a higher role than its account.
    role: Role,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl From<crate::auth::accounts::Token> for TokenInfo {
    fn from(token: crate::auth::accounts::Token) -> Self {
        let crate::auth::accounts::Token { id, name, role, created_at, expires_at, .. } = token;
        Self { id, name, role, created_at, expires_at }
    }
}

/// Lists the own tokens.
#[utoipa::path(get, path = "/tokens", tag = "accounts", responses((status = 200, body = [TokenInfo]), (status = 401, body = Problem)))]
async fn tokens(State(app): State<AppState>, caller: Caller) -> Json<Vec<TokenInfo>> {
    let account = app.accounts.all().remove(&caller.username);
    let tokens = account.map(|account| account.tokens).unwrap_or_default();
    Json(tokens.into_iter().map(TokenInfo::from).collect())
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = TokenRequest)]
struct TokenBody {
    /// A name that tells its purpose.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// Upper limit of the token's rights.
    role: Role,
    /// Expiry; if omitted, the token is valid until it is removed.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<String>,
}

/// A new token with its secret.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = NewToken)]
struct NewToken {
    #[serde(flatten)]
    info: TokenInfo,
    /// The secret: send it as `Authorization: Bearer …`. It is not shown again.
    token: String,
}

/// Creates a token for the own account. Requires a session: a token cannot create tokens.
#[utoipa::path(post, path = "/tokens", tag = "accounts", request_body = TokenBody,
    responses((status = 201, body = NewToken), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add_token(
    State(app): State<AppState>,
    caller: Caller,
    Body(request): Body<TokenBody>,
) -> Result<Response, Problem> {
    caller.require_in_person()?;
    require_account(&app, &caller)?;
    if !(1..=100).contains(&request.name.chars().count()) {
        return Err(Problem::invalid("name", "a token has a name of at most 100 characters"));
    }
    let expires_at =
        request.expires_at.as_deref().map(|text| parse_timestamp("expiresAt", text)).transpose()?;
    let now = app.clock.now();
    let (name, details) = (request.name, json!({ "role": request.role, "expiresAt": expires_at }));
    let added =
        app.accounts.add_token(&caller.username, name.clone(), request.role, now, expires_at);
    let outcome = added.as_ref().map(|(token, _)| json!({ "id": token.id }));
    caller.audit(&app, "token.add", &name, details, outcome);
    let (token, secret) = added?;
    let new_token = NewToken { info: token.into(), token: secret };
    Ok((StatusCode::CREATED, Json(new_token)).into_response())
}

/// Removes one of the own tokens. Requires a session: a token cannot remove tokens.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "accounts", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_token(
    State(app): State<AppState>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require_in_person()?;
    remove_token(&app, &caller, &caller.username, &id)
}

/// Removes a token of any account. Requires an admin of `*`, and a session: a token cannot remove tokens.
#[utoipa::path(delete, path = "/accounts/{username}/tokens/{id}", tag = "accounts", params(("username" = String, Path), ("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn revoke_token(
    State(app): State<AppState>,
    caller: Caller,
    Path((username, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    caller.require_everywhere(Role::Admin)?;
    caller.require_in_person()?;
    remove_token(&app, &caller, &username, &id)
}

fn remove_token(
    app: &AppState,
    caller: &Caller,
    username: &str,
    id: &str,
) -> Result<StatusCode, Problem> {
    let removed = app.accounts.remove_token(username, id);
    let outcome = removed.as_ref().map(|name| json!({ "username": username, "name": name }));
    let target = removed.as_deref().unwrap_or(id);
    caller.audit(app, "token.remove", target, Value::Null, outcome);
    removed.map(|_| StatusCode::NO_CONTENT)
}

/// The open sessions of a user.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UserSessions)]
struct UserSessions {
    username: String,
    /// Number of open sessions.
    count: usize,
    /// Whether an OIDC provider assigned the roles: the user has no account here.
    is_elsewhere: bool,
}

/// Lists users with open sessions, by name. Requires an admin of `*`.
#[utoipa::path(get, path = "/sessions", tag = "accounts", responses((status = 200, body = [UserSessions]), (status = 403, body = Problem)))]
async fn sessions(
    State(app): State<AppState>,
    caller: Caller,
) -> Result<Json<Vec<UserSessions>>, Problem> {
    caller.require_everywhere(Role::Admin)?;
    let open = app.sessions.counts(app.clock.monotonic()).into_iter();
    let shown = open.map(|(username, (count, is_elsewhere))| UserSessions {
        username,
        count,
        is_elsewhere,
    });
    Ok(Json(shown.collect()))
}

/// Ends all sessions of a user, also of one who logged in at a provider. A user whose account remains can log in again. Requires an admin of `*`, and a
/// session: a token cannot end sessions.
#[utoipa::path(delete, path = "/sessions/{user}", tag = "accounts", params(("user" = String, Path, description = "`ann`, or `oidc:ann`")),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn end_sessions(
    State(app): State<AppState>,
    caller: Caller,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    caller.require_everywhere(Role::Admin)?;
    caller.require_in_person()?;
    let ended = match app.sessions.end_all(&user, None) {
        0 => {
            let text = format!("{user} is not logged in");
            Err(Problem::new(Code::NotFound, text)
                .with_hint("GET /api/v1/sessions lists logged-in users"))
        }
        ended => Ok(ended),
    };
    let outcome = ended.as_ref().map(|ended| json!({ "sessions": ended }));
    caller.audit(&app, "session.end", &user, Value::Null, outcome);
    ended.map(|_| StatusCode::NO_CONTENT)
}

/// A user who logged in at a provider has neither password nor tokens here.
fn require_account(app: &AppState, caller: &Caller) -> Result<(), Problem> {
    if app.accounts.roles(&caller.username).is_some() {
        return Ok(());
    }
    let text = format!("{} logged in at the provider and has no account here", caller.username);
    Err(Problem::new(Code::Forbidden, text).with_hint("an admin can create one for programs"))
}

/// Rounded up.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
