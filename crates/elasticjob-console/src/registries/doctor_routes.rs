//! Examines a registry.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::doctor::{self, Finding},
    registry::RegistryUrl,
};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    auth::caller::{Authorized, Operator, OwnSite},
    http::{
        problem::{Code, Problem},
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(examine))
}

/// Examines a registry: problems and how to fix them.
///
/// Writes one node, by which Java ElasticJob measures clocks, so it requires an operator and is audited.
#[utoipa::path(get, path = "/r/{registry}/doctor", tag = "registries", params(("registry" = String, Path)),
    responses((status = 200, body = [Finding]), (status = 409, body = Problem), (status = 503, body = Problem)))]
async fn examine(access: Authorized<Operator>, _: OwnSite) -> Result<Json<Vec<Finding>>, Problem> {
    let RegistryUrl::ZooKeeper(settings) = &access.registry.url else {
        return Err(Problem::new(
            Code::Refused,
            "a memory: registry cannot be examined: it exists in one process only",
        ));
    };
    let found =
        doctor::examine(settings, access.app.registries.shard_limit()).await.map_err(Problem::from);
    let outcome = found.as_ref().map(|found| {
        let problems = found.iter().filter(|finding| finding.is_problem).count();
        json!({ "findings": found.len(), "problems": problems })
    });
    access.audit("registry.examine", &access.registry.name, Value::Null, outcome);
    Ok(Json(found?))
}
