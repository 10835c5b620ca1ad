//! Registries as the ancestor's clients see them. Each user has a choice of their own.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::response::Response;
use elasticjob::registry::RegistryUrl;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::envelope::Asker;
use crate::{
    auth::{accounts::Role, who::Who},
    http::{
        extract::Body,
        problem::{Code, Problem},
        state::Shared,
    },
    registries::{
        connections::Place,
        routes::{add_registry, remove_registry},
    },
};

/// Which registry each user has chosen.
#[derive(Debug, Default)]
pub(crate) struct Choices(Mutex<HashMap<String, String>>);

impl Choices {
    fn choose(&self, username: &str, registry: &str) {
        let mut choices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        choices.insert(username.to_owned(), registry.to_owned());
    }

    fn of(&self, username: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(username).cloned()
    }
}

/// The one that is meant by somebody who has not chosen.
fn first(who: &Who, shared: &Shared) -> Option<Arc<Place>> {
    let first = shared.registries.first().filter(|place| who.role(&place.name).is_some());
    first.or_else(|| {
        shared.registries.all().into_iter().find(|place| who.role(&place.name).is_some())
    })
}

/// A registry in the ancestor's words. What was a secret is never sent back.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Center {
    name: String,
    zk_address_list: String,
    namespace: String,
    digest: Option<String>,
    activated: bool,
}

impl Center {
    fn new(place: &Place, activated: bool) -> Self {
        let (servers, namespace, digest) = match &place.url {
            RegistryUrl::ZooKeeper(settings) => {
                let servers: Vec<String> =
                    settings.servers.iter().map(ToString::to_string).collect();
                let namespace = settings.namespace.to_string();
                let digest = settings.digest.as_ref().map(|digest| format!("{}:***", digest.user));
                (servers.join(","), namespace.trim_start_matches('/').to_owned(), digest)
            }
            _ => ("memory".to_owned(), "elasticjob".to_owned(), None),
        };
        Self { name: place.name.clone(), zk_address_list: servers, namespace, digest, activated }
    }
}

/// The registry somebody has chosen, if they may still look at it, else the first they may look at.
pub(super) fn chosen(who: &Who, shared: &Shared) -> Option<String> {
    let chosen = shared
        .choices
        .of(&who.username)
        .filter(|name| who.role(name).is_some() && shared.registries.get(name).is_some());
    chosen.or_else(|| first(who, shared).map(|place| place.name.clone()))
}

pub(super) async fn load(asker: Asker) -> Response {
    asker
        .about(async |who, shared| {
            let chosen = chosen(&who, &shared);
            let all = shared.registries.all();
            let seen = all.iter().filter(|place| who.role(&place.name).is_some());
            let centers =
                seen.map(|place| Center::new(place, chosen.as_deref() == Some(&*place.name)));
            Ok(centers.collect::<Vec<_>>())
        })
        .await
}

pub(super) async fn activated(asker: Asker) -> Response {
    asker
        .about(async |who, shared| {
            let place = chosen(&who, &shared).and_then(|name| shared.registries.get(&name));
            Ok(place.map(|place| Center::new(&place, true)))
        })
        .await
}

#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

/// Chooses a registry, for this user alone.
pub(super) async fn connect(asker: Asker, body: Result<Body<Named>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            let Body(Named { name }) = body?;
            let place = who.at(&shared, &name, Role::Viewer)?;
            shared.registries.door(&place).await?;
            shared.choices.choose(&who.username, &name);
            Ok(true)
        })
        .await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CenterSent {
    name: String,
    zk_address_list: String,
    namespace: String,
    #[serde(default)]
    digest: Option<String>,
}

impl CenterSent {
    /// The same as one of our URLs, which is then checked as every other.
    fn url(&self) -> Result<String, Problem> {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let user = match self.digest.as_deref().filter(|digest| !digest.is_empty()) {
            None => String::new(),
            Some(digest) => {
                let (user, password) = digest.split_once(':').ok_or_else(|| {
                    Problem::invalid("digest", "a digest is a user, a colon and a password")
                })?;
                format!("{}:{}@", escaped(user), escaped(password))
            }
        };
        if self.zk_address_list.contains(['@', '/', '?', '#', '%']) {
            return Err(Problem::invalid(
                "zkAddressList",
                "that is no list of hosts; hint: zk1:2181,zk2:2181",
            ));
        }
        Ok(format!("zookeeper://{user}{}/{}", self.zk_address_list, escaped(&self.namespace)))
    }
}

/// The ancestor says no where the name is taken.
pub(super) fn is_added<T>(added: Result<T, Problem>) -> Result<bool, Problem> {
    match added {
        Err(problem) if problem.code == Code::Conflict => Ok(false),
        added => added.map(|_| true),
    }
}

pub(super) async fn add(asker: Asker, body: Result<Body<CenterSent>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            who.needs(Role::Admin)?;
            let Body(sent) = body?;
            is_added(add_registry(&shared, &who, &sent.name, &sent.url()?))
        })
        .await
}

pub(super) async fn remove(asker: Asker, body: Result<Body<Named>, Problem>) -> Response {
    asker
        .about(async |who, shared| {
            let Body(Named { name }) = body?;
            remove_registry(&shared, &who, &name)?;
            Ok(true)
        })
        .await
}
