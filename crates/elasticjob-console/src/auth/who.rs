//! The one who asks.

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

use super::accounts::{EVERYWHERE, Role, Roles, TOKEN};
use crate::{
    audit::trail::{Author, Entry},
    http::{
        extract::part,
        lifecycle::Trail,
        problem::{Code, Problem},
        server::Peer,
        state::Shared,
    },
    registries::connections::{Place, unknown},
};
use elasticjob::admin::mirror::Mirror;

/// The session's cookie.
pub(crate) const COOKIE: &str = "elasticjob_session";
/// What a change by cookie carries besides.
pub(crate) const CSRF: &str = "x-csrf-token";
/// What the ancestor's clients carry.
pub(crate) const ACCESS_TOKEN: &str = "access-token";

/// Somebody who is recognised.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) username: String,
    pub(crate) via: Via,
    pub(crate) address: Option<String>,
    roles: Roles,
    /// Where is noted that what they did is written down.
    trail: Trail,
}

/// How they are recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Via {
    /// A browser's session, and its secret.
    Session(String),
    /// An API token, and its name.
    Token(String),
    /// The ancestor's header: a session's secret.
    AccessToken(String),
    /// Name and password with every request.
    Basic,
}

impl Via {
    fn word(&self) -> String {
        match self {
            Self::Session(_) => "session".to_owned(),
            Self::Token(name) => format!("token {name}"),
            Self::AccessToken(_) => "accessToken".to_owned(),
            Self::Basic => "basic".to_owned(),
        }
    }

    /// Whether a browser may have added it by itself.
    pub(crate) fn is_ambient(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

impl FromRequestParts<Shared> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let who = recognise(parts, shared).await?;
        if !parts.method.is_safe() {
            check_origin(&parts.headers)?;
            check_csrf(&parts.method, &parts.headers, &who.via, shared)?;
        }
        Ok(who)
    }
}

async fn recognise(parts: &Parts, shared: &Shared) -> Result<Who, Problem> {
    let headers = &parts.headers;
    let address = address(parts, shared);
    let known = |username: String, via: Via, roles: Option<Roles>| {
        let roles = roles.or_else(|| shared.accounts.roles(&username)).ok_or_else(stranger)?;
        let trail = parts.extensions.get::<Trail>().cloned().unwrap_or_default();
        let who = Who { username, via, address: address.clone(), roles, trail };
        who.trail.met(who.author());
        Ok(who)
    };
    if let Some(secret) = text(headers, ACCESS_TOKEN) {
        let session = shared.sessions.find(secret, false, shared.clock.monotonic());
        let session = session.ok_or_else(stranger)?;
        return known(session.username, Via::AccessToken(secret.to_owned()), None);
    }
    if let Some(authorization) = text(headers, header::AUTHORIZATION.as_str()) {
        let (scheme, value) = authorization.split_once(' ').unwrap_or((authorization, ""));
        if scheme.eq_ignore_ascii_case("bearer") && value.trim().starts_with(TOKEN) {
            let token = shared.accounts.token(value.trim(), shared.clock.now());
            let (username, name, roles) = token.ok_or_else(stranger)?;
            return known(username, Via::Token(name), Some(roles));
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let decoded =
                STANDARD.decode(value.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let decoded = decoded.ok_or_else(stranger)?;
            let (username, password) = decoded.split_once(':').ok_or_else(stranger)?;
            let now = shared.clock.monotonic();
            if !shared.accounts.knew(username, password, now) {
                shared.check_password(username, password, address.as_deref()).await?;
                shared.accounts.remember(username, password, now);
            }
            return known(username.to_owned(), Via::Basic, None);
        }
        return Err(stranger());
    }
    if let Some(secret) = cookie(headers, COOKIE) {
        let session = shared.sessions.find(secret, true, shared.clock.monotonic());
        let session = session.ok_or_else(stranger)?;
        return known(session.username, Via::Session(secret.to_owned()), session.roles);
    }
    Err(stranger())
}

/// A change that a browser makes for another site is none of ours, however it is authenticated.
pub(crate) fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let refused = || Problem::new(Code::Csrf, "the request comes from another site");
    if matches!(text(headers, "sec-fetch-site"), Some("cross-site" | "same-site")) {
        return Err(refused());
    }
    if let Some(origin) = text(headers, header::ORIGIN.as_str()) {
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        let from = origin.split_once("://").map_or(origin, |(_, from)| from);
        if !from.eq_ignore_ascii_case(host) {
            return Err(refused());
        }
    }
    Ok(())
}

fn check_csrf(
    method: &Method,
    headers: &HeaderMap,
    via: &Via,
    shared: &Shared,
) -> Result<(), Problem> {
    let Via::Session(secret) = via else { return Ok(()) };
    let session = shared.sessions.find(secret, true, shared.clock.monotonic());
    let given = text(headers, CSRF).unwrap_or_default();
    if session.is_some_and(|session| session.csrf == given) {
        return Ok(());
    }
    Err(Problem::new(
        Code::Csrf,
        format!("a {method} by cookie needs the session's CSRF token; hint: header X-CSRF-Token, as GET /api/v1/session tells it"),
    )
    .of(CSRF))
}

pub(crate) fn stranger() -> Problem {
    Problem::new(
        Code::NotAuthenticated,
        "nobody is logged in; hint: POST /api/v1/login, or send an API token as Authorization: Bearer",
    )
}

pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What a browser sends under this name.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let pairs = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Where a request comes from.
pub(crate) fn address(parts: &Parts, shared: &Shared) -> Option<String> {
    let ConnectInfo(Peer(peer)) = parts.extensions.get::<ConnectInfo<Peer>>()?;
    Some(shared.proxies.origin(peer.ip(), &parts.headers).to_string())
}

impl Who {
    /// What they may in a registry; nothing if they may not even look.
    pub(crate) fn role(&self, registry: &str) -> Option<Role> {
        let here = self.roles.get(registry).copied();
        here.max(self.roles.get(EVERYWHERE).copied())
    }

    pub(crate) fn roles(&self) -> &Roles {
        &self.roles
    }

    /// What they may everywhere.
    pub(crate) fn needs(&self, role: Role) -> Result<(), Problem> {
        match self.roles.get(EVERYWHERE) {
            Some(given) if *given >= role => Ok(()),
            _ => Err(forbidden(role, "the console")),
        }
    }

    /// The place, if they may this there.
    pub(crate) fn at(
        &self,
        shared: &Shared,
        registry: &str,
        role: Role,
    ) -> Result<Arc<Place>, Problem> {
        let place = shared.registries.get(registry);
        // Whoever may not look there is not told whether it is there.
        let (Some(place), Some(given)) = (place, self.role(registry)) else {
            return Err(unknown(registry));
        };
        if given < role {
            return Err(forbidden(role, &format!("registry {registry}")));
        }
        Ok(place)
    }

    fn author(&self) -> Author {
        let (username, via) = (self.username.clone(), self.via.word());
        Author { username, via, address: self.address.clone() }
    }

    /// Writes down what became of something they wanted to be done to the console itself.
    pub(crate) fn note(
        &self,
        shared: &Shared,
        action: &str,
        target: &str,
        asked: Value,
        result: Result<Value, &Problem>,
    ) {
        self.write_down(shared, None, (action, target), asked, result);
    }

    fn write_down(
        &self,
        shared: &Shared,
        registry: Option<&str>,
        (action, target): (&str, &str),
        asked: Value,
        result: Result<Value, &Problem>,
    ) {
        let mut entry = Entry::by(self.author(), shared.clock.now(), action);
        entry.registry = registry.map(ToOwned::to_owned);
        entry.target = Some(target.to_owned());
        entry.asked = asked;
        match result {
            Ok(result) => entry.result = result,
            Err(problem) => entry.problem = Some(problem.detail.clone()),
        }
        shared.audit.add(entry);
        self.trail.written();
    }
}

fn forbidden(role: Role, place: &str) -> Problem {
    let word = serde_json::to_value(role).unwrap_or_default();
    let word = word.as_str().unwrap_or_default().to_owned();
    Problem::new(
        Code::Forbidden,
        format!("that takes the role {word} in {place}; hint: an admin can give it"),
    )
}

/// What a door takes.
pub(crate) trait Right: Send + Sync + 'static {
    const ROLE: Role;
}

/// Looking.
pub(crate) enum Looks {}
/// Steering.
pub(crate) enum Steers {}
/// Changing.
pub(crate) enum Rules {}

impl Right for Looks {
    const ROLE: Role = Role::Viewer;
}
impl Right for Steers {
    const ROLE: Role = Role::Operator;
}
impl Right for Rules {
    const ROLE: Role = Role::Admin;
}

/// The registry a path names, open for somebody who may.
pub(crate) struct Door<R> {
    pub(crate) who: Who,
    pub(crate) shared: Shared,
    pub(crate) place: Arc<Place>,
    right: PhantomData<R>,
}

impl<R: Right> FromRequestParts<Shared> for Door<R> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Problem> {
        let who = Who::from_request_parts(parts, shared).await?;
        let registry = part(parts, shared, "registry").await?;
        let place = who.at(shared, &registry, R::ROLE)?;
        Ok(Self { who, shared: shared.clone(), place, right: PhantomData })
    }
}

impl<R> Door<R> {
    /// The same of a registry that is named otherwise than in the path. Whoever calls this has asked for the role.
    pub(crate) fn to(who: Who, shared: Shared, place: Arc<Place>) -> Self {
        Self { who, shared, place, right: PhantomData }
    }

    /// The library's door.
    pub(crate) async fn admin(&self) -> Result<Admin, Problem> {
        self.shared.registries.door(&self.place).await
    }

    /// The registry's history.
    pub(crate) async fn history(&self) -> Result<Store, Problem> {
        self.shared.books.of(&self.place.name).await
    }

    /// Writes down what became of something that is about this registry.
    pub(crate) fn note(
        &self,
        action: &str,
        target: &str,
        asked: Value,
        result: Result<Value, &Problem>,
    ) {
        let registry = Some(self.place.name.as_str());
        self.who.write_down(&self.shared, registry, (action, target), asked, result);
    }

    /// Makes a change, writes down that it was made or not, and has the mirror look at what it was about.
    pub(crate) async fn change<T: Serialize>(
        &self,
        action: &str,
        about: About<'_>,
        asked: Value,
        work: impl AsyncFnOnce(&Admin) -> Result<T, AdminError>,
    ) -> Result<T, Problem> {
        let admin = self.admin().await;
        let result = match &admin {
            Ok(admin) => work(admin).await.map_err(Problem::from),
            Err(problem) => Err(problem.clone()),
        };
        let told = result.as_ref().map(|done| serde_json::to_value(done).unwrap_or_default());
        self.note(action, &about.to_string(), asked, told);
        if let Ok(admin) = admin {
            let mirror = &self.place.mirror;
            let looks = about.jobs(mirror).into_iter().map(|job| {
                let admin = &admin;
                // The watch comes round to it anyway; this is only sooner.
                async move { drop(mirror.look(admin, &job).await) }
            });
            join_all(looks).await;
        }
        result
    }
}

/// How many jobs are looked at at once after a change that is about many; the watch comes round to the others.
const MOST_LOOKED_AT: usize = 128;

/// What a change is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    Job(&'a JobName),
    Shard(&'a JobName, u32),
    /// A server in one job, or in all.
    Server(&'a str, Option<&'a JobName>),
    /// An instance in one job, or in all.
    Instance(&'a str, Option<&'a JobName>),
}

impl About<'_> {
    /// The jobs that look otherwise afterwards.
    fn jobs(&self, mirror: &Mirror) -> Vec<String> {
        let having = |is_there: &dyn Fn(&Outline) -> bool| {
            mirror.seen(|seen| {
                let jobs = seen.jobs.iter().filter(|(_, outline)| is_there(outline));
                jobs.map(|(job, _)| job.clone()).take(MOST_LOOKED_AT).collect()
            })
        };
        match self {
            Self::Job(job)
            | Self::Shard(job, _)
            | Self::Server(_, Some(job))
            | Self::Instance(_, Some(job)) => vec![job.to_string()],
            Self::Server(address, None) => {
                having(&|outline: &Outline| outline.servers.contains_key(*address))
            }
            Self::Instance(id, None) => {
                having(&|outline: &Outline| outline.instances.contains(*id))
            }
        }
    }
}

impl fmt::Display for About<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(job) => write!(f, "{job}"),
            Self::Shard(job, item) => write!(f, "{job}#{item}"),
            Self::Server(name, _) | Self::Instance(name, _) => f.write_str(name),
        }
    }
}

/// How somebody came in, as the audit stores it, frozen: `tests/golden/README.md` says why.
#[cfg(test)]
mod golden {
    use std::iter::successors;

    use testbed::golden;

    use super::*;

    #[test]
    fn ways_in_are_stored_in_the_same_words() {
        let ways = successors(Some(Via::Session("secret".to_owned())), |via| match via {
            Via::Session(_) => Some(Via::Token("ci".to_owned())),
            Via::Token(_) => Some(Via::AccessToken("secret".to_owned())),
            Via::AccessToken(_) => Some(Via::Basic),
            Via::Basic => None,
        });

        golden!("audit-via.txt", ways.map(|via| via.word() + "\n").collect::<String>());
    }
}
