//! Reads, plans and stores a job's configuration.
//!
//! A change names the version it is based on (`If-Match`), or that there is none yet (`If-None-Match: *`), so no concurrent change is lost.
//! Secrets are shown as `***`, and a masked value sent back keeps the stored one. A plan compares with the stored values, so it requires the role that
//! may store them: it would tell a viewer whether a guess is right. Configuration of other programs (`jobExtraConfigurations`) is shown by
//! name and never changed.

use crate::http::handler::routes;
use axum::{
    Json,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use elasticjob::{
    admin::{Admin, ApplyResult, ConfigChange, Configuration, Edit, JobDetails, Plan, Version},
    job::{Handler, Job, JobName},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::config_body::ConfigBody;
use crate::{
    auth::caller::{Administrator, Authorized, ChangeTarget, Viewer, header_text},
    http::{
        extract::{Body, PathJob, Query},
        problem::{Code, Problem},
        state::AppState,
    },
};

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(show, put, patch)).routes(routes!(plan))
}

/// Returns the configuration; its version is in the `ETag`.
#[utoipa::path(get, path = "/r/{registry}/jobs/{job}/config", tag = "config", params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = Configuration, headers(("ETag" = String, description = "The version, for If-Match"))), (status = 404, body = Problem)))]
async fn show(access: Authorized<Viewer>, PathJob(job): PathJob) -> Result<Response, Problem> {
    let details = access.admin().await?.job(&job).await?;
    let tag = etag(details.configuration.version);
    Ok(([(header::ETAG, tag)], Json(details.configuration)).into_response())
}

pub(crate) fn etag(version: Version) -> HeaderValue {
    HeaderValue::try_from(format!("\"{}\"", version.0)).unwrap_or(HeaderValue::from_static("\"\""))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct PutQuery {
    /// Handler: `SCRIPT`, `HTTP`, or a Java class. If omitted, it stays; a new job gets a Rust handler.
    handler: Option<String>,
}

/// The stored configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StoredConfig)]
pub(crate) struct StoredConfig {
    #[serde(flatten)]
    applied: ApplyResult,
    #[serde(flatten)]
    pub(crate) planned: ConfigPlan,
}

/// What storing a configuration changes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConfigPlan)]
pub(crate) struct ConfigPlan {
    change: ChangeKind,
    differences: Vec<ConfigDifference>,
    /// The resulting configuration, secrets masked.
    #[schema(value_type = Object)]
    config: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
enum ChangeKind {
    New,
    Changed,
    Same,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Difference)]
struct ConfigDifference {
    key: String,
    stored: Option<String>,
    sent: Option<String>,
}

impl From<&Plan> for ConfigPlan {
    fn from(plan: &Plan) -> Self {
        let (change, differences) = match &plan.change {
            ConfigChange::New => (ChangeKind::New, &[][..]),
            ConfigChange::Changed(differences) => (ChangeKind::Changed, &differences[..]),
            ConfigChange::Same => (ChangeKind::Same, &[][..]),
        };
        let differences = differences.iter().map(|difference| ConfigDifference {
            key: difference.key.clone(),
            stored: difference.stored.clone(),
            sent: difference.local.clone(),
        });
        Self { change, differences: differences.collect(), config: plan.job.to_json() }
    }
}

/// Stores a complete configuration: omitted properties get their default. Requires an admin.
#[utoipa::path(put, path = "/r/{registry}/jobs/{job}/config", tag = "config", request_body = ConfigBody,
    params(("registry" = String, Path), ("job" = String, Path), PutQuery,
        ("If-Match" = Option<String>, Header, min_length = 1, description = "The ETag that was seen, or *"),
        ("If-None-Match" = Option<String>, Header, pattern = r"^\*$", description = "* for a job that is not there yet")),
    responses((status = 200, body = StoredConfig), (status = 201, body = StoredConfig), (status = 409, body = Problem), (status = 412, body = Problem),
        (status = 422, body = Problem), (status = 428, body = Problem)))]
async fn put(
    access: Authorized<Administrator>,
    PathJob(job): PathJob,
    Query(query): Query<PutQuery>,
    headers: HeaderMap,
    Body(sent): Body<ConfigBody>,
) -> Result<Response, Problem> {
    store_and_respond(
        &access,
        &job,
        sent,
        Base::Defaults,
        handler(query.handler.as_deref()),
        &Condition::from_headers(&headers)?,
    )
    .await
}

/// Changes parts of a configuration (RFC 7386): omitted properties stay, `null` unsets, also in `props`. Requires an admin.
#[utoipa::path(patch, path = "/r/{registry}/jobs/{job}/config", tag = "config", request_body = ConfigBody,
    params(("registry" = String, Path), ("job" = String, Path), ("If-Match" = String, Header, description = "The ETag that was seen, or *")),
    responses((status = 200, body = StoredConfig), (status = 404, body = Problem), (status = 412, body = Problem), (status = 422, body = Problem), (status = 428, body = Problem)))]
async fn patch(
    access: Authorized<Administrator>,
    PathJob(job): PathJob,
    headers: HeaderMap,
    Body(sent): Body<ConfigBody>,
) -> Result<Response, Problem> {
    store_and_respond(&access, &job, sent, Base::Merged, None, &Condition::from_headers(&headers)?)
        .await
}

/// Returns what storing a configuration would change. Writes nothing. Requires an admin, like storing it: the answer tells whether a secret is the stored one.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/config/plan", tag = "config", request_body = ConfigBody,
    params(("registry" = String, Path), ("job" = String, Path), PutQuery),
    responses((status = 200, body = ConfigPlan), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn plan(
    access: Authorized<Administrator>,
    PathJob(job): PathJob,
    Query(query): Query<PutQuery>,
    Body(sent): Body<ConfigBody>,
) -> Result<Json<ConfigPlan>, Problem> {
    let admin = access.admin().await?;
    let now = read_current(&admin, &job).await?;
    let plan = make_plan(
        &admin,
        &job,
        sent,
        Base::Defaults,
        handler(query.handler.as_deref()),
        now.as_ref(),
        None,
    )
    .await?;
    Ok(Json(ConfigPlan::from(&plan)))
}

/// What a sent configuration is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    Defaults,
    /// The stored configuration; sent `props` replace the stored ones.
    Stored,
    /// The stored configuration; sent `props` are merged with the stored ones (RFC 7386).
    Merged,
}

/// Precondition of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The stored version must be this one.
    Version(Version),
    /// Any stored version.
    Any,
    /// The job must not exist yet.
    Absent,
}

impl Condition {
    fn from_headers(headers: &HeaderMap) -> Result<Self, Problem> {
        match (header_text(headers, "if-match"), header_text(headers, "if-none-match")) {
            (Some("*"), None) => Ok(Self::Any),
            (Some(tag), None) => {
                let version = tag.trim().trim_matches('"').parse().map(Version);
                version.map(Self::Version).map_err(|_| {
                    Problem::new(
                        Code::PreconditionFailed,
                        format!("{tag:?} is not an ETag of a configuration"),
                    )
                    .with_hint("send the ETag of GET")
                    .with_field("If-Match")
                })
            }
            (None, Some("*")) => Ok(Self::Absent),
            (None, None) => {
                Err(Problem::new(Code::PreconditionRequired, "the precondition is missing")
                    .with_hint("If-Match with the ETag of GET, or If-None-Match: * for a new job")
                    .with_field("If-Match"))
            }
            _ => Err(Problem::invalid("If-Match", "send either If-Match, or If-None-Match: *")),
        }
    }

    /// The header of the precondition.
    fn header(self) -> &'static str {
        match self {
            Self::Version(_) | Self::Any => "If-Match",
            Self::Absent => "If-None-Match",
        }
    }

    /// Checks the precondition; returns the version that the change is based on.
    fn check(self, name: &JobName, version: Option<Version>) -> Result<Option<Version>, Problem> {
        match (self, version) {
            (Self::Absent, Some(version)) => {
                let text = format!("job {name} already exists, in version {}", version.0);
                Err(Problem::new(Code::PreconditionFailed, text)
                    .with_hint("change it with If-Match")
                    .with_field(self.header()))
            }
            (Self::Absent, None) => Ok(None),
            (Self::Any | Self::Version(_), None) => {
                let text = format!("there is no job {name}");
                Err(Problem::new(Code::NotFound, text).with_hint("create it with If-None-Match: *"))
            }
            (Self::Version(seen), Some(version)) if seen != version => {
                let text = format!(
                    "the configuration of job {name} is now in version {}, not {}",
                    version.0, seen.0
                );
                Err(Problem::new(Code::PreconditionFailed, text)
                    .with_hint("read the stored configuration, then decide again")
                    .with_field(self.header()))
            }
            (Self::Any | Self::Version(_), version) => Ok(version),
        }
    }
}

/// The stored configuration; `None` if there is no such job.
async fn read_current(admin: &Admin, job: &JobName) -> Result<Option<JobDetails>, Problem> {
    match admin.job(job).await {
        Ok(details) => Ok(Some(details)),
        Err(elasticjob::admin::AdminError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn make_plan(
    admin: &Admin,
    name: &JobName,
    sent: ConfigBody,
    base: Base,
    handler: Option<Handler>,
    now: Option<&JobDetails>,
    seen: Option<Version>,
) -> Result<Plan, Problem> {
    let stored = now.and_then(|details| details.configuration.job.as_ref());
    let fresh = || Job::named(name.as_str()).map_err(|error| Problem::invalid("job", &error));
    let start = match (base, stored) {
        (Base::Stored | Base::Merged, Some(stored)) => stored.clone(),
        _ => fresh()?,
    };
    let mut edit = Edit::new(sent.apply_to(start, base, stored)?);
    if let Some(handler) = handler {
        edit = edit.handler(handler);
    }
    if let Some(seen) = seen {
        edit = edit.seen(seen);
    }
    Ok(admin.plan(edit).await?)
}

/// Stores a configuration if the precondition holds, and builds the response.
pub(crate) async fn store_and_respond(
    access: &Authorized<Administrator>,
    name: &JobName,
    sent: ConfigBody,
    base: Base,
    handler: Option<Handler>,
    condition: &Condition,
) -> Result<Response, Problem> {
    let stored = store_config(access, name, sent, base, handler, condition).await?;
    let is_new = stored.planned.change == ChangeKind::New;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, [(header::ETAG, etag(stored.applied.version))], Json(stored)).into_response())
}

/// Like [`store_and_respond`], for callers that build their own response.
pub(crate) async fn store_config(
    access: &Authorized<Administrator>,
    name: &JobName,
    sent: ConfigBody,
    base: Base,
    handler: Option<Handler>,
    condition: &Condition,
) -> Result<StoredConfig, Problem> {
    let admin = access.admin().await?;
    let stored = try_store(access, &admin, name, sent, base, handler, condition).await;
    match stored {
        // After a concurrent change the precondition no longer holds: report that instead of a conflict.
        Err(mut problem) if problem.code == Code::Conflict => {
            let version = read_current(&admin, name).await?.map(|now| now.configuration.version);
            let is_as_seen = match condition {
                Condition::Version(seen) => version == Some(*seen),
                Condition::Absent => version.is_none(),
                Condition::Any => true,
            };
            if is_as_seen {
                return Err(problem);
            }
            problem.code = Code::PreconditionFailed;
            Err(problem.with_field(condition.header()))
        }
        stored => stored,
    }
}

async fn try_store(
    access: &Authorized<Administrator>,
    admin: &Admin,
    name: &JobName,
    sent: ConfigBody,
    base: Base,
    handler: Option<Handler>,
    condition: &Condition,
) -> Result<StoredConfig, Problem> {
    let now = read_current(admin, name).await?;
    let version = now.as_ref().map(|details| details.configuration.version);
    let seen = condition.check(name, version)?;
    let plan = make_plan(admin, name, sent, base, handler, now.as_ref(), seen).await?;
    let planned = ConfigPlan::from(&plan);
    let details = json!({ "change": planned.change, "differences": planned.differences });
    let applied = access
        .change("job.config", ChangeTarget::Job(name), details, async |admin| {
            admin.apply(&plan).await
        })
        .await?;
    Ok(StoredConfig { applied, planned })
}

fn handler(name: Option<&str>) -> Option<Handler> {
    match name? {
        "" => None,
        script if script.eq_ignore_ascii_case("script") => Some(Handler::Script),
        http if http.eq_ignore_ascii_case("http") => Some(Handler::Http),
        class => Some(Handler::Code { java_class: Some(class.to_owned()) }),
    }
}
