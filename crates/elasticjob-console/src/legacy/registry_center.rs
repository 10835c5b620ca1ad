//! Registries of the legacy API. Each user has an own selection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::response::Response;
use elasticjob::registry::RegistryUrl;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::envelope::LegacyRequest;
use crate::{
    auth::{accounts::Role, caller::Caller},
    http::{
        extract::Body,
        problem::{Code, Problem},
        state::AppState,
    },
    registries::{
        connections::RegistryConnection,
        routes::{add_registry, remove_registry},
    },
};

/// The registry that each user has selected.
#[derive(Debug, Default)]
pub(crate) struct SelectedRegistries(Mutex<HashMap<String, String>>);

impl SelectedRegistries {
    fn select(&self, username: &str, registry: &str) {
        let mut selected_registries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        selected_registries.insert(username.to_owned(), registry.to_owned());
    }

    fn get(&self, username: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(username).cloned()
    }
}

/// The registry of a user who has selected none: the first visible one.
fn default_registry(caller: &Caller, app: &AppState) -> Option<Arc<RegistryConnection>> {
    let first =
        app.registries.default_entry().filter(|registry| caller.role(&registry.name).is_some());
    first.or_else(|| app.registries.visible_to(caller).into_iter().next())
}

/// A registry in the legacy format. Secrets are never sent back.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RegistryCenter {
    name: String,
    zk_address_list: String,
    namespace: String,
    digest: Option<String>,
    activated: bool,
}

impl RegistryCenter {
    fn new(registry: &RegistryConnection, activated: bool) -> Self {
        let (servers, namespace, digest) = match &registry.url {
            RegistryUrl::ZooKeeper(settings) => {
                let servers: Vec<String> =
                    settings.servers.iter().map(ToString::to_string).collect();
                let namespace = settings.namespace.to_string();
                let digest = settings.digest.as_ref().map(|digest| format!("{}:***", digest.user));
                (servers.join(","), namespace.trim_start_matches('/').to_owned(), digest)
            }
            _ => ("memory".to_owned(), "elasticjob".to_owned(), None),
        };
        Self { name: registry.name.clone(), zk_address_list: servers, namespace, digest, activated }
    }
}

/// The selected registry if it is still visible to the user, else the default one.
pub(super) fn selected_registry(caller: &Caller, app: &AppState) -> Option<String> {
    let selected = app
        .selected_registries
        .get(&caller.username)
        .filter(|name| caller.role(name).is_some() && app.registries.get(name).is_some());
    selected.or_else(|| default_registry(caller, app).map(|registry| registry.name.clone()))
}

pub(super) async fn load(request: LegacyRequest) -> Response {
    request
        .respond_globally(async |caller, app| {
            let selected = selected_registry(&caller, &app);
            let visible = app.registries.visible_to(&caller);
            let centers = visible.iter().map(|registry| {
                RegistryCenter::new(registry, selected.as_deref() == Some(&*registry.name))
            });
            Ok(centers.collect::<Vec<_>>())
        })
        .await
}

pub(super) async fn activated(request: LegacyRequest) -> Response {
    request
        .respond_globally(async |caller, app| {
            let registry =
                selected_registry(&caller, &app).and_then(|name| app.registries.get(&name));
            Ok(registry.map(|registry| RegistryCenter::new(&registry, true)))
        })
        .await
}

#[derive(Deserialize)]
pub(super) struct NameBody {
    pub(super) name: String,
}

/// Selects a registry, for this user only.
pub(super) async fn connect(
    request: LegacyRequest,
    body: Result<Body<NameBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            let Body(NameBody { name }) = body?;
            let registry = caller.authorize(&app, &name, Role::Viewer)?;
            app.registries.admin(&registry).await?;
            app.selected_registries.select(&caller.username, &name);
            Ok(true)
        })
        .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegistryCenterBody {
    name: String,
    zk_address_list: String,
    namespace: String,
    #[serde(default)]
    digest: Option<String>,
}

impl RegistryCenterBody {
    /// Converts to one of our URLs, which is then checked like every other.
    fn url(&self) -> Result<String, Problem> {
        let percent_encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let user = match self.digest.as_deref().filter(|digest| !digest.is_empty()) {
            None => String::new(),
            Some(digest) => {
                let (user, password) = digest.split_once(':').ok_or_else(|| {
                    Problem::invalid("digest", "a digest is a user, a colon and a password")
                })?;
                format!("{}:{}@", percent_encode(user), percent_encode(password))
            }
        };
        if self.zk_address_list.contains(['@', '/', '?', '#', '%']) {
            return Err(Problem::invalid("zkAddressList", "not a list of hosts")
                .with_hint("zk1:2181,zk2:2181"));
        }
        Ok(format!(
            "zookeeper://{user}{}/{}",
            self.zk_address_list,
            percent_encode(&self.namespace)
        ))
    }
}

/// Java ElasticJob answers `false` if the name is taken.
pub(super) fn is_added<T>(added: Result<T, Problem>) -> Result<bool, Problem> {
    match added {
        Err(problem) if problem.code == Code::Conflict => Ok(false),
        added => added.map(|_| true),
    }
}

pub(super) async fn add(
    request: LegacyRequest,
    body: Result<Body<RegistryCenterBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            caller.require_everywhere(Role::Admin)?;
            let Body(sent) = body?;
            is_added(add_registry(&app, &caller, &sent.name, &sent.url()?))
        })
        .await
}

pub(super) async fn remove(
    request: LegacyRequest,
    body: Result<Body<NameBody>, Problem>,
) -> Response {
    request
        .respond_globally(async |caller, app| {
            let Body(NameBody { name }) = body?;
            remove_registry(&app, &caller, &name)?;
            Ok(true)
        })
        .await
}
