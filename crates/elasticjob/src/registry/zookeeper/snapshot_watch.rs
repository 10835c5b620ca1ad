//! A recursive watch that starts with a snapshot. ZooKeeper's protocol reports changes only, so the snapshot is read by walking the tree.
//!
//! The watch is set first, then the tree is listed node by node, with many requests in flight. Changes that arrive meanwhile are
//! buffered and delivered after the snapshot, in order: a change may be reported that the snapshot already contains, but none is
//! missed. When the connection breaks, the walk is discarded; it starts over at the gap that the client reports once the watch
//! is set again.
//!
//! All work happens inside `next`, in the consumer's task, so there is no queue between the client's and the consumer: `try_next`
//! finds everything that the client had queued when a write was answered.

use std::{collections::VecDeque, future::Future, pin::Pin, time::Duration};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tinykeeper::{
    client::{self, Client, Reply, WatchEvent},
    wire::{Code, Request, Response},
};

use crate::registry::{
    path::Path,
    translate,
    watch::{Event, WatchSource},
};

/// Listings in flight at once: enough to keep the connection busy, few enough not to flood the server's queue.
const IN_FLIGHT: usize = 256;

/// How long to wait after a refused listing.
const PAUSE: Duration = Duration::from_secs(1);

type Listing = Pin<Box<dyn Future<Output = (Path, Result<Reply, client::Error>)> + Send>>;

pub(super) struct SnapshotWatch {
    client: Client,
    watch: client::Watch,
    prefix: Path,
    floor: i64,
    state: State,
    /// Events to deliver before the watch is polled again.
    ready: VecDeque<Event>,
    /// The delivered events form a complete snapshot plus changes; see [`WatchSource::is_current`].
    is_complete: bool,
}

enum State {
    /// The snapshot is being read.
    Walking {
        unlisted: Vec<Path>,
        listings: FuturesUnordered<Listing>,
        changes: VecDeque<Event>,
    },
    /// The walk was refused; it starts over when this time is over.
    Pausing(Pin<Box<tokio::time::Sleep>>),
    /// The connection is broken; the next gap starts a walk.
    Disconnected,
    /// The snapshot is complete; changes are passed on as they arrive.
    Live,
    Closed,
}

impl SnapshotWatch {
    pub(super) fn new(client: Client, watch: client::Watch, prefix: Path, floor: i64) -> Self {
        let mut watch = Self {
            client,
            watch,
            prefix,
            floor,
            state: State::Disconnected,
            ready: VecDeque::new(),
            is_complete: false,
        };
        watch.start();
        watch
    }

    fn start(&mut self) {
        self.is_complete = false;
        self.ready.clear();
        self.ready.push_back(Event::Init);
        self.state = State::Walking {
            unlisted: vec![self.prefix.clone()],
            listings: FuturesUnordered::new(),
            changes: VecDeque::new(),
        };
    }

    /// Handles one event of the client's watch; `None` means that the client was closed.
    fn handle_event(&mut self, event: Option<WatchEvent>) {
        match event {
            Some(WatchEvent::Changed { path, kind }) => {
                let Some(event) = translate::event(kind, &path) else {
                    return;
                };
                match &mut self.state {
                    State::Walking { changes, .. } => changes.push_back(event),
                    State::Live => self.ready.push_back(event),
                    // Left over from before the gap, or seen by the next walk.
                    State::Disconnected | State::Pausing(_) | State::Closed => {}
                }
            }
            Some(WatchEvent::Suspended) => {
                self.ready.clear();
                self.is_complete = false;
                self.state = State::Disconnected;
            }
            Some(WatchEvent::Gap(_)) => self.start(),
            None => self.state = State::Closed,
        }
    }

    /// Handles the answer to one listing of the walk.
    fn handle_listing(&mut self, path: Path, answer: Result<Reply, client::Error>) {
        let State::Walking { unlisted, listings, .. } = &mut self.state else {
            return;
        };
        match answer.map(|answer| answer.response) {
            Ok(Response::ChildrenStat { children, stat }) => {
                unlisted.extend(children.iter().filter_map(|name| path.join(name).ok()));
                self.ready
                    .push_back(Event::InitApply { path, stat: translate::stat(&stat, self.floor) });
            }
            // The node was deleted during the walk or never existed: nothing to report.
            Err(client::Error::Refused { code: Code::NO_NODE, .. }) => {}
            // It exists, because its parent listed it: what it is needs no permission. What is below it stays unknown.
            Err(client::Error::Refused { code: Code::NO_AUTH, .. }) => {
                tracing::warn!(%path, "watched node may not be listed, what is below it is unknown");
                let request = Request::Exists { path: path.to_string(), watch: false };
                let answer = self.client.submit(request);
                listings.push(Box::pin(async move { (path, answer.await) }));
            }
            Ok(Response::Stat(stat)) => {
                self.ready
                    .push_back(Event::InitApply { path, stat: translate::stat(&stat, self.floor) });
            }
            // The server is overloaded, for example. A snapshot without the node would say that it is absent.
            Err(client::Error::Refused { code, .. }) => {
                tracing::warn!(%path, %code, "cannot list watched node, listing all again");
                self.ready.clear();
                self.state = State::Pausing(Box::pin(tokio::time::sleep(PAUSE)));
            }
            // The connection broke: the client reports a gap, and the walk starts over there.
            Ok(_) | Err(_) => self.state = State::Disconnected,
        }
    }

    fn pop_ready(&mut self) -> Option<Event> {
        let event = self.ready.pop_front()?;
        if event == Event::InitDone {
            self.is_complete = true;
            // Changes come one by one from here on, so the snapshot's memory can be released.
            self.ready.shrink_to_fit();
        }
        Some(event)
    }

    /// Sends listings up to the limit; completes the snapshot when none is left.
    fn advance(&mut self) {
        let State::Walking { unlisted, listings, changes } = &mut self.state else {
            return;
        };
        while listings.len() < IN_FLIGHT
            && let Some(path) = unlisted.pop()
        {
            let request = Request::GetChildrenStat { path: path.to_string(), watch: false };
            let answer = self.client.submit(request);
            listings.push(Box::pin(async move { (path, answer.await) }));
        }
        if listings.is_empty() {
            self.ready.push_back(Event::InitDone);
            self.ready.append(changes);
            self.state = State::Live;
        }
    }
}

#[async_trait]
impl WatchSource for SnapshotWatch {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.advance();
            if let Some(event) = self.pop_ready() {
                return Some(event);
            }
            match &mut self.state {
                State::Closed => return None,
                State::Walking { listings, .. } => tokio::select! {
                    biased;
                    event = self.watch.next() => self.handle_event(event),
                    Some((path, answer)) = listings.next() => self.handle_listing(path, answer),
                },
                State::Pausing(pause) => tokio::select! {
                    biased;
                    event = self.watch.next() => self.handle_event(event),
                    () = pause => self.start(),
                },
                State::Live | State::Disconnected => {
                    let event = self.watch.next().await;
                    self.handle_event(event);
                }
            }
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pop_ready() {
                return Some(event);
            }
            let event = self.watch.try_next()?;
            self.handle_event(Some(event));
        }
    }

    fn is_current(&self) -> bool {
        self.is_complete
    }
}
