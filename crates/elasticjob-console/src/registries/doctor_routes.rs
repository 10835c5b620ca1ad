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
    auth::who::{Door, Steers},
    http::{
        problem::{Code, Problem},
        state::Shared,
    },
};

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(examine))
}

/// What is wrong in a registry, and what to do about it. One node is written, by which the ancestor measures clocks: takes an operator, and stands in the audit.
#[utoipa::path(get, path = "/r/{registry}/doctor", tag = "registries", params(("registry" = String, Path)),
    responses((status = 200, body = [Finding]), (status = 409, body = Problem), (status = 503, body = Problem)))]
async fn examine(door: Door<Steers>) -> Result<Json<Vec<Finding>>, Problem> {
    let RegistryUrl::ZooKeeper(settings) = &door.place.url else {
        return Err(Problem::new(
            Code::Refused,
            "memory: is a tree of one process, which nobody else can look at",
        ));
    };
    let found = doctor::examine(settings).await.map_err(Problem::from);
    let told = found.as_ref().map(|found| {
        let problems = found.iter().filter(|finding| finding.is_problem).count();
        json!({ "findings": found.len(), "problems": problems })
    });
    door.note("registry.examine", &door.place.name, Value::Null, told);
    Ok(Json(found?))
}
