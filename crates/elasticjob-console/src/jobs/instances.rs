//! Instances: lists are read from the mirror, changes go to the registry.

use std::collections::BTreeMap;

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::{Instance, Language},
    job::server_of,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::{
    actions::{self, ServerShutdown},
    servers::InJob,
};
use crate::{
    auth::caller::{Authorized, Operator, Viewer},
    http::{
        extract::{PathInstance, Query},
        paging::{Order, loaded_mirror, paged_query},
        problem::Problem,
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(instances)).routes(routes!(shutdown_instance))
}

paged_query! {
    struct InstancesQuery {
        /// Part of the id.
        search: String = String::new(),
        /// Sort key: instanceId, serverIp, jobCount, since.
        #[param(inline)]
        sort: InstanceOrder = InstanceOrder::InstanceId,
        #[param(inline)]
        order: Order = Order::Asc,
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum InstanceOrder {
    InstanceId,
    ServerIp,
    JobCount,
    Since,
}

/// An instance and its jobs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InstanceRow {
    instance_id: String,
    server_ip: String,
    language: Language,
    job_names: Vec<String>,
    /// Data that the instance publishes about itself: labels, start time.
    detail: Option<Instance>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct InstancesPage {
    total: usize,
    page: usize,
    page_size: usize,
    items: Vec<InstanceRow>,
    as_of: Option<Timestamp>,
    is_current: bool,
}

/// Lists instances and the jobs they belong to. Reads the mirror only, never the registry.
#[utoipa::path(get, path = "/r/{registry}/instances", tag = "servers", params(("registry" = String, Path), InstancesQuery),
    responses((status = 200, body = InstancesPage), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn instances(
    access: Authorized<Viewer>,
    Query(query): Query<InstancesQuery>,
) -> Result<Json<InstancesPage>, Problem> {
    let requested = query.requested_page()?;
    Ok(Json(loaded_mirror(&access).await?.read(|seen| {
        let mut matching: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (job, outline) in &seen.jobs {
            for id in outline.instances.iter().filter(|id| id.contains(&query.search)) {
                matching.entry(id).or_default().push(job);
            }
        }
        let mut matching: Vec<(&str, Vec<&str>)> = matching.into_iter().collect();
        let since = |id: &str| seen.instances.get(id).and_then(|instance| instance.since);
        // The list is ordered by id, and the sort is stable.
        query.order.sort(&mut matching, |one, other| match query.sort {
            InstanceOrder::InstanceId => one.0.cmp(other.0),
            InstanceOrder::ServerIp => server_of(one.0).cmp(server_of(other.0)),
            InstanceOrder::JobCount => one.1.len().cmp(&other.1.len()),
            InstanceOrder::Since => since(one.0).cmp(&since(other.0)),
        });
        let rows = requested.rows(&matching);
        let items = rows.map(|(id, jobs)| InstanceRow {
            instance_id: (*id).to_owned(),
            server_ip: server_of(id).to_owned(),
            language: Language::of(id),
            job_names: jobs.iter().map(ToString::to_string).collect(),
            detail: seen.instances.get(*id).cloned(),
        });
        InstancesPage {
            total: matching.len(),
            page: requested.page,
            page_size: requested.page_size,
            items: items.collect(),
            as_of: seen.as_of,
            is_current: seen.is_current,
        }
    })))
}

/// Tells an instance to leave, in one job or in all. Running shards finish.
#[utoipa::path(post, path = "/r/{registry}/instances/{instance}/shutdown", tag = "servers",
    params(("registry" = String, Path), ("instance" = String, Path, description = "Instance id"), InJob),
    responses((status = 200, body = ServerShutdown), (status = 404, body = Problem)))]
async fn shutdown_instance(
    access: Authorized<Operator>,
    PathInstance(id): PathInstance,
    Query(scope): Query<InJob>,
) -> Result<Json<ServerShutdown>, Problem> {
    Ok(Json(actions::shutdown_instance(&access, &id, scope.name()?.as_ref()).await?))
}
