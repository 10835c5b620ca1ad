//! Logging in and out, accounts, tokens.

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
    who::{COOKIE, Via, Who, address, check_origin},
};
use crate::{
    audit::trail::Entry,
    http::{
        extract::{Body, Path, instant},
        problem::{Code, Problem},
        state::Shared,
    },
};

pub(crate) fn router() -> OpenApiRouter<Shared> {
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

/// Who is logged in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionShown {
    username: String,
    /// Roles by registry; `*` is all of them and the console itself.
    roles: Roles,
    /// What a change by cookie carries in the header X-CSRF-Token; nothing without a cookie.
    csrf_token: Option<String>,
    /// Whether they have an account here, with a password and tokens; whoever logged in at a provider may have none.
    has_account: bool,
    /// Whether registries can be added here.
    can_add_registries: bool,
    /// Whether histories can be added here.
    can_add_histories: bool,
    /// Which version of the console this is.
    version: &'static str,
}

fn shown(
    username: String,
    roles: Roles,
    csrf_token: Option<String>,
    shared: &Shared,
) -> SessionShown {
    SessionShown {
        has_account: shared.accounts.roles(&username).is_some(),
        username,
        roles,
        csrf_token,
        can_add_registries: shared.registries.adding().is_on,
        can_add_histories: shared.books.adding().is_on,
        version: env!("CARGO_PKG_VERSION"),
    }
}

/// Logs in; the answer sets the session's cookie.
#[utoipa::path(post, path = "/login", tag = "session", security(()), request_body = Credentials,
    responses((status = 200, body = SessionShown), (status = 401, body = Problem), (status = 429, body = Problem, description = "Wait as long as Retry-After says")))]
async fn login(
    State(shared): State<Shared>,
    parts: Parts,
    Body(Credentials { username, password }): Body<Credentials>,
) -> Result<Response, Problem> {
    check_origin(&parts.headers)?;
    let address = address(&parts, &shared);
    shared.check_password(&username, &password, address.as_deref()).await?;
    shared.audit.add(Entry::of_login(shared.clock.now(), &username, "login", address));
    let (session, secret) =
        shared.sessions.begin(&username, true, None, shared.clock.monotonic())?;
    let roles = shared.accounts.roles(&username).unwrap_or_default();
    let shown = shown(username, roles, Some(session.csrf), &shared);
    Ok((cookie(&secret, &shared)?, Json(shown)).into_response())
}

/// The session's cookie; without a secret, none any more.
pub(super) fn cookie(secret: &str, shared: &Shared) -> Result<HeaderMap, Problem> {
    let secure = if shared.is_secure { "; Secure" } else { "" };
    let age = if secret.is_empty() { "; Max-Age=0" } else { "" };
    let cookie = format!("{COOKIE}={secret}; Path=/; HttpOnly; SameSite=Strict{secure}{age}");
    let cookie = HeaderValue::try_from(cookie)
        .map_err(|_| Problem::new(Code::Internal, "the cookie cannot be written"))?;
    Ok(HeaderMap::from_iter([(header::SET_COOKIE, cookie)]))
}

/// Logs out.
#[utoipa::path(post, path = "/logout", tag = "session", responses((status = 204), (status = 401, body = Problem)))]
async fn logout(State(shared): State<Shared>, who: Who) -> Result<Response, Problem> {
    if let Via::Session(secret) | Via::AccessToken(secret) = &who.via {
        shared.sessions.end(secret);
    }
    Ok((StatusCode::NO_CONTENT, cookie("", &shared)?).into_response())
}

/// Who is logged in, what they may, and the session's CSRF token.
#[utoipa::path(get, path = "/session", tag = "session", responses((status = 200, body = SessionShown), (status = 401, body = Problem)))]
async fn session(State(shared): State<Shared>, who: Who) -> Json<SessionShown> {
    let csrf = match &who.via {
        Via::Session(secret) => shared.sessions.find(secret, true, shared.clock.monotonic()),
        _ => None,
    };
    let roles = who.roles().clone();
    Json(shown(who.username, roles, csrf.map(|session| session.csrf), &shared))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PasswordChange {
    #[schema(format = Password)]
    old_password: String,
    #[schema(format = Password, min_length = 8, max_length = 1024)]
    new_password: String,
}

/// Changes one's own password; all other sessions are over.
#[utoipa::path(post, path = "/password", tag = "session", request_body = PasswordChange,
    responses((status = 204), (status = 401, body = Problem), (status = 403, body = Problem), (status = 422, body = Problem)))]
async fn change_password(
    State(shared): State<Shared>,
    who: Who,
    Body(change): Body<PasswordChange>,
) -> Result<StatusCode, Problem> {
    let Via::Session(secret) = &who.via else {
        return Err(Problem::new(
            Code::Forbidden,
            "a password is changed by whoever logged in with it; hint: log in",
        ));
    };
    has_account(&shared, &who)?;
    let right =
        shared.check_password(&who.username, &change.old_password, who.address.as_deref()).await;
    right.map_err(|problem| match problem.code {
        Code::NotAuthenticated => Problem::invalid("oldPassword", "that is not the password"),
        _ => problem,
    })?;
    let put = shared.accounts.put(&who.username, Some(change.new_password), None).await;
    let put = put.map_err(|problem| problem.of("newPassword"));
    let told = put.as_ref().map(|_| Value::Null);
    who.note(&shared, "password.change", &who.username, Value::Null, told);
    put?;
    shared.sessions.end_all(&who.username, Some(secret));
    Ok(StatusCode::NO_CONTENT)
}

/// An account.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AccountShown {
    username: String,
    roles: Roles,
    tokens: Vec<TokenShown>,
}

/// All accounts. Takes an admin of `*`.
#[utoipa::path(get, path = "/accounts", tag = "accounts", responses((status = 200, body = [AccountShown]), (status = 403, body = Problem)))]
async fn accounts(
    State(shared): State<Shared>,
    who: Who,
) -> Result<Json<Vec<AccountShown>>, Problem> {
    who.needs(Role::Admin)?;
    let accounts = shared.accounts.all().into_iter().map(|(username, account)| AccountShown {
        username,
        roles: account.roles,
        tokens: account.tokens.into_iter().map(TokenShown::from).collect(),
    });
    Ok(Json(accounts.collect()))
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AccountPut {
    /// A new account needs one.
    #[schema(format = Password, min_length = 8, max_length = 1024)]
    password: Option<String>,
    /// A new account needs some.
    roles: Option<Roles>,
}

/// Makes an account, or changes it; what is left out stays. Takes an admin of `*`.
#[utoipa::path(put, path = "/accounts/{username}", tag = "accounts", request_body = AccountPut, params(("username" = String, Path)),
    responses((status = 204), (status = 201), (status = 403, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn put_account(
    State(shared): State<Shared>,
    who: Who,
    Path(username): Path<String>,
    Body(AccountPut { password, roles }): Body<AccountPut>,
) -> Result<StatusCode, Problem> {
    who.needs(Role::Admin)?;
    let has_password = password.is_some();
    let before = shared.accounts.roles(&username);
    let put = shared.accounts.put(&username, password, roles).await;
    let told = put.as_ref().map(|is_new| {
        let after = shared.accounts.roles(&username);
        json!({ "isNew": is_new, "passwordChanged": has_password, "before": before, "roles": after })
    });
    who.note(&shared, "account.put", &username, Value::Null, told);
    let is_new = put?;
    if has_password {
        let own = match &who.via {
            Via::Session(secret) if who.username == username => Some(secret.as_str()),
            _ => None,
        };
        shared.sessions.end_all(&username, own);
    }
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// Removes an account; its sessions and tokens are over. Takes an admin of `*`.
#[utoipa::path(delete, path = "/accounts/{username}", tag = "accounts", params(("username" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn delete_account(
    State(shared): State<Shared>,
    who: Who,
    Path(username): Path<String>,
) -> Result<StatusCode, Problem> {
    who.needs(Role::Admin)?;
    let removed = shared.accounts.remove(&username);
    let told = removed.as_ref().map(|()| Value::Null);
    who.note(&shared, "account.remove", &username, Value::Null, told);
    removed?;
    shared.sessions.end_all(&username, None);
    Ok(StatusCode::NO_CONTENT)
}

/// An API token; the token itself is told once, when it is made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenShown {
    id: String,
    name: String,
    /// At most this, and never more than the account.
    role: Role,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
}

impl From<crate::auth::accounts::Token> for TokenShown {
    fn from(token: crate::auth::accounts::Token) -> Self {
        let crate::auth::accounts::Token { id, name, role, created_at, expires_at, .. } = token;
        Self { id, name, role, created_at, expires_at }
    }
}

/// One's own tokens.
#[utoipa::path(get, path = "/tokens", tag = "accounts", responses((status = 200, body = [TokenShown]), (status = 401, body = Problem)))]
async fn tokens(State(shared): State<Shared>, who: Who) -> Json<Vec<TokenShown>> {
    let account = shared.accounts.all().remove(&who.username);
    let tokens = account.map(|account| account.tokens).unwrap_or_default();
    Json(tokens.into_iter().map(TokenShown::from).collect())
}

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenAsked {
    /// What it is for.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    /// At most this.
    role: Role,
    /// Until when; without, until it is removed.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<String>,
}

/// A token that was just made.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenMade {
    #[serde(flatten)]
    shown: TokenShown,
    /// The token: send it as `Authorization: Bearer …`. It is not told again.
    token: String,
}

/// Makes a token of one's own. Takes a session: a token cannot make tokens.
#[utoipa::path(post, path = "/tokens", tag = "accounts", request_body = TokenAsked,
    responses((status = 201, body = TokenMade), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn add_token(
    State(shared): State<Shared>,
    who: Who,
    Body(asked): Body<TokenAsked>,
) -> Result<Response, Problem> {
    if matches!(who.via, Via::Token(_)) {
        return Err(Problem::new(Code::Forbidden, "a token cannot make tokens; hint: log in"));
    }
    has_account(&shared, &who)?;
    if !(1..=100).contains(&asked.name.chars().count()) {
        return Err(Problem::invalid("name", "a token has a name of at most 100 characters"));
    }
    let expires_at =
        asked.expires_at.as_deref().map(|text| instant("expiresAt", text)).transpose()?;
    let now = shared.clock.now();
    let (name, said) = (asked.name, json!({ "role": asked.role, "expiresAt": expires_at }));
    let added = shared.accounts.add_token(&who.username, name.clone(), asked.role, now, expires_at);
    let told = added.as_ref().map(|(token, _)| json!({ "id": token.id }));
    who.note(&shared, "token.add", &name, said, told);
    let (token, secret) = added?;
    let made = TokenMade { shown: token.into(), token: secret };
    Ok((StatusCode::CREATED, Json(made)).into_response())
}

/// Removes one of one's own tokens. Takes a session: a token cannot remove tokens.
#[utoipa::path(delete, path = "/tokens/{id}", tag = "accounts", params(("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn delete_token(
    State(shared): State<Shared>,
    who: Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if matches!(who.via, Via::Token(_)) {
        return Err(Problem::new(Code::Forbidden, "a token cannot remove tokens; hint: log in"));
    }
    remove_token(&shared, &who, &who.username, &id)
}

/// Removes a token of an account. Takes an admin of `*`.
#[utoipa::path(delete, path = "/accounts/{username}/tokens/{id}", tag = "accounts", params(("username" = String, Path), ("id" = String, Path)),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn revoke_token(
    State(shared): State<Shared>,
    who: Who,
    Path((username, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    who.needs(Role::Admin)?;
    remove_token(&shared, &who, &username, &id)
}

fn remove_token(
    shared: &Shared,
    who: &Who,
    username: &str,
    id: &str,
) -> Result<StatusCode, Problem> {
    let removed = shared.accounts.remove_token(username, id);
    let told = removed.as_ref().map(|name| json!({ "username": username, "name": name }));
    let target = removed.as_deref().unwrap_or(id);
    who.note(shared, "token.remove", target, Value::Null, told);
    removed.map(|_| StatusCode::NO_CONTENT)
}

/// Somebody who is logged in.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SessionsShown {
    username: String,
    /// How many sessions they have.
    count: usize,
    /// Whether a provider said what they may: they have no account here.
    is_elsewhere: bool,
}

/// Who is logged in, by name. Takes an admin of `*`.
#[utoipa::path(get, path = "/sessions", tag = "accounts", responses((status = 200, body = [SessionsShown]), (status = 403, body = Problem)))]
async fn sessions(
    State(shared): State<Shared>,
    who: Who,
) -> Result<Json<Vec<SessionsShown>>, Problem> {
    who.needs(Role::Admin)?;
    let open = shared.sessions.all(shared.clock.monotonic()).into_iter();
    let shown = open.map(|(username, (count, is_elsewhere))| SessionsShown {
        username,
        count,
        is_elsewhere,
    });
    Ok(Json(shown.collect()))
}

/// Ends all sessions of somebody, also of one who logged in at a provider; whose account stays may log in again. Takes an admin of `*`.
#[utoipa::path(delete, path = "/sessions/{user}", tag = "accounts", params(("user" = String, Path, description = "`ann`, or `oidc:ann`")),
    responses((status = 204), (status = 403, body = Problem), (status = 404, body = Problem)))]
async fn end_sessions(
    State(shared): State<Shared>,
    who: Who,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    who.needs(Role::Admin)?;
    let ended = match shared.sessions.end_all(&user, None) {
        0 => {
            let text = format!("{user} is not logged in; hint: GET /api/v1/sessions lists who is");
            Err(Problem::new(Code::NotFound, text))
        }
        ended => Ok(ended),
    };
    let told = ended.as_ref().map(|ended| json!({ "sessions": ended }));
    who.note(&shared, "session.end", &user, Value::Null, told);
    ended.map(|_| StatusCode::NO_CONTENT)
}

/// Whoever logged in at a provider has neither password nor tokens here.
fn has_account(shared: &Shared, who: &Who) -> Result<(), Problem> {
    if shared.accounts.roles(&who.username).is_some() {
        return Ok(());
    }
    let text = format!(
        "{} logged in at the provider and has no account here; hint: an admin can make one for programs",
        who.username
    );
    Err(Problem::new(Code::Forbidden, text))
}

/// How long to wait, in whole seconds.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
