//! Triggers and cancels runs.
//!
//! A trigger with an `Idempotency-Key` is executed once: repeating the request, for example after a lost response, returns the same response and
//! waits if the first is still in progress. Keys are remembered for a day and forgotten when the console restarts; but the run id is derived from
//! the key, so a repeated request asks for the same run even then, and the registry stores that run once.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::http::handler::routes;
use axum::{Json, http::HeaderMap};
use elasticjob::{
    admin::TriggerRequest,
    admin::{CancellationResult, TriggerResponse},
    job::{RunId, ShardSelection},
    runtime::Monotonic,
};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
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
/// Memory for keys and their responses. When exceeded, the oldest are forgotten.
const MAX_KEY_BYTES: usize = 16 * 1024 * 1024;
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
    let keys = &access.app.idempotency_keys;
    let key = KeyHash::of(&key);
    let response = keys.entry(key, KeyHash::of(&fingerprint), access.app.clock.monotonic())?;
    // A failed trigger is not remembered and may be retried.
    let response = response.get_or_try_init(|| work).await?.clone();
    keys.count_response(key, &response);
    Ok(Json(response))
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

/// Cancels running shards; with `run` only those of that run, also before they have started; a conflict if there are none. Java instances cannot be cancelled and are listed.
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
                let run: RunId = run.parse()?;
                admin.cancel_run(&job, &run, &selected).await
            }
            None => admin.cancel(&job, &selected).await,
        })
        .await?;
    Ok(Json(cancelled))
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

/// Remembers triggers by their idempotency key, the newest ones that fit into [`MAX_KEYS`] and [`MAX_KEY_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct IdempotencyKeys(Mutex<KeyTable>);

#[derive(Debug, Default)]
struct KeyTable {
    triggers: HashMap<KeyHash, KeyedTrigger>,
    /// Keys in the order of their first use, by number.
    order: BTreeMap<u64, KeyHash>,
    next_number: u64,
    bytes: usize,
}

/// SHA-256 of a key or request: a request may have a quarter of a megabyte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct KeyHash([u8; SHA256_OUTPUT_LEN]);

impl KeyHash {
    fn of(text: &str) -> Self {
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self(hash)
    }
}

#[derive(Debug)]
struct KeyedTrigger {
    since: Monotonic,
    fingerprint: KeyHash,
    response: Arc<OnceCell<TriggerResponse>>,
    bytes: usize,
}

impl IdempotencyKeys {
    /// The cell for the response to this key. A conflict if the key was used with a different request.
    fn entry(
        &self,
        key: KeyHash,
        fingerprint: KeyHash,
        now: Monotonic,
    ) -> Result<Arc<OnceCell<TriggerResponse>>, Problem> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(oldest) = table.oldest()
            && now.saturating_since(oldest.since) >= KEY_TTL
        {
            table.forget_oldest();
        }
        if let Some(keyed) = table.triggers.get(&key) {
            if keyed.fingerprint != fingerprint {
                return Err(Problem::new(
                    Code::Conflict,
                    "this key was used with a different request",
                )
                .with_hint("use a new key for each request")
                .with_field("Idempotency-Key"));
            }
            return Ok(Arc::clone(&keyed.response));
        }
        let response = Arc::default();
        table.add(key, fingerprint, Arc::clone(&response), now);
        Ok(response)
    }

    /// Counts the memory of a response.
    fn count_response(&self, key: KeyHash, response: &TriggerResponse) {
        let names = response.instances.iter().chain(&response.already_pending);
        let names = names.map(|name| size_of::<String>() + name.capacity());
        let bytes = ENTRY_BYTES + names.sum::<usize>() + size_of_val(&*response.delegated);
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(keyed) = table.triggers.get_mut(&key) else { return };
        let before = std::mem::replace(&mut keyed.bytes, bytes);
        table.bytes = table.bytes - before + bytes;
        table.forget_excess();
    }
}

/// Memory of an entry without its response.
const ENTRY_BYTES: usize = size_of::<KeyedTrigger>()
    + 2 * size_of::<(u64, KeyHash)>()
    + size_of::<OnceCell<TriggerResponse>>();

impl KeyTable {
    fn oldest(&self) -> Option<&KeyedTrigger> {
        self.order.first_key_value().and_then(|(_, key)| self.triggers.get(key))
    }

    fn add(
        &mut self,
        key: KeyHash,
        fingerprint: KeyHash,
        response: Arc<OnceCell<TriggerResponse>>,
        since: Monotonic,
    ) {
        let (number, bytes) = (self.next_number, ENTRY_BYTES);
        self.next_number += 1;
        self.order.insert(number, key);
        self.triggers.insert(key, KeyedTrigger { since, fingerprint, response, bytes });
        self.bytes += bytes;
        self.forget_excess();
    }

    fn forget_excess(&mut self) {
        while self.triggers.len() > MAX_KEYS || self.bytes > MAX_KEY_BYTES {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self.order.pop_first().and_then(|(_, key)| self.triggers.remove(&key));
        self.bytes -= oldest.map_or(self.bytes, |keyed| keyed.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn remember(keys: &IdempotencyKeys, key: &str, instances: usize) {
        let key = KeyHash::of(key);
        let cell = keys.entry(key, KeyHash::of("{}"), at(0)).unwrap();
        let instances = (0..instances).map(|number| format!("10.0.0.7@-@{number:050}"));
        let response = TriggerResponse {
            run: RunId::triggered(7),
            instances: instances.collect(),
            already_pending: Vec::new(),
            delegated: Vec::new(),
        };
        keys.count_response(key, &response);
        cell.set(response).unwrap();
    }

    fn is_remembered(keys: &IdempotencyKeys, key: &str) -> bool {
        keys.0.lock().unwrap().triggers.contains_key(&KeyHash::of(key))
    }

    #[test]
    fn idempotency_keys_are_bounded_in_bytes_and_the_newest_stay() {
        let keys = IdempotencyKeys::default();
        for number in 0..200 {
            // About 170 KB each, 34 MB together.
            remember(&keys, &format!("large {number}"), 2_000);
        }

        let table = keys.0.lock().unwrap();
        let kept: usize = table.triggers.values().map(|keyed| keyed.bytes).sum();
        assert!(kept == table.bytes && kept <= MAX_KEY_BYTES, "{kept}");
        assert!(table.triggers.len() > 50 && table.order.len() == table.triggers.len());
        drop(table);
        assert!(is_remembered(&keys, "large 199") && !is_remembered(&keys, "large 0"));
    }

    #[test]
    fn idempotency_keys_are_bounded_in_number_and_time() {
        let keys = IdempotencyKeys::default();
        for number in 0..=MAX_KEYS {
            remember(&keys, &format!("{number}"), 0);
        }
        assert!(!is_remembered(&keys, "0") && is_remembered(&keys, "1"));

        let later = at(KEY_TTL.as_secs());
        keys.entry(KeyHash::of("later"), KeyHash::of("{}"), later).unwrap();

        let table = keys.0.lock().unwrap();
        assert_eq!((table.triggers.len(), table.bytes), (1, ENTRY_BYTES));
    }

    #[test]
    fn idempotency_key_of_another_request_is_a_conflict() {
        let keys = IdempotencyKeys::default();
        let entry = |request| keys.entry(KeyHash::of("key"), KeyHash::of(request), at(0));
        let first = entry("{}").unwrap();

        assert!(Arc::ptr_eq(&first, &entry("{}").unwrap()));
        assert_eq!(entry("{\"shards\":[0]}").unwrap_err().code, Code::Conflict);
    }
}
