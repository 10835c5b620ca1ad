//! Triggers and cancels runs.
//!
//! A trigger with an `Idempotency-Key` is executed once: repeating the request, for example after a lost response, returns the same response and
//! waits if the first is still in progress. Keys are remembered for a day and forgotten when the console restarts; but the run id is derived from
//! the key, so a repeated request asks for the same run even then, and instances run it once.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::http::handler::routes;
use axum::{Json, http::HeaderMap};
use elasticjob::{
    admin::TriggerRequest,
    admin::{Admin, AdminError, CancellationResult, TriggerResponse},
    job::{JobName, RunId, ShardSelection},
    runtime::Monotonic,
};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Deserializer, Serialize};
use tokio::sync::OnceCell;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use super::actions;
use crate::{
    auth::caller::{Authorized, ChangeTarget, Operator, header_text},
    http::{
        extract::{OptionalBody, PathJob, parse_timestamp},
        problem::{Code, Problem},
        state::AppState,
    },
};

const KEY_TTL: Duration = Duration::from_hours(24);
const MAX_KEYS: usize = 10_000;
/// A parameter travels through the registry.
const MAX_PARAMETER_BYTES: usize = 64 * 1024;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(trigger)).routes(routes!(cancel))
}

/// Options of a trigger.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schema(as = TriggerRequest)]
pub(crate) struct TriggerBody {
    /// Only these shards, at least one; if omitted, all.
    #[schema(value_type = Vec<u32>, min_items = 1, required = false)]
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    shards: Option<BTreeSet<u32>>,
    /// Replaces the job's own parameter.
    parameter: Option<String>,
    /// Logical time of the run; if omitted, now.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<String>,
}

/// Triggers a run of a job.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/trigger", tag = "jobs", request_body = Option<TriggerBody>,
    params(("registry" = String, Path), ("job" = String, Path), ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "A repeated request with the same key is executed once")),
    responses((status = 200, body = TriggerResponse), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn trigger(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
    headers: HeaderMap,
    OptionalBody(body): OptionalBody<TriggerBody>,
) -> Result<Json<TriggerResponse>, Problem> {
    let request = serde_json::to_value(&body).unwrap_or_default();
    let at = body.at.as_deref().map(|at| parse_timestamp("at", at)).transpose()?;
    if body.parameter.as_ref().is_some_and(|parameter| parameter.len() > MAX_PARAMETER_BYTES) {
        return Err(Problem::invalid(
            "parameter",
            format!("a parameter has at most {MAX_PARAMETER_BYTES} bytes"),
        ));
    }
    let mut trigger = TriggerRequest {
        at,
        shards: selection(body.shards)?,
        parameter: body.parameter,
        ..TriggerRequest::default()
    };
    let fingerprint = request.to_string();
    let key = header_text(&headers, "idempotency-key");
    if key.is_some_and(|key| key.is_empty() || key.len() > 255) {
        return Err(Problem::invalid("Idempotency-Key", "a key has 1 to 255 characters"));
    }
    let key = key
        .map(|key| [&access.caller.username, &access.registry.name, job.as_str(), key].join("\n"));
    trigger.run = key.as_ref().map(|key| run_id_of_key(key, &fingerprint));
    let work = actions::trigger(&access, &job, trigger, request);
    let Some(key) = key else { return Ok(Json(work.await?)) };
    let response =
        access.app.idempotency_keys.entry(key, &fingerprint, access.app.clock.monotonic())?;
    // A failed trigger is not remembered and may be retried.
    Ok(Json(response.get_or_try_init(|| work).await?.clone()))
}

/// Derives the run id from the key, so that it is the same after a restart.
fn run_id_of_key(key: &str, fingerprint: &str) -> RunId {
    let digest = digest(&SHA256, format!("{key}\n{fingerprint}").as_bytes());
    let bits = digest.as_ref().iter().take(16);
    RunId::triggered(bits.fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
}

/// Options of a cancellation.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schema(as = CancelRequest)]
struct CancelBody {
    /// Only these shards, at least one; if omitted, all.
    #[schema(value_type = Vec<u32>, min_items = 1, required = false)]
    #[serde(deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    shards: Option<BTreeSet<u32>>,
    /// Only this run; if omitted, whichever is running.
    run: Option<String>,
}

/// Cancels running shards; with `run` only those of that run, a conflict if it is not running. Java instances cannot be cancelled and are listed.
#[utoipa::path(post, path = "/r/{registry}/jobs/{job}/cancel", tag = "jobs", request_body = Option<CancelBody>, params(("registry" = String, Path), ("job" = String, Path)),
    responses((status = 200, body = CancellationResult), (status = 404, body = Problem), (status = 409, body = Problem), (status = 422, body = Problem)))]
async fn cancel(
    access: Authorized<Operator>,
    PathJob(job): PathJob,
    OptionalBody(body): OptionalBody<CancelBody>,
) -> Result<Json<CancellationResult>, Problem> {
    let request = serde_json::to_value(&body).unwrap_or_default();
    let selected = selection(body.shards)?;
    let cancelled = access
        .change("job.cancel", ChangeTarget::Job(&job), request, async |admin| match &body.run {
            Some(run) => {
                let running = shards_running(admin, &job, run, &selected).await?;
                admin.cancel(&job, &running).await
            }
            None => admin.cancel(&job, &selected).await,
        })
        .await?;
    Ok(Json(cancelled))
}

/// The selected shards that currently run as part of this run; a conflict if there are none.
async fn shards_running(
    admin: &Admin,
    job: &JobName,
    run: &str,
    selected: &ShardSelection,
) -> Result<ShardSelection, AdminError> {
    let shards = admin.shards(job).await?.into_iter();
    let shards = shards.filter(|shard| selected.contains(shard.item));
    let running = shards.filter(|shard| {
        let last = shard.last_run.as_ref().and_then(|last| last.run_id.as_deref());
        shard.running.is_some() && last == Some(run)
    });
    ShardSelection::only(running.map(|shard| shard.item)).map_err(|_| AdminError::Conflict {
        problem: format!("run {run} of job {job} is not running"),
        hint: "it may have ended: check what is running, then decide again".to_owned(),
    })
}

/// Refuses `null`, which could be meant as no shard or as all of them.
fn not_null<'de, D: Deserializer<'de>>(value: D) -> Result<Option<BTreeSet<u32>>, D::Error> {
    BTreeSet::deserialize(value).map(Some)
}

/// The shards that a body selects.
fn selection(shards: Option<BTreeSet<u32>>) -> Result<ShardSelection, Problem> {
    let Some(shards) = shards else { return Ok(ShardSelection::All) };
    ShardSelection::only(shards).map_err(|error| Problem::invalid("shards", &error))
}

/// Remembers triggers by their idempotency key.
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<HashMap<String, KeyedTrigger>>);

#[derive(Debug)]
struct KeyedTrigger {
    since: Monotonic,
    fingerprint: String,
    response: Arc<OnceCell<TriggerResponse>>,
}

impl IdempotencyKeys {
    /// The cell for the response to this key. A conflict if the key was used with a different request.
    fn entry(
        &self,
        key: String,
        fingerprint: &str,
        now: Monotonic,
    ) -> Result<Arc<OnceCell<TriggerResponse>>, Problem> {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.retain(|_, keyed| now.saturating_since(keyed.since) < KEY_TTL);
        if keys.len() >= MAX_KEYS
            && let Some(oldest) = keys.iter().min_by_key(|(_, keyed)| keyed.since)
        {
            let oldest = oldest.0.clone();
            keys.remove(&oldest);
        }
        let keyed = keys.entry(key).or_insert_with(|| KeyedTrigger {
            since: now,
            fingerprint: fingerprint.to_owned(),
            response: Arc::default(),
        });
        if keyed.fingerprint != fingerprint {
            return Err(Problem::new(Code::Conflict, "this key was used with a different request")
                .with_hint("use a new key for each request")
                .with_field("Idempotency-Key"));
        }
        Ok(Arc::clone(&keyed.response))
    }
}
