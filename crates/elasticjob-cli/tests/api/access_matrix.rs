//! Role × route: every route against every kind of caller. A route without a line in these tables fails the test.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    console::Console,
    http::{Request, request},
    routes::{Route, Verdict, assert_complete, documented, judge, undocumented},
    scene::{Scene, settle},
};

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Without login.
    Public,
    /// Every caller who is authenticated.
    Authenticated,
    /// This role in the registry of the path; for legacy paths in the selected one.
    Registry(Role),
    /// The same for a GET that changes something: never by cookie.
    RegistryNotByCookie(Role),
    /// An admin of any registry.
    AdminOfAny,
    /// An admin of `*`.
    Admin,
    /// An admin of `*` with a password or a session: an API token must not create what outlives it.
    AdminInPerson,
    /// The own account, with a password or a session.
    OwnAccount,
    /// The own account, with a browser session.
    OwnAccountInBrowser,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Viewer,
    Operator,
    Admin,
}

use Access::{
    Admin, AdminInPerson, AdminOfAny, Authenticated, OwnAccount, OwnAccountInBrowser, Public,
    Registry, RegistryNotByCookie,
};
const VIEWER: Access = Registry(Role::Viewer);
const OPERATOR: Access = Registry(Role::Operator);
const REGISTRY_ADMIN: Access = Registry(Role::Admin);

const DOCUMENTED: &[(&str, Access)] = &[
    ("POST /api/v1/login", Public),
    ("GET /api/v1/login/methods", Public),
    ("GET /api/v1/login/oidc", Public),
    ("GET /api/v1/login/oidc/callback", Public),
    ("POST /api/v1/logout", Authenticated),
    ("GET /api/v1/session", Authenticated),
    ("GET /api/v1/cron/check", Authenticated),
    ("GET /api/v1/cron/next", Authenticated),
    ("POST /api/v1/plan", Authenticated),
    ("GET /api/v1/registries", Authenticated),
    ("GET /api/v1/histories", Authenticated),
    ("GET /api/v1/tokens", Authenticated),
    ("POST /api/v1/tokens", OwnAccount),
    ("DELETE /api/v1/tokens/{id}", OwnAccount),
    ("POST /api/v1/password", OwnAccountInBrowser),
    ("GET /api/v1/accounts", Admin),
    ("PUT /api/v1/accounts/{username}", AdminInPerson),
    ("DELETE /api/v1/accounts/{username}", AdminInPerson),
    ("DELETE /api/v1/accounts/{username}/tokens/{id}", AdminInPerson),
    ("GET /api/v1/sessions", Admin),
    ("DELETE /api/v1/sessions/{user}", AdminInPerson),
    ("GET /api/v1/audit", AdminOfAny),
    ("POST /api/v1/registries", Admin),
    ("POST /api/v1/registries/test", Admin),
    ("DELETE /api/v1/registries/{name}", Admin),
    ("POST /api/v1/histories", Admin),
    ("POST /api/v1/histories/test", Admin),
    ("DELETE /api/v1/histories/{registry}", Admin),
    ("GET /api/v1/r/{registry}/overview", VIEWER),
    ("GET /api/v1/r/{registry}/forecast", VIEWER),
    ("GET /api/v1/r/{registry}/events", VIEWER),
    ("GET /api/v1/r/{registry}/doctor", OPERATOR),
    ("POST /api/v1/r/{registry}/bulk", OPERATOR),
    ("GET /api/v1/r/{registry}/jobs", VIEWER),
    ("GET /api/v1/r/{registry}/jobs/{job}", VIEWER),
    ("DELETE /api/v1/r/{registry}/jobs/{job}", REGISTRY_ADMIN),
    ("GET /api/v1/r/{registry}/jobs/{job}/config", VIEWER),
    ("PUT /api/v1/r/{registry}/jobs/{job}/config", REGISTRY_ADMIN),
    ("PATCH /api/v1/r/{registry}/jobs/{job}/config", REGISTRY_ADMIN),
    ("POST /api/v1/r/{registry}/jobs/{job}/config/plan", REGISTRY_ADMIN),
    ("GET /api/v1/r/{registry}/jobs/{job}/shards", VIEWER),
    ("POST /api/v1/r/{registry}/jobs/{job}/shards/{item}/enable", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/shards/{item}/disable", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/enable", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/disable", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/shutdown", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/trigger", OPERATOR),
    ("POST /api/v1/r/{registry}/jobs/{job}/cancel", OPERATOR),
    ("GET /api/v1/r/{registry}/jobs/{job}/triggers", VIEWER),
    ("GET /api/v1/r/{registry}/jobs/{job}/triggers/{run}", VIEWER),
    ("POST /api/v1/r/{registry}/jobs/{job}/triggers/{run}/withdraw", OPERATOR),
    ("GET /api/v1/r/{registry}/jobs/{job}/explain", VIEWER),
    ("GET /api/v1/r/{registry}/jobs/{job}/fires", VIEWER),
    ("GET /api/v1/r/{registry}/jobs/{job}/dump", REGISTRY_ADMIN),
    ("GET /api/v1/r/{registry}/jobs/{job}/figures", VIEWER),
    ("GET /api/v1/r/{registry}/jobs/{job}/matrix", VIEWER),
    ("GET /api/v1/r/{registry}/servers", VIEWER),
    ("GET /api/v1/r/{registry}/servers/{server}", VIEWER),
    ("DELETE /api/v1/r/{registry}/servers/{server}", REGISTRY_ADMIN),
    ("POST /api/v1/r/{registry}/servers/{server}/enable", OPERATOR),
    ("POST /api/v1/r/{registry}/servers/{server}/disable", OPERATOR),
    ("POST /api/v1/r/{registry}/servers/{server}/shutdown", OPERATOR),
    ("GET /api/v1/r/{registry}/instances", VIEWER),
    ("POST /api/v1/r/{registry}/instances/{instance}/shutdown", OPERATOR),
    ("GET /api/v1/r/{registry}/runs", VIEWER),
    ("GET /api/v1/r/{registry}/runs/{run}", VIEWER),
    ("GET /api/v1/r/{registry}/runs/{run}/output", VIEWER),
    ("GET /api/v1/r/{registry}/runs/{run}/output/events", VIEWER),
    ("GET /api/v1/r/{registry}/figures", VIEWER),
    ("GET /api/v1/r/{registry}/buckets", VIEWER),
    ("GET /api/v1/r/{registry}/failures", VIEWER),
    ("GET /api/v1/r/{registry}/missed", VIEWER),
    ("GET /api/v1/r/{registry}/executions", VIEWER),
    ("GET /api/v1/r/{registry}/executions.csv", VIEWER),
    ("GET /api/v1/r/{registry}/executions.json", VIEWER),
    ("GET /api/v1/r/{registry}/traces", VIEWER),
    ("GET /api/v1/r/{registry}/traces.csv", VIEWER),
    ("GET /api/v1/r/{registry}/traces.json", VIEWER),
];

const UNDOCUMENTED: &[(&str, Access)] = &[
    ("GET /healthz", Public),
    ("GET /readyz", Public),
    ("GET /api/v1/openapi.json", Public),
    ("GET /api/v1/docs", Public),
    ("GET /api/v1/docs/docs.css", Public),
    ("GET /api/v1/docs/docs.js", Public),
    ("POST /api/login", Public),
    ("GET /api/registry-center/load", Authenticated),
    ("GET /api/registry-center/activated", Authenticated),
    ("POST /api/registry-center/connect", VIEWER),
    ("POST /api/registry-center/add", Admin),
    ("DELETE /api/registry-center", Admin),
    ("GET /api/jobs", VIEWER),
    ("GET /api/jobs/count", VIEWER),
    ("GET /api/jobs/getAllJobsBriefInfo", VIEWER),
    ("PUT /api/jobs/config", REGISTRY_ADMIN),
    ("GET /api/jobs/config/{job}", VIEWER),
    ("DELETE /api/jobs/config/{job}", REGISTRY_ADMIN),
    ("POST /api/jobs/{job}/trigger", OPERATOR),
    ("GET /api/jobs/{job}/trigger", RegistryNotByCookie(Role::Operator)),
    ("POST /api/jobs/{job}/disable", OPERATOR),
    ("DELETE /api/jobs/{job}/disable", OPERATOR),
    ("POST /api/jobs/{job}/enable", OPERATOR),
    ("POST /api/jobs/{job}/shutdown", OPERATOR),
    ("GET /api/jobs/{job}/sharding", VIEWER),
    ("POST /api/jobs/{job}/sharding/{item}/disable", OPERATOR),
    ("DELETE /api/jobs/{job}/sharding/{item}/disable", OPERATOR),
    ("POST /api/jobs/{job}/sharding/{item}/enable", OPERATOR),
    ("GET /api/servers", VIEWER),
    ("GET /api/servers/count", VIEWER),
    ("GET /api/servers/getAllServersBriefInfo", VIEWER),
    ("DELETE /api/servers/{server}", REGISTRY_ADMIN),
    ("POST /api/servers/{server}/disable", OPERATOR),
    ("DELETE /api/servers/{server}/disable", OPERATOR),
    ("POST /api/servers/{server}/enable", OPERATOR),
    ("POST /api/servers/{server}/shutdown", OPERATOR),
    ("GET /api/servers/{server}/jobs", VIEWER),
    ("DELETE /api/servers/{server}/jobs/{job}", REGISTRY_ADMIN),
    ("POST /api/servers/{server}/jobs/{job}/disable", OPERATOR),
    ("DELETE /api/servers/{server}/jobs/{job}/disable", OPERATOR),
    ("POST /api/servers/{server}/jobs/{job}/enable", OPERATOR),
    ("POST /api/servers/{server}/jobs/{job}/shutdown", OPERATOR),
    ("POST /api/servers/{server}/{port}/jobs/{job}/dump", REGISTRY_ADMIN),
    ("POST /api/event-trace/execution", VIEWER),
    ("GET /api/event-trace/execution/jobNames/{prefix}", VIEWER),
    ("GET /api/event-trace/execution/ip/{prefix}", VIEWER),
    ("POST /api/event-trace/status", VIEWER),
    ("GET /api/event-trace/status/jobNames/{prefix}", VIEWER),
    ("GET /api/data-source/drivers", Authenticated),
    ("GET /api/data-source/load", Authenticated),
    ("GET /api/data-source/activated", Authenticated),
    ("POST /api/data-source/add", Admin),
    ("POST /api/data-source/connectTest", Admin),
    ("POST /api/data-source/connect", VIEWER),
    ("DELETE /api/data-source", Admin),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    None,
    Session,
    Token,
    Basic,
    AccessToken,
}

/// A caller with the headers of its credentials. Its roles are those that the credentials carry.
#[derive(Debug)]
struct TestCaller {
    name: String,
    credentials: Credentials,
    roles: BTreeMap<&'static str, Role>,
    headers: Vec<(&'static str, String)>,
}

impl TestCaller {
    fn role(&self, registry: &str) -> Option<Role> {
        self.roles.get(registry).copied().max(self.roles.get("*").copied())
    }

    fn apply(&self, request: Request) -> Request {
        self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
    }

    fn expected(&self, route: &Route, access: Access) -> Verdict {
        if access == Public {
            return Verdict::Allowed;
        }
        if self.credentials == Credentials::None {
            return Verdict::NotAuthenticated;
        }
        let is_token = self.credentials == Credentials::Token;
        let is_browser = self.credentials == Credentials::Session;
        let is_admin = self.roles.get("*") == Some(&Role::Admin);
        let is_allowed = match access {
            Public | Authenticated => true,
            RegistryNotByCookie(_) if is_browser => return Verdict::Csrf,
            Registry(needed) | RegistryNotByCookie(needed) => {
                // Legacy paths name no registry: the caller's first visible one is meant, unless the body names one.
                let names_registry =
                    route.path.contains("{registry}") || route.path.ends_with("/connect");
                let role = self.role("shop");
                match if names_registry { role } else { role.or(self.role("other")) } {
                    None => return Verdict::Invisible,
                    Some(role) => role >= needed,
                }
            }
            AdminOfAny => self.roles.values().any(|role| *role == Role::Admin),
            Admin => is_admin,
            AdminInPerson => is_admin && !is_token,
            OwnAccount => !is_token,
            OwnAccountInBrowser => is_browser,
        };
        if is_allowed { Verdict::Allowed } else { Verdict::Forbidden }
    }
}

const ROLES: [(&str, Role); 3] =
    [("viewer", Role::Viewer), ("operator", Role::Operator), ("admin", Role::Admin)];

/// No credentials, or credentials that were never valid or have expired.
fn strangers(console: &Console) -> Vec<TestCaller> {
    let body = json!({ "name": "old", "role": "admin", "expiresAt": "2020-01-01T00:00:00Z" });
    let expired = console.admin().send(request("POST", "/api/v1/tokens").json(&body)).json();
    let expired = expired["token"].as_str().unwrap().to_owned();
    let stranger = |name: &str, headers: Vec<(&'static str, String)>| TestCaller {
        name: name.to_owned(),
        credentials: Credentials::None,
        roles: BTreeMap::new(),
        headers,
    };
    vec![
        stranger("no credentials", Vec::new()),
        stranger("expired token", vec![("authorization", format!("Bearer {expired}"))]),
        stranger("unknown token", vec![("authorization", "Bearer ejt_guess".to_owned())]),
        stranger("unknown scheme", vec![("authorization", "Digest admin".to_owned())]),
        stranger("unknown cookie", vec![("cookie", "elasticjob_session=guess".to_owned())]),
    ]
}

/// A user with these roles, by session, and by tokens of each role.
fn users(console: &Console, name: &str, roles: &[(&'static str, Role)]) -> Vec<TestCaller> {
    let word = |role: Role| ROLES.iter().find(|(_, known)| *known == role).unwrap().0;
    let stored: Value =
        roles.iter().map(|(registry, role)| ((*registry).to_owned(), json!(word(*role)))).collect();
    let session = console.add_user(name, &stored);
    let roles: BTreeMap<_, _> = roles.iter().copied().collect();
    let mut callers = vec![TestCaller {
        name: format!("{name} by session"),
        credentials: Credentials::Session,
        roles: roles.clone(),
        headers: vec![("cookie", session.cookie.clone()), ("x-csrf-token", session.csrf.clone())],
    }];
    for (limit_name, limit) in ROLES {
        let body = json!({ "name": limit_name, "role": limit_name });
        let token = session.send(request("POST", "/api/v1/tokens").json(&body)).json();
        let token = token["token"].as_str().unwrap();
        callers.push(TestCaller {
            name: format!("{name} by token of {limit_name}"),
            credentials: Credentials::Token,
            roles: roles.iter().map(|(name, role)| (*name, limit.min(*role))).collect(),
            headers: vec![("authorization", format!("Bearer {token}"))],
        });
    }
    callers
}

/// A user by password in every request, and by the access token of 3.x.
fn password_users(console: &Console, name: &str, role: &'static str) -> Vec<TestCaller> {
    console.add_user(name, &json!({ "*": role }));
    let roles = || BTreeMap::from([("*", ROLES.iter().find(|known| known.0 == role).unwrap().1)]);
    let login = json!({ "username": name, "password": "correct horse" });
    let login = console.send(&request("POST", "/api/login").json(&login)).json();
    let token = login["model"]["accessToken"].as_str().unwrap().to_owned();
    let basic = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        format!("{name}:correct horse"),
    );
    vec![
        TestCaller {
            name: format!("{name} by password"),
            credentials: Credentials::Basic,
            roles: roles(),
            headers: vec![("authorization", format!("Basic {basic}"))],
        },
        TestCaller {
            name: format!("{name} by access token"),
            credentials: Credentials::AccessToken,
            roles: roles(),
            headers: vec![("access-token", token)],
        },
    ]
}

fn callers(console: &Console) -> Vec<TestCaller> {
    let mut callers = strangers(console);
    for registry in ["*", "shop", "other"] {
        for (name, role) in ROLES {
            let username = format!("{name}.{}", registry.replace('*', "all"));
            callers.extend(users(console, &username, &[(registry, role)]));
        }
    }
    let mixed = [("*", Role::Viewer), ("shop", Role::Admin)];
    callers.extend(users(console, "mixed", &mixed));
    callers.extend(password_users(console, "pat", "operator"));
    callers.extend(password_users(console, "pia", "admin"));
    callers
}

/// Whether a route is refused for a browser's cookie, which another site could make it send.
pub(crate) fn is_refused_by_cookie(route: &Route) -> bool {
    let access = DOCUMENTED.iter().chain(UNDOCUMENTED).find(|(name, _)| *name == route.name());
    matches!(access, Some((_, RegistryNotByCookie(_))))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_admits_exactly_the_callers_of_its_table_line() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let other = scene.url.replace("/shop?", "/other?");
    let console = Console::start(&[&format!("shop={}", scene.url), &format!("other={other}")]);
    for registry in ["shop", "other"] {
        console.wait_until_loaded(registry);
    }
    let (documented, undocumented) = (documented(&console), undocumented());
    assert_complete(&documented, DOCUMENTED.iter().map(|(name, _)| *name));
    assert_complete(&undocumented, UNDOCUMENTED.iter().map(|(name, _)| *name));
    let mut routes: Vec<_> = documented.into_iter().chain(undocumented).collect();
    // It ends the session that the others need.
    routes.sort_by_key(|route| route.path.ends_with("/logout"));
    let table: BTreeMap<_, _> = DOCUMENTED.iter().chain(UNDOCUMENTED).copied().collect();

    let (mut wrong, mut count) = (Vec::new(), 0);
    for caller in callers(&console) {
        for route in &routes {
            let expected = caller.expected(route, table[&*route.name()]);
            let (verdict, response) = judge(&console, &caller.apply(route.request()));
            count += 1;
            if verdict != expected {
                wrong.push(format!(
                    "{} {}: {verdict:?}, not {expected:?}: {response}",
                    route.name(),
                    caller.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 5_000, "{count}");
}
