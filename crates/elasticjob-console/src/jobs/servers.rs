//! Servers: lists are read from the mirror, changes go to the registry.

use std::collections::{BTreeMap, BTreeSet};

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::{ServerDetails, ServerStatus, ServerSummary},
    job::{InvalidValue, JobName, server_of},
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::actions::{self, ServerChange, ServerShutdown};
use crate::{
    auth::caller::{Administrator, Authorized, Operator, Viewer},
    http::{
        extract::{PathServer, Query},
        paging::{Order, PageRequest, loaded_mirror, paged_query},
        problem::Problem,
        state::AppState,
    },
};
use elasticjob::admin::mirror::Snapshot;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(servers))
        .routes(routes!(server, remove))
        .routes(routes!(enable))
        .routes(routes!(disable))
        .routes(routes!(shutdown))
}

paged_query! {
    struct ServersQuery {
        /// Part of the address.
        search: String = String::new(),
        /// Sort key: serverIp, instanceCount, jobCount, disabledJobsNum.
        #[param(inline)]
        sort: ServerOrder = ServerOrder::ServerIp,
        #[param(inline)]
        order: Order = Order::Asc,
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum ServerOrder {
    ServerIp,
    InstanceCount,
    JobCount,
    DisabledJobsNum,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ServersPage {
    total: usize,
    page: usize,
    page_size: usize,
    items: Vec<ServerSummary>,
    as_of: Option<Timestamp>,
    is_current: bool,
}

/// Lists servers.
#[utoipa::path(get, path = "/r/{registry}/servers", tag = "servers", params(("registry" = String, Path), ServersQuery),
    responses((status = 200, body = ServersPage), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn servers(
    access: Authorized<Viewer>,
    Query(query): Query<ServersQuery>,
) -> Result<Json<ServersPage>, Problem> {
    let requested = query.requested_page()?;
    let (mut matching, as_of, is_current) =
        loaded_mirror(&access).await?.read(|seen| (all_servers(seen), seen.as_of, seen.is_current));
    matching.retain(|server| server.address.contains(&query.search));
    // The list is ordered by address, and the sort is stable.
    query.order.sort(&mut matching, |one, other| match query.sort {
        ServerOrder::ServerIp => one.address.cmp(&other.address),
        ServerOrder::InstanceCount => one.instances.len().cmp(&other.instances.len()),
        ServerOrder::JobCount => one.jobs.len().cmp(&other.jobs.len()),
        ServerOrder::DisabledJobsNum => one.disabled.cmp(&other.disabled),
    });
    let total = matching.len();
    let PageRequest { page, page_size } = requested;
    let items = requested.rows(matching).collect();
    Ok(Json(ServersPage { total, page, page_size, items, as_of, is_current }))
}

/// All servers in the mirror.
pub(crate) fn all_servers(seen: &Snapshot) -> Vec<ServerSummary> {
    let mut servers: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>, usize)> = BTreeMap::new();
    for (job, outline) in &seen.jobs {
        for (address, status) in &outline.servers {
            let (_, jobs, disabled) = servers.entry(address).or_default();
            jobs.insert(job);
            *disabled += usize::from(*status == ServerStatus::Disabled);
        }
        for id in &outline.instances {
            let (instances, jobs, _) = servers.entry(server_of(id)).or_default();
            instances.insert(id);
            jobs.insert(job);
        }
    }
    let owned = |set: BTreeSet<&str>| set.into_iter().map(ToOwned::to_owned).collect();
    servers
        .into_iter()
        .map(|(address, (instances, jobs, disabled))| {
            ServerSummary::new(address.to_owned(), owned(instances), owned(jobs), disabled)
        })
        .collect()
}

/// Returns a server with its state in each job.
#[utoipa::path(get, path = "/r/{registry}/servers/{server}", tag = "servers", params(("registry" = String, Path), ("server" = String, Path)),
    responses((status = 200, body = ServerDetails), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn server(
    access: Authorized<Viewer>,
    PathServer(server): PathServer,
) -> Result<Json<ServerDetails>, Problem> {
    Ok(Json(access.admin().await?.server(&server).await?))
}

/// The job an action is limited to.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InJob {
    /// Only in this job; if omitted, in all.
    #[param(pattern = r"^(?!\.{1,2}$)(?!.*@-(@|$))[ -.0-~\u00a0-\ud7ff\uf900-\uffef]+$")]
    job: Option<String>,
}

impl InJob {
    pub(crate) fn name(&self) -> Result<Option<JobName>, Problem> {
        let name = self.job.as_deref().map(str::parse).transpose();
        name.map_err(|error: InvalidValue| Problem::invalid("job", &error))
    }
}

/// Enables a server, in one job or in all.
#[utoipa::path(post, path = "/r/{registry}/servers/{server}/enable", tag = "servers", params(("registry" = String, Path), ("server" = String, Path), InJob),
    responses((status = 200, body = ServerChange), (status = 404, body = Problem)))]
async fn enable(
    access: Authorized<Operator>,
    PathServer(server): PathServer,
    Query(scope): Query<InJob>,
) -> Result<Json<ServerChange>, Problem> {
    Ok(Json(actions::enable_server(&access, &server, scope.name()?.as_ref()).await?))
}

/// Disables a server, in one job or in all.
#[utoipa::path(post, path = "/r/{registry}/servers/{server}/disable", tag = "servers", params(("registry" = String, Path), ("server" = String, Path), InJob),
    responses((status = 200, body = ServerChange), (status = 404, body = Problem)))]
async fn disable(
    access: Authorized<Operator>,
    PathServer(server): PathServer,
    Query(scope): Query<InJob>,
) -> Result<Json<ServerChange>, Problem> {
    Ok(Json(actions::disable_server(&access, &server, scope.name()?.as_ref()).await?))
}

/// Removes a server without instances, from one job or from all. Requires an admin.
#[utoipa::path(delete, path = "/r/{registry}/servers/{server}", tag = "servers", params(("registry" = String, Path), ("server" = String, Path), InJob),
    responses((status = 200, body = ServerChange), (status = 404, body = Problem), (status = 409, body = Problem)))]
async fn remove(
    access: Authorized<Administrator>,
    PathServer(server): PathServer,
    Query(scope): Query<InJob>,
) -> Result<Json<ServerChange>, Problem> {
    Ok(Json(actions::remove_server(&access, &server, scope.name()?.as_ref()).await?))
}

/// Tells the instances on a server to leave, in one job or in all. Running shards finish.
#[utoipa::path(post, path = "/r/{registry}/servers/{server}/shutdown", tag = "servers", params(("registry" = String, Path), ("server" = String, Path), InJob),
    responses((status = 200, body = ServerShutdown), (status = 404, body = Problem)))]
async fn shutdown(
    access: Authorized<Operator>,
    PathServer(server): PathServer,
    Query(scope): Query<InJob>,
) -> Result<Json<ServerShutdown>, Problem> {
    Ok(Json(actions::shutdown_server(&access, &server, scope.name()?.as_ref()).await?))
}
