//! What a run printed: from any place on, and as it prints it.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use crate::http::handler::routes;
use axum::{
    Json,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use elasticjob::{
    history::{OutputLine, OutputPosition, RunState, Store, StoreError},
    runtime::Monotonic,
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::runs::{RunName, unknown};
use crate::{
    auth::who::{Door, Looks},
    http::{
        extract::{Query, shard},
        problem::Problem,
        state::Shared,
    },
    registries::live::may_listen,
};

/// How long to wait for what is printed next.
const PAUSE: Duration = Duration::from_millis(500);
/// How often is looked whether somebody may still listen.
const BEAT: Duration = Duration::from_secs(15);

pub(super) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(output)).routes(routes!(follow))
}

/// Which lines.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutputAsked {
    /// Only of this shard.
    shard: Option<u32>,
    /// What was named as `position` before.
    after: Option<String>,
}

impl OutputAsked {
    fn position(&self) -> Result<OutputPosition, Problem> {
        let position = self.after.as_deref().unwrap_or_default().parse();
        position.map_err(|error: StoreError| Problem::from(error).of("after"))
    }
}

/// What a run printed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct OutputShown {
    /// By their time.
    lines: Vec<OutputLine>,
    /// What to give as `after` for what comes next.
    position: String,
    /// Whether there is more already.
    has_more: bool,
    /// Whether more may come.
    is_running: bool,
}

/// Whether a run runs; a problem if there is none.
async fn is_running(store: &Store, run: &str) -> Result<bool, Problem> {
    if let Some(run) = store.brief(run).await? {
        return Ok(run.state == RunState::Running);
    }
    // Perhaps the ancestor wrote it.
    store.run(run).await?.map(|_| false).ok_or_else(|| unknown(run))
}

/// What a run printed, of all its shards or one, from the beginning or from where somebody had come.
#[utoipa::path(get, path = "/r/{registry}/runs/{run}/output", tag = "history", params(("registry" = String, Path), ("run" = String, Path, description = "`settle~1774785600000`, or a UUID"), OutputAsked),
    responses((status = 200, body = OutputShown), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn output(
    door: Door<Looks>,
    RunName(run): RunName,
    Query(asked): Query<OutputAsked>,
) -> Result<Json<OutputShown>, Problem> {
    let position = asked.position()?;
    let store = door.history().await?;
    // First this: what is printed at the end is there when the end is.
    let is_running = is_running(&store, &run).await?;
    let output = store.output(&run, shard(asked.shard)?, &position).await?;
    Ok(Json(OutputShown {
        lines: output.lines,
        position: output.position.to_string(),
        has_more: output.more,
        is_running,
    }))
}

/// What a run prints, as it prints it, as server-sent events: `lines` (`[line]`), then `end` (`{position}`) when the run has ended: close the stream then.
#[utoipa::path(get, path = "/r/{registry}/runs/{run}/output/events", tag = "history", params(("registry" = String, Path), ("run" = String, Path, description = "`settle~1774785600000`, or a UUID"), OutputAsked),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn follow(
    door: Door<Looks>,
    RunName(run): RunName,
    Query(asked): Query<OutputAsked>,
) -> Result<Response, Problem> {
    let position = asked.position()?;
    let store = door.history().await?;
    is_running(&store, &run).await?;
    let checked = door.shared.clock.monotonic();
    let reader = Reader {
        door,
        store,
        run,
        shard: shard(asked.shard)?,
        position,
        waiting: VecDeque::new(),
        checked,
        has_ended: false,
    };
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok::<_, Infallible>(event), reader))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(BEAT));
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// Somebody who reads along.
struct Reader {
    door: Door<Looks>,
    store: Store,
    run: String,
    shard: Option<u32>,
    position: OutputPosition,
    waiting: VecDeque<Event>,
    /// When was last looked whether they may.
    checked: Monotonic,
    has_ended: bool,
}

impl Reader {
    /// The next event; nothing when it is over.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            let clock = self.door.shared.clock.clone();
            if clock.monotonic().saturating_since(self.checked) >= BEAT {
                self.checked = clock.monotonic();
                if !may_listen(&self.door.shared, &self.door.who, &self.door.place) {
                    return None;
                }
            }
            // Whoever reads along comes again if this ends too soon.
            let is_running = is_running(&self.store, &self.run).await.ok()?;
            let output = self.store.output(&self.run, self.shard, &self.position).await.ok()?;
            self.position = output.position;
            if !output.lines.is_empty() {
                let lines = serde_json::to_string(&output.lines).unwrap_or_default();
                self.waiting.push_back(Event::default().event("lines").data(lines));
            }
            if output.more {
                continue;
            }
            if is_running {
                if self.waiting.is_empty() {
                    clock.sleep_until(clock.monotonic() + PAUSE).await;
                }
                continue;
            }
            let end = json!({ "position": self.position.to_string() });
            self.waiting.push_back(Event::default().event("end").data(end.to_string()));
            self.has_ended = true;
        }
    }
}
