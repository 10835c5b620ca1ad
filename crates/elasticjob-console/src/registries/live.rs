//! Events of a registry as server-sent events.
//!
//! A stream ends with the very session, token or password that opened it, and when the registry is removed. That is checked before every event, so
//! that it also ends under load, and every second, so that a quiet one does not stay. A client that falls behind has to reload everything.

use std::{convert::Infallible, sync::Arc, time::Duration};

use crate::http::handler::routes;
use axum::response::{
    IntoResponse, Response,
    sse::{Event, Sse},
};
use elasticjob::{history::Run, runtime::Monotonic, schedule::Zone};
use futures_util::stream;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;

use super::connections::RegistryConnection;
use crate::{
    auth::{
        accounts::ALL_REGISTRIES,
        caller::{AuthMethod, Authorized, Caller, Viewer},
    },
    http::{
        extract::Query, paging::loaded_mirror, problem::Problem, state::AppState,
        streams::StreamSlot,
    },
    jobs::routes::{JobRow, JobView},
};
use elasticjob::admin::mirror::Change;

/// Interval of comments that keep proxies from closing a stream without events for this client.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often the right to read is checked while nothing is sent.
const RIGHTS_CHECK: Duration = Duration::from_secs(1);

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(events))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsQuery {
    /// Only events of this job.
    job: Option<String>,
}

/// Streams events as server-sent events.
///
/// Events: `job` (`{jobName, job}`, the row of the job list, null when the job is removed), `shards` (`{jobName}`: read them again),
/// `connection` (`{isConnected}`), `run` (a new or changed row of the run list, if there is a history), `reload` (`{}`: read everything again).
/// The first event is always a `connection`.
#[utoipa::path(get, path = "/r/{registry}/events", tag = "live", params(("registry" = String, Path), EventsQuery),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn events(
    access: Authorized<Viewer>,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    let slot = access.app.open_stream(&access.caller)?;
    let changes = access.registry.mirror.subscribe();
    let runs = access.app.histories.subscribe(&access.registry.name);
    let is_connected = loaded_mirror(&access).await?.read(|seen| seen.is_current);
    let now = access.app.clock.monotonic();
    let stream_state = EventStream {
        _slot: slot,
        next_heartbeat: now + HEARTBEAT,
        next_check: now + RIGHTS_CHECK,
        caller: access.caller,
        app: access.app,
        registry: access.registry,
        changes,
        runs,
        job: query.job,
        zone: Zone::from(TimeZone::system()),
        first_change: Some(Change::Connection(is_connected)),
    };
    let events = stream::unfold(stream_state, |mut stream_state| async move {
        let event = stream_state.next().await?;
        Some((Ok::<_, Infallible>(event), stream_state))
    });
    // Tells proxies not to buffer the stream.
    Ok(([("x-accel-buffering", "no")], Sse::new(events)).into_response())
}

struct EventStream {
    _slot: StreamSlot,
    caller: Caller,
    app: AppState,
    registry: Arc<RegistryConnection>,
    changes: Receiver<Change>,
    /// New and changed runs, if there is a history.
    runs: Option<Receiver<Option<Arc<Run>>>>,
    job: Option<String>,
    zone: Zone,
    first_change: Option<Change>,
    /// When the next heartbeat is due.
    next_heartbeat: Monotonic,
    /// When the right to read is checked next.
    next_check: Monotonic,
}

enum StreamItem {
    Event(Event),
    /// A change that this client did not ask for.
    Ignored,
    /// The right to read is to be checked.
    Check,
    /// The source of changes is closed.
    End,
}

impl From<Option<Event>> for StreamItem {
    fn from(event: Option<Event>) -> Self {
        event.map_or(Self::Ignored, Self::Event)
    }
}

impl EventStream {
    /// The next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        if let Some(change) = self.first_change.take() {
            return self.event(change);
        }
        loop {
            match self.receive().await {
                StreamItem::Event(event) => {
                    return may_listen(&self.app, &self.caller, &self.registry).then_some(event);
                }
                StreamItem::Ignored => {}
                StreamItem::Check if may_listen(&self.app, &self.caller, &self.registry) => {}
                StreamItem::Check | StreamItem::End => return None,
            }
        }
    }

    async fn receive(&mut self) -> StreamItem {
        let clock = &self.app.clock;
        tokio::select! {
            change = self.changes.recv() => match change {
                Ok(change) => self.event(change).into(),
                Err(RecvError::Lagged(_)) => StreamItem::Event(sse_event("reload", &json!({}))),
                Err(RecvError::Closed) => StreamItem::End,
            },
            run = next_run(&mut self.runs) => self.run(run).into(),
            () = clock.sleep_until(self.next_check) => {
                self.next_check = clock.monotonic() + RIGHTS_CHECK;
                StreamItem::Check
            }
            () = clock.sleep_until(self.next_heartbeat) => {
                self.next_heartbeat = clock.monotonic() + HEARTBEAT;
                // A history may have been added meanwhile.
                if self.runs.is_none() {
                    self.runs = self.app.histories.subscribe(&self.registry.name);
                }
                StreamItem::Event(Event::default().comment("still there"))
            }
        }
    }

    /// The event for a run; `None` if it belongs to another job.
    fn run(&mut self, run: Result<Option<Arc<Run>>, RecvError>) -> Option<Event> {
        match run {
            Ok(Some(run)) => {
                let is_wanted = self.job.as_ref().is_none_or(|job| *job == run.job_name);
                is_wanted
                    .then(|| sse_event("run", &serde_json::to_value(&*run).unwrap_or_default()))
            }
            Ok(None) | Err(RecvError::Lagged(_)) => Some(sse_event("reload", &json!({}))),
            Err(RecvError::Closed) => {
                self.runs = None;
                None
            }
        }
    }

    /// The event for a change; `None` if it concerns another job.
    fn event(&self, change: Change) -> Option<Event> {
        let is_wanted = |name: &str| self.job.as_deref().is_none_or(|job| job == name);
        let mirror = &self.registry.mirror;
        match change {
            Change::Job(name, _) | Change::Shards(name) if !is_wanted(&name) => None,
            Change::Job(name, outline) => {
                let now = self.app.clock.now();
                let row = outline.map(|outline| {
                    mirror.read(|seen| {
                        let activity = seen.activity.get(&name);
                        JobRow::new(&JobView::new(&outline, activity, now, &self.zone))
                    })
                });
                Some(sse_event("job", &json!({ "jobName": name, "job": row })))
            }
            Change::Shards(name) => {
                let activity =
                    mirror.read(|seen| seen.activity.get(&name).cloned()).unwrap_or_default();
                Some(sse_event(
                    "shards",
                    &json!({
                        "jobName": name,
                        "runningItems": activity.running.keys().collect::<Vec<_>>(),
                        "awaitingFailoverItems": activity.waiting,
                    }),
                ))
            }
            Change::All => Some(sse_event("reload", &json!({}))),
            Change::Connection(is_connected) => {
                Some(sse_event("connection", &json!({ "isConnected": is_connected })))
            }
        }
    }
}

/// The next run; pending forever if there is no history.
async fn next_run(
    runs: &mut Option<Receiver<Option<Arc<Run>>>>,
) -> Result<Option<Arc<Run>>, RecvError> {
    match runs {
        Some(runs) => runs.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether the caller may still read this registry, and it is still the same connection.
pub(crate) fn may_listen(
    app: &AppState,
    caller: &Caller,
    registry: &Arc<RegistryConnection>,
) -> bool {
    let clock = &app.clock;
    let mut session_roles = None;
    let is_open = match &caller.via {
        AuthMethod::Session(secret) | AuthMethod::AccessToken(secret) => {
            let session = app.sessions.peek(secret, clock.monotonic());
            session_roles = session.as_ref().and_then(|session| session.roles.clone());
            session.is_some()
        }
        AuthMethod::Token(_) | AuthMethod::Basic => {
            caller.credential.as_ref().is_some_and(|credential| {
                app.accounts.has_credential(&caller.username, credential, clock.now())
            })
        }
    };
    let roles = session_roles.or_else(|| app.accounts.roles(&caller.username)).unwrap_or_default();
    is_open
        && (roles.contains_key(&registry.name) || roles.contains_key(ALL_REGISTRIES))
        && app.registries.get(&registry.name).is_some_and(|known| Arc::ptr_eq(&known, registry))
}

fn sse_event(name: &str, data: &serde_json::Value) -> Event {
    Event::default().event(name).data(data.to_string())
}
