//! The authenticated caller of a request, and the registry it is authorized for.

use std::{fmt, marker::PhantomData, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use elasticjob::{
    admin::{Admin, AdminError, Outline},
    history::Store,
    job::JobName,
};
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::Value;

use super::{
    accounts::{ALL_REGISTRIES, Accounts, Role, Roles, StoredCredential, TOKEN_PREFIX},
    proxies::RequestSource,
};
use crate::{
    audit::trail::{Author, Entry},
    http::{
        extract::path_param,
        lifecycle::RequestAudit,
        problem::{Code, Problem},
        server::Peer,
        state::AppState,
    },
    registries::connections::{RegistryConnection, no_such_registry},
};
use elasticjob::admin::mirror::Mirror;

/// Name of the session cookie of a console that is reached by plain HTTP.
pub(crate) const COOKIE: &str = "elasticjob_session";
/// Prefix of cookies of a console that is reached by HTTPS. A browser accepts such a cookie only from this very host and by HTTPS, so that no
/// other host of the same domain can plant one.
const HOST_PREFIX: &str = "__Host-";
/// Header with the CSRF token that a change by cookie must carry.
pub(crate) const CSRF: &str = "x-csrf-token";
/// Header with the session secret of legacy clients.
pub(crate) const ACCESS_TOKEN: &str = "access-token";

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) username: String,
    pub(crate) via: AuthMethod,
    pub(crate) source: Option<RequestSource>,
    /// The token or password; `None` for a session.
    pub(crate) credential: Option<StoredCredential>,
    roles: Roles,
    /// Records that an audit entry was written for this request.
    request_audit: RequestAudit,
}

/// How a caller authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuthMethod {
    /// A browser session; contains its secret.
    Session(String),
    /// An API token; contains its name.
    Token(String),
    /// The legacy `Access-Token` header; contains the session's secret.
    AccessToken(String),
    /// HTTP basic authentication.
    Basic,
}

impl AuthMethod {
    fn audit_name(&self) -> String {
        match self {
            Self::Session(_) => "session".to_owned(),
            Self::Token(name) => format!("token {name}"),
            Self::AccessToken(_) => "accessToken".to_owned(),
            Self::Basic => "basic".to_owned(),
        }
    }

    /// Whether a browser attaches the credentials by itself, also to requests of other sites.
    pub(crate) fn is_ambient(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let caller = authenticate(parts, app).await?;
        if !parts.method.is_safe() {
            check_origin(&parts.headers)?;
            check_csrf(&parts.method, &parts.headers, &caller.via, app)?;
        }
        Ok(caller)
    }
}

async fn authenticate(parts: &Parts, app: &AppState) -> Result<Caller, Problem> {
    let headers = &parts.headers;
    let source = request_source(parts, app);
    let caller = |username: String, via: AuthMethod, roles: Option<Roles>| {
        let roles =
            roles.or_else(|| app.accounts.roles(&username)).ok_or_else(not_authenticated)?;
        let request_audit = parts.extensions.get::<RequestAudit>().cloned().unwrap_or_default();
        let caller = Caller { username, via, source, credential: None, roles, request_audit };
        caller.request_audit.set_author(caller.author());
        Ok(caller)
    };
    let now = app.clock.monotonic();
    match Credentials::of(headers, app).ok_or_else(not_authenticated)? {
        Credentials::AccessToken(secret) => {
            let session = app.sessions.find(secret, false, now).ok_or_else(not_authenticated)?;
            caller(session.username, AuthMethod::AccessToken(secret.to_owned()), None)
        }
        Credentials::Token(secret) => {
            let token = app.accounts.find_token(secret, app.clock.now());
            let (username, name, roles) = token.ok_or_else(not_authenticated)?;
            let credential = Some(Accounts::token_credential(secret));
            let caller = caller(username, AuthMethod::Token(name), Some(roles))?;
            Ok(Caller { credential, ..caller })
        }
        Credentials::Password { username, password } => {
            let cached = app.accounts.cached_password(&username, &password, now);
            let credential = if let Some(credential) = cached {
                credential
            } else {
                let credential = app.check_password(&username, &password, source).await?;
                app.accounts.cache_password(&username, &password, &credential, now);
                credential
            };
            let caller = caller(username, AuthMethod::Basic, None)?;
            Ok(Caller { credential: Some(credential), ..caller })
        }
        Credentials::Cookie(secret) => {
            let session = app.sessions.find(secret, true, now).ok_or_else(not_authenticated)?;
            caller(session.username, AuthMethod::Session(secret.to_owned()), session.roles)
        }
    }
}

/// The credentials of a request, as they are sent. If there are several, the first of these counts.
enum Credentials<'h> {
    AccessToken(&'h str),
    Token(&'h str),
    Password { username: String, password: String },
    Cookie(&'h str),
}

impl<'h> Credentials<'h> {
    fn of(headers: &'h HeaderMap, app: &AppState) -> Option<Self> {
        if let Some(secret) = header_text(headers, ACCESS_TOKEN) {
            return Some(Self::AccessToken(secret));
        }
        let Some(authorization) = header_text(headers, header::AUTHORIZATION.as_str()) else {
            return cookie(headers, &cookie_name(COOKIE, app)).map(Self::Cookie);
        };
        let (scheme, value) = authorization.split_once(' ').unwrap_or((authorization, ""));
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") && value.starts_with(TOKEN_PREFIX) {
            return Some(Self::Token(value));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded =
            STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
        let (username, password) = decoded.split_once(':')?;
        Some(Self::Password { username: username.to_owned(), password: password.to_owned() })
    }
}

/// Whether the credentials in the head of a request are valid, as far as that is known without hashing a password.
pub(crate) fn has_known_credentials(parts: &Parts, app: &AppState) -> bool {
    let now = app.clock.monotonic();
    let is_session = |secret: &str, is_cookie: bool| {
        app.sessions.peek(secret, now).is_some_and(|session| session.is_cookie == is_cookie)
    };
    match Credentials::of(&parts.headers, app) {
        None => false,
        Some(Credentials::AccessToken(secret)) => is_session(secret, false),
        Some(Credentials::Cookie(secret)) => is_session(secret, true),
        Some(Credentials::Token(secret)) => {
            app.accounts.find_token(secret, app.clock.now()).is_some()
        }
        Some(Credentials::Password { username, password }) => {
            app.accounts.cached_password(&username, &password, now).is_some()
        }
    }
}

/// Rejects changes that a browser sends on behalf of another site, however they are authenticated.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    if matches!(header_text(headers, "sec-fetch-site"), Some("cross-site" | "same-site")) {
        return Err(from_another_site());
    }
    match header_text(headers, header::ORIGIN.as_str()) {
        Some(origin) if !is_own(origin, headers) => Err(from_another_site()),
        _ => Ok(()),
    }
}

/// Whether an origin or URL is of the host that the request is sent to.
fn is_own(url: &str, headers: &HeaderMap) -> bool {
    let host = header_text(headers, header::HOST.as_str()).unwrap_or_default();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|from| from.eq_ignore_ascii_case(host))
}

fn from_another_site() -> Problem {
    Problem::new(Code::Csrf, "the request comes from another site")
        .with_hint("use the console's own pages, or a program that is not a browser")
}

/// For a GET that changes something: rejects one that a browser sends on behalf of another site. Browsers omit `Sec-Fetch-Site` where the
/// console is reached by plain HTTP, and `Origin` for a GET, so the referrer counts as well. A page can withhold that; so if a browser may have
/// added a stored password by itself, it has to tell that the request comes from here.
pub(crate) struct OwnSite;

impl<S: Send + Sync> FromRequestParts<S> for OwnSite {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let headers = &parts.headers;
        check_origin(headers)?;
        if header_text(headers, header::REFERER.as_str()).is_some_and(|from| !is_own(from, headers))
        {
            return Err(from_another_site());
        }
        if has_ambient_password(headers) && !is_from_own_site(headers) {
            return Err(Problem::new(
                Code::Csrf,
                "a GET that changes something may come from another site, if a browser sends it with a password",
            )
            .with_hint("POST, or send Access-Token or an API token"));
        }
        Ok(Self)
    }
}

/// Headers that browsers send, and programs such as curl do not.
const BROWSER_HEADERS: [header::HeaderName; 3] =
    [header::ACCEPT_LANGUAGE, header::UPGRADE_INSECURE_REQUESTS, header::COOKIE];

/// Whether a browser may have added a stored password by itself. Pages cannot choose the user agent of the requests that they cause.
fn has_ambient_password(headers: &HeaderMap) -> bool {
    let authorization = header_text(headers, header::AUTHORIZATION.as_str()).unwrap_or_default();
    let scheme = authorization.split(' ').next().unwrap_or_default();
    let agent = header_text(headers, header::USER_AGENT.as_str()).unwrap_or_default();
    let is_browser =
        agent.contains("Mozilla/") || BROWSER_HEADERS.iter().any(|name| headers.contains_key(name));
    scheme.eq_ignore_ascii_case("basic") && !headers.contains_key(ACCESS_TOKEN) && is_browser
}

/// Whether a browser tells that a request comes from the console's own pages. `none` does not: the user may have followed a link in a mail.
fn is_from_own_site(headers: &HeaderMap) -> bool {
    let from = [header::ORIGIN, header::REFERER];
    header_text(headers, "sec-fetch-site") == Some("same-origin")
        || from.iter().any(|name| {
            header_text(headers, name.as_str()).is_some_and(|from| is_own(from, headers))
        })
}

fn check_csrf(
    method: &Method,
    headers: &HeaderMap,
    via: &AuthMethod,
    app: &AppState,
) -> Result<(), Problem> {
    let AuthMethod::Session(secret) = via else { return Ok(()) };
    let session = app.sessions.find(secret, true, app.clock.monotonic());
    let sent = header_text(headers, CSRF).unwrap_or_default();
    if session.is_some_and(|session| session.csrf == sent) {
        return Ok(());
    }
    Err(Problem::new(Code::Csrf, format!("a {method} by cookie needs the session's CSRF token"))
        .with_hint("header X-CSRF-Token with the token from GET /api/v1/session")
        .with_field(CSRF))
}

pub(crate) fn not_authenticated() -> Problem {
    Problem::new(Code::NotAuthenticated, "not logged in")
        .with_hint("POST /api/v1/login, or send an API token as Authorization: Bearer")
}

pub(crate) fn header_text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The value of a cookie.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The name of a cookie of this console.
pub(crate) fn cookie_name(name: &str, app: &AppState) -> String {
    if app.is_https { format!("{HOST_PREFIX}{name}") } else { name.to_owned() }
}

/// Where a request comes from, as reported by trusted proxies.
pub(crate) fn request_source(parts: &Parts, app: &AppState) -> Option<RequestSource> {
    let ConnectInfo(Peer(peer)) = parts.extensions.get::<ConnectInfo<Peer>>()?;
    Some(app.proxies.source(peer.ip(), &parts.headers))
}

impl Caller {
    /// The caller's role in a registry; `None` if it is not visible to them.
    pub(crate) fn role(&self, registry: &str) -> Option<Role> {
        let here = self.roles.get(registry).copied();
        here.max(self.roles.get(ALL_REGISTRIES).copied())
    }

    pub(crate) fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Requires a role on `*`.
    pub(crate) fn require_everywhere(&self, role: Role) -> Result<(), Problem> {
        match self.roles.get(ALL_REGISTRIES) {
            Some(held) if *held >= role => Ok(()),
            _ => Err(forbidden(role, "the console")),
        }
    }

    /// Requires a session or a password: accounts, tokens and sessions are not changed by API token. What a token creates would outlive it, and a
    /// token that was leaked could replace itself before it is removed.
    pub(crate) fn require_in_person(&self) -> Result<(), Problem> {
        if matches!(self.via, AuthMethod::Token(_)) {
            let text = "an API token cannot change accounts, tokens and sessions, not even remove itself: what it changed would outlive it";
            return Err(Problem::new(Code::Forbidden, text).with_hint(
                "log in, or send name and password (curl -u); an admin can remove any token: DELETE /api/v1/accounts/NAME/tokens/ID",
            ));
        }
        Ok(())
    }

    /// The connection of a registry in which the caller has at least this role.
    pub(crate) fn authorize(
        &self,
        app: &AppState,
        registry: &str,
        role: Role,
    ) -> Result<Arc<RegistryConnection>, Problem> {
        let registry_connection = app.registries.get(registry);
        // A caller without any role must not learn whether the registry exists.
        let (Some(registry_connection), Some(held)) = (registry_connection, self.role(registry))
        else {
            return Err(no_such_registry(registry));
        };
        if held < role {
            return Err(forbidden(role, &format!("registry {registry}")));
        }
        Ok(registry_connection)
    }

    fn author(&self) -> Author {
        let (username, via) = (self.username.clone(), self.via.audit_name());
        Author { username, via, address: self.source.map(|source| source.address.to_string()) }
    }

    /// Audits a change of the console itself.
    pub(crate) fn audit(
        &self,
        app: &AppState,
        action: &str,
        target: &str,
        request: Value,
        result: Result<Value, &Problem>,
    ) {
        self.audit_in(app, None, (action, target), request, result);
    }

    fn audit_in(
        &self,
        app: &AppState,
        registry: Option<&str>,
        (action, target): (&str, &str),
        request: Value,
        result: Result<Value, &Problem>,
    ) {
        let mut entry = Entry::new(self.author(), app.clock.now(), action);
        entry.registry = registry.map(ToOwned::to_owned);
        entry.target = Some(target.to_owned());
        entry.request = request;
        match result {
            Ok(result) => entry.result = result,
            Err(problem) => entry.problem = Some(problem.detail.clone()),
        }
        app.audit.add(entry);
        self.request_audit.mark_written();
    }
}

fn forbidden(role: Role, scope: &str) -> Problem {
    let role_name = serde_json::to_value(role).unwrap_or_default();
    let role_name = role_name.as_str().unwrap_or_default().to_owned();
    Problem::new(Code::Forbidden, format!("this requires the role {role_name} in {scope}"))
        .with_hint("an admin can grant it")
}

/// A role as a type, for [`Authorized`].
pub(crate) trait RequiredRole: Send + Sync + 'static {
    const ROLE: Role;
}

pub(crate) enum Viewer {}
pub(crate) enum Operator {}
pub(crate) enum Administrator {}

impl RequiredRole for Viewer {
    const ROLE: Role = Role::Viewer;
}
impl RequiredRole for Operator {
    const ROLE: Role = Role::Operator;
}
impl RequiredRole for Administrator {
    const ROLE: Role = Role::Admin;
}

/// The registry in the path, and a caller who has at least the role `R` there.
pub(crate) struct Authorized<R> {
    pub(crate) caller: Caller,
    pub(crate) app: AppState,
    pub(crate) registry: Arc<RegistryConnection>,
    role: PhantomData<R>,
}

impl<R: RequiredRole> FromRequestParts<AppState> for Authorized<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, app).await?;
        let registry = path_param(parts, app, "registry").await?;
        let registry_connection = caller.authorize(app, &registry, R::ROLE)?;
        Ok(Self { caller, app: app.clone(), registry: registry_connection, role: PhantomData })
    }
}

impl<R> Authorized<R> {
    /// For a registry that is not named in the path. The caller of this function must have checked the role.
    pub(crate) fn new(caller: Caller, app: AppState, registry: Arc<RegistryConnection>) -> Self {
        Self { caller, app, registry, role: PhantomData }
    }

    /// The admin connection of the registry.
    pub(crate) async fn admin(&self) -> Result<Admin, Problem> {
        self.app.registries.admin(&self.registry).await
    }

    /// The history store of the registry.
    pub(crate) async fn history(&self) -> Result<Store, Problem> {
        self.app.histories.store(&self.registry.name).await
    }

    /// Audits an action on this registry.
    pub(crate) fn audit(
        &self,
        action: &str,
        target: &str,
        request: Value,
        result: Result<Value, &Problem>,
    ) {
        let registry = Some(self.registry.name.as_str());
        self.caller.audit_in(&self.app, registry, (action, target), request, result);
    }

    /// Makes a change, audits it with its result, and refreshes the affected jobs in the mirror.
    pub(crate) async fn change<T: Serialize>(
        &self,
        action: &str,
        target: ChangeTarget<'_>,
        request: Value,
        work: impl AsyncFnOnce(&Admin) -> Result<T, AdminError>,
    ) -> Result<T, Problem> {
        let admin = self.admin().await;
        let result = match &admin {
            Ok(admin) => work(admin).await.map_err(Problem::from),
            Err(problem) => Err(problem.clone()),
        };
        let outcome = result.as_ref().map(|done| serde_json::to_value(done).unwrap_or_default());
        self.audit(action, &target.to_string(), request, outcome);
        if let Ok(admin) = admin {
            let mirror = &self.registry.mirror;
            let refreshes = target.jobs(mirror).into_iter().map(|job| {
                let admin = &admin;
                // The mirror's watch would see the change anyway; this is only faster.
                async move { drop(mirror.refresh(admin, &job).await) }
            });
            join_all(refreshes).await;
        }
        result
    }
}

/// Limit of refreshed jobs after a change that affects many; the mirror's watch updates the others.
const MAX_REFRESHED_JOBS: usize = 128;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ChangeTarget<'a> {
    Job(&'a JobName),
    Shard(&'a JobName, u32),
    /// A server, in one job or in all.
    Server(&'a str, Option<&'a JobName>),
    /// An instance, in one job or in all.
    Instance(&'a str, Option<&'a JobName>),
}

impl ChangeTarget<'_> {
    /// The jobs that the change affects.
    fn jobs(&self, mirror: &Mirror) -> Vec<String> {
        let jobs_where = |is_there: &dyn Fn(&Outline) -> bool| {
            mirror.read(|seen| {
                let jobs = seen.jobs.iter().filter(|(_, outline)| is_there(outline));
                jobs.map(|(job, _)| job.clone()).take(MAX_REFRESHED_JOBS).collect()
            })
        };
        match self {
            Self::Job(job)
            | Self::Shard(job, _)
            | Self::Server(_, Some(job))
            | Self::Instance(_, Some(job)) => vec![job.to_string()],
            Self::Server(address, None) => {
                jobs_where(&|outline: &Outline| outline.servers.contains_key(*address))
            }
            Self::Instance(id, None) => {
                jobs_where(&|outline: &Outline| outline.instances.contains(*id))
            }
        }
    }
}

impl fmt::Display for ChangeTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "{job}"),
            Self::Shard(job, item) => write!(f, "{job}#{item}"),
            Self::Server(name, _) | Self::Instance(name, _) => f.write_str(name),
        }
    }
}

/// How a caller authenticated, as the audit trail stores it, frozen: `tests/golden/README.md` says why.
#[cfg(test)]
mod golden {
    use std::iter::successors;

    use testbed::golden;

    use super::*;

    #[test]
    fn authentication_methods_keep_their_stored_words() {
        let methods =
            successors(Some(AuthMethod::Session("secret".to_owned())), |method| match method {
                AuthMethod::Session(_) => Some(AuthMethod::Token("ci".to_owned())),
                AuthMethod::Token(_) => Some(AuthMethod::AccessToken("secret".to_owned())),
                AuthMethod::AccessToken(_) => Some(AuthMethod::Basic),
                AuthMethod::Basic => None,
            });

        golden!(
            "audit-via.txt",
            methods.map(|method| method.audit_name() + "\n").collect::<String>()
        );
    }
}
