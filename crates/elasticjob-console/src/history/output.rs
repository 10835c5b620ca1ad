//! The output of a run: from any position on, and live.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use crate::http::handler::routes;
use axum::{
    Json,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use elasticjob::history::{OutputLine, OutputPosition, RunState, Store, StoreError};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::runs::{PathRun, no_such_run};
use crate::{
    auth::caller::{Authorized, Viewer},
    http::{
        extract::{Query, check_shard},
        problem::Problem,
        state::AppState,
        streams::StreamSlot,
    },
    registries::live::may_listen,
};

/// Pause between reads of new output.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of keep-alives.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(super) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(output)).routes(routes!(follow))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OutputQuery {
    /// Only lines of this shard.
    shard: Option<u32>,
    /// The `position` of the previous response.
    after: Option<String>,
}

impl OutputQuery {
    fn position(&self) -> Result<OutputPosition, Problem> {
        let position = self.after.as_deref().unwrap_or_default().parse();
        position.map_err(|error: StoreError| Problem::from(error).with_field("after"))
    }
}

/// Output of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OutputPage)]
struct OutputPage {
    /// Ordered by time.
    lines: Vec<OutputLine>,
    /// The value of `after` for what comes next.
    position: String,
    /// More lines are available already.
    has_more: bool,
    /// The run is still running: more lines may come.
    is_running: bool,
}

/// Whether a run is running; fails if it does not exist.
async fn is_running(store: &Store, run: &str) -> Result<bool, Problem> {
    if let Some(run) = store.brief(run).await? {
        return Ok(run.state == RunState::Running);
    }
    // A run recorded by Java ElasticJob has no row of its own.
    store.run(run).await?.map(|_| false).ok_or_else(|| no_such_run(run))
}

/// Returns the output of a run, of all shards or one, from the beginning or from a position.
#[utoipa::path(get, path = "/r/{registry}/runs/{run}/output", tag = "history", params(("registry" = String, Path), ("run" = String, Path, description = "`settle~1774785600000`, or a UUID"), OutputQuery),
    responses((status = 200, body = OutputPage), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn output(
    access: Authorized<Viewer>,
    PathRun(run): PathRun,
    Query(query): Query<OutputQuery>,
) -> Result<Json<OutputPage>, Problem> {
    let position = query.position()?;
    let store = access.history().await?;
    // The state must be read first: once the run has ended, its last output is stored.
    let is_running = is_running(&store, &run).await?;
    let output = store.output(&run, check_shard(query.shard)?, &position).await?;
    Ok(Json(OutputPage {
        lines: output.lines,
        position: output.position.to_string(),
        has_more: output.more,
        is_running,
    }))
}

/// Streams the output of a run as server-sent events: `lines` (`[line]`), then `end` (`{position}`) when the run has ended: close the stream then.
#[utoipa::path(get, path = "/r/{registry}/runs/{run}/output/events", tag = "history", params(("registry" = String, Path), ("run" = String, Path, description = "`settle~1774785600000`, or a UUID"), OutputQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404, body = Problem), (status = 422, body = Problem), (status = 503, body = Problem)))]
async fn follow(
    access: Authorized<Viewer>,
    PathRun(run): PathRun,
    Query(query): Query<OutputQuery>,
) -> Result<Response, Problem> {
    let position = query.position()?;
    let slot = access.app.open_stream(&access.caller)?;
    let store = access.history().await?;
    is_running(&store, &run).await?;
    let stream_state = OutputStream {
        _slot: slot,
        access,
        store,
        run,
        shard: check_shard(query.shard)?,
        position,
        pending: VecDeque::new(),
        has_ended: false,
    };
    let events = stream::unfold(stream_state, |mut stream_state| async move {
        let event = stream_state.next().await?;
        Some((Ok::<_, Infallible>(event), stream_state))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT));
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

/// State of an output stream.
struct OutputStream {
    _slot: StreamSlot,
    access: Authorized<Viewer>,
    store: Store,
    run: String,
    shard: Option<u32>,
    position: OutputPosition,
    pending: VecDeque<Event>,
    has_ended: bool,
}

impl OutputStream {
    /// The next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.has_ended {
                return None;
            }
            let clock = self.access.app.clock.clone();
            // If the stream ends early, the client reconnects.
            let is_running = is_running(&self.store, &self.run).await.ok()?;
            let output = self.store.output(&self.run, self.shard, &self.position).await.ok()?;
            // After reading, so that nothing is sent that was printed after the right to read ended.
            if !may_listen(&self.access.app, &self.access.caller, &self.access.registry) {
                return None;
            }
            self.position = output.position;
            if !output.lines.is_empty() {
                let lines = serde_json::to_string(&output.lines).unwrap_or_default();
                self.pending.push_back(Event::default().event("lines").data(lines));
            }
            if output.more {
                continue;
            }
            if is_running {
                if self.pending.is_empty() {
                    clock.sleep_until(clock.monotonic() + POLL_INTERVAL).await;
                }
                continue;
            }
            let end = json!({ "position": self.position.to_string() });
            self.pending.push_back(Event::default().event("end").data(end.to_string()));
            self.has_ended = true;
        }
    }
}
