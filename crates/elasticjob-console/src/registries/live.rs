//! What happens, as it happens: server-sent events.
//!
//! A stream ends with its session or token, and when the registry is taken away: that is looked at before every event, so that it ends at once however
//! much happens. Whoever falls behind is told to look at everything again.

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

use super::connections::Place;
use crate::{
    auth::{
        accounts::EVERYWHERE,
        who::{Door, Looks, Via, Who},
    },
    http::{extract::Query, paging::ready, problem::Problem, state::Shared},
    jobs::routes::{Glance, JobRow},
};
use elasticjob::admin::mirror::Change;

/// How often something is sent besides, so that proxies keep the line open though nothing happens that is meant for this listener.
const BEAT: Duration = Duration::from_secs(15);

pub(crate) fn router() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(events))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct EventsAsked {
    /// Only of this job.
    job: Option<String>,
}

/// What happens, as server-sent events: `job` (`{jobName, job}`, the row of the list, null when it is gone), `shards` (`{jobName}`: look at them again), `connection`
/// (`{isConnected}`), `run` (a row of the list of runs, new or changed, if there is a history), `reload` (`{}`: look at everything again). The first is always a `connection`.
#[utoipa::path(get, path = "/r/{registry}/events", tag = "live", params(("registry" = String, Path), EventsAsked),
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 404, body = Problem), (status = 503, body = Problem)))]
async fn events(door: Door<Looks>, Query(asked): Query<EventsAsked>) -> Result<Response, Problem> {
    let changes = door.place.mirror.listen();
    let runs = door.shared.books.listen(&door.place.name);
    let is_connected = ready(&door).await?.seen(|seen| seen.is_current);
    let beat = door.shared.clock.monotonic() + BEAT;
    let listener = Listener {
        beat,
        who: door.who,
        shared: door.shared,
        place: door.place,
        changes,
        runs,
        job: asked.job,
        zone: Zone::from(TimeZone::system()),
        waiting: Some(Change::Connection(is_connected)),
    };
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    // Proxies that gather answers are asked not to.
    Ok(([("x-accel-buffering", "no")], Sse::new(events)).into_response())
}

struct Listener {
    who: Who,
    shared: Shared,
    place: Arc<Place>,
    changes: Receiver<Change>,
    /// Runs that are new or changed, if there is a history.
    runs: Option<Receiver<Option<Arc<Run>>>>,
    job: Option<String>,
    zone: Zone,
    waiting: Option<Change>,
    /// When something is sent though nothing happens.
    beat: Monotonic,
}

/// What a listener heard.
enum Heard {
    /// Something for them.
    Event(Event),
    /// Something for others.
    Other,
    /// There is nothing more to hear.
    End,
}

impl From<Option<Event>> for Heard {
    fn from(event: Option<Event>) -> Self {
        event.map_or(Self::Other, Self::Event)
    }
}

impl Listener {
    /// The next event; nothing when it is over.
    async fn next(&mut self) -> Option<Event> {
        if let Some(change) = self.waiting.take() {
            return self.event(change);
        }
        loop {
            match self.heard().await {
                Heard::Event(event) => {
                    return may_listen(&self.shared, &self.who, &self.place).then_some(event);
                }
                Heard::Other => {}
                Heard::End => return None,
            }
        }
    }

    async fn heard(&mut self) -> Heard {
        let clock = &self.shared.clock;
        tokio::select! {
            change = self.changes.recv() => match change {
                Ok(change) => self.event(change).into(),
                Err(RecvError::Lagged(_)) => Heard::Event(told("reload", &json!({}))),
                Err(RecvError::Closed) => Heard::End,
            },
            run = next_run(&mut self.runs) => self.run(run).into(),
            () = clock.sleep_until(self.beat) => {
                self.beat = clock.monotonic() + BEAT;
                // Perhaps it has a history by now.
                if self.runs.is_none() {
                    self.runs = self.shared.books.listen(&self.place.name);
                }
                Heard::Event(Event::default().comment("still there"))
            }
        }
    }

    /// What is sent of a run; nothing if it is about another job.
    fn run(&mut self, run: Result<Option<Arc<Run>>, RecvError>) -> Option<Event> {
        match run {
            Ok(Some(run)) => {
                let is_meant = self.job.as_ref().is_none_or(|job| *job == run.job_name);
                is_meant.then(|| told("run", &serde_json::to_value(&*run).unwrap_or_default()))
            }
            Ok(None) | Err(RecvError::Lagged(_)) => Some(told("reload", &json!({}))),
            Err(RecvError::Closed) => {
                self.runs = None;
                None
            }
        }
    }

    /// What is sent of a change; nothing if it is about another job.
    fn event(&self, change: Change) -> Option<Event> {
        let is_meant = |name: &str| self.job.as_deref().is_none_or(|job| job == name);
        let mirror = &self.place.mirror;
        match change {
            Change::Job(name, _) | Change::Shards(name) if !is_meant(&name) => None,
            Change::Job(name, outline) => {
                let now = self.shared.clock.now();
                let row = outline.map(|outline| {
                    mirror.seen(|seen| {
                        let bustle = seen.bustle.get(&name);
                        JobRow::new(&Glance::new(&outline, bustle, now, &self.zone))
                    })
                });
                Some(told("job", &json!({ "jobName": name, "job": row })))
            }
            Change::Shards(name) => {
                let bustle =
                    mirror.seen(|seen| seen.bustle.get(&name).cloned()).unwrap_or_default();
                Some(told(
                    "shards",
                    &json!({
                        "jobName": name,
                        "runningItems": bustle.running.keys().collect::<Vec<_>>(),
                        "waitingForFailoverItems": bustle.waiting,
                    }),
                ))
            }
            Change::All => Some(told("reload", &json!({}))),
            Change::Connection(is_connected) => {
                Some(told("connection", &json!({ "isConnected": is_connected })))
            }
        }
    }
}

/// The next run; never, if there is no history.
async fn next_run(
    runs: &mut Option<Receiver<Option<Arc<Run>>>>,
) -> Result<Option<Arc<Run>>, RecvError> {
    match runs {
        Some(runs) => runs.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether somebody may still listen to what happens in a registry, and it is still the one they listen to.
pub(crate) fn may_listen(shared: &Shared, who: &Who, place: &Arc<Place>) -> bool {
    let clock = &shared.clock;
    let mut given = None;
    let is_open = match &who.via {
        Via::Session(secret) | Via::AccessToken(secret) => {
            let session = shared.sessions.look(secret, clock.monotonic());
            given = session.as_ref().and_then(|session| session.roles.clone());
            session.is_some()
        }
        Via::Token(name) => shared.accounts.has_token(&who.username, name, clock.now()),
        Via::Basic => true,
    };
    let roles = given.or_else(|| shared.accounts.roles(&who.username)).unwrap_or_default();
    is_open
        && (roles.contains_key(&place.name) || roles.contains_key(EVERYWHERE))
        && shared.registries.get(&place.name).is_some_and(|known| Arc::ptr_eq(&known, place))
}

fn told(name: &str, data: &serde_json::Value) -> Event {
    Event::default().event(name).data(data.to_string())
}
