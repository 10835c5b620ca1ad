//! A registry, examined.

use crate::http::handler::routes;
use axum::Json;
use elasticjob::{
    admin::doctor::{self, Finding},
    registry::RegistryUrl,
};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    auth::caller::{Authorized, Operator},
    http::{
        problem::{Code, Problem},
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(examine))
}

/// What is wrong in a registry, and what to do about it. One node is written, by which the ancestor measures clocks: takes an operator, and stands in the audit.
#[utoipa::path(get, path = "/r/{registry}/doctor", tag = "registries", params(("registry" = String, Path)),
    responses((status = 200, body = [Finding]), (status = 409, body = Problem), (status = 503, body = Problem)))]
async fn examine(access: Authorized<Operator>) -> Result<Json<Vec<Finding>>, Problem> {
    let RegistryUrl::ZooKeeper(settings) = &access.registry.url else {
        return Err(Problem::new(
            Code::Refused,
            "memory: is a tree of one process, which nobody else can look at",
        ));
    };
    let found = doctor::examine(settings).await.map_err(Problem::from);
    let outcome = found.as_ref().map(|found| {
        let problems = found.iter().filter(|finding| finding.is_problem).count();
        json!({ "findings": found.len(), "problems": problems })
    });
    access.audit("registry.examine", &access.registry.name, Value::Null, outcome);
    Ok(Json(found?))
}
