//! A recursive watch that starts with a snapshot. ZooKeeper's protocol reports changes only, so the snapshot is read by walking the tree.
//!
//! The watch is set first, then the tree is read node by node, data and names of the children, many nodes at once and so in few requests
//! ([`ReadBatches`]). Changes that arrive meanwhile are
//! buffered and delivered after the snapshot, in order: a change may be reported that the snapshot already contains, but none is
//! missed. When the connection breaks, the walk is discarded; it starts over at the gap that the client reports once the watch
//! is set again.
//!
//! All work happens inside `next`, in the consumer's task, so there is no queue between the client's and the consumer: `try_next`
//! finds everything that the client had queued when a write was answered.

use std::{collections::VecDeque, future::Future, pin::Pin, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, future::try_join, stream::FuturesUnordered};
use tinykeeper::{
    client::{self, Client, WatchEvent},
    wire::{Code, Stat},
};

use super::read_batches::ReadBatches;
use crate::registry::{
    path::Path,
    translate,
    watch::{Event, WatchSource},
};

/// Nodes read at once: enough for several full batches, few enough not to flood the server's queue.
const IN_FLIGHT: usize = 512;

/// How long to wait after a refused listing.
const PAUSE: Duration = Duration::from_secs(1);

/// A node as the walk finds it.
pub(super) struct ListedNode {
    stat: Stat,
    /// `None` if we may not read it.
    data: Option<Bytes>,
    children: Vec<String>,
}

/// Reads a node and the names of its children.
pub(super) async fn list(reads: &ReadBatches, path: &Path) -> Result<ListedNode, client::Error> {
    let path = path.as_str();
    let ((data, stat), children) = try_join(reads.get(path), reads.children(path)).await?;
    Ok(ListedNode { stat, data: Some(data), children })
}

type Listing = Pin<Box<dyn Future<Output = (Path, Result<ListedNode, client::Error>)> + Send>>;

pub(super) struct SnapshotWatch {
    client: Client,
    reads: Arc<ReadBatches>,
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
    /// A watch that starts with `first`, which was read at `prefix` after the watch was set; `None` if nothing is there.
    pub(super) fn new(
        client: Client,
        reads: Arc<ReadBatches>,
        watch: client::Watch,
        prefix: Path,
        first: Option<ListedNode>,
        floor: i64,
    ) -> Self {
        let mut watch = Self {
            client,
            reads,
            watch,
            prefix,
            floor,
            state: State::Disconnected,
            ready: VecDeque::new(),
            is_complete: false,
        };
        watch.begin(Vec::new());
        if let Some(first) = first {
            watch.handle_listing(watch.prefix.clone(), Ok(first));
        }
        watch
    }

    fn start(&mut self) {
        self.begin(vec![self.prefix.clone()]);
    }

    fn begin(&mut self, unlisted: Vec<Path>) {
        self.is_complete = false;
        self.ready.clear();
        self.ready.push_back(Event::Init);
        self.state = State::Walking {
            unlisted,
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
    fn handle_listing(&mut self, path: Path, answer: Result<ListedNode, client::Error>) {
        let State::Walking { unlisted, listings, .. } = &mut self.state else {
            return;
        };
        match answer {
            Ok(ListedNode { stat, data, children }) => {
                unlisted.extend(children.iter().filter_map(|name| path.join(name).ok()));
                let stat = translate::stat(&stat, self.floor);
                self.ready.push_back(Event::InitApply { path, stat, data });
            }
            // The node was deleted during the walk or never existed: nothing to report.
            Err(client::Error::Refused { code: Code::NO_NODE, .. }) => {}
            // It exists, because its parent listed it: what it is needs no permission. What is below it stays unknown.
            Err(client::Error::Refused { code: Code::NO_AUTH, .. }) => {
                tracing::warn!(%path, "watched node may not be listed, what is below it is unknown");
                let client = self.client.clone();
                listings.push(Box::pin(async move {
                    let answer = match client.exists(path.as_str()).await {
                        Ok(Some(stat)) => Ok(ListedNode { stat, data: None, children: Vec::new() }),
                        Ok(None) => Err(client::Error::Refused { code: Code::NO_NODE, zxid: 0 }),
                        Err(error) => Err(error),
                    };
                    (path, answer)
                }));
            }
            // The server is overloaded, for example. A snapshot without the node would say that it is absent.
            Err(client::Error::Refused { code, .. }) => {
                tracing::warn!(%path, %code, "cannot list watched node, listing all again");
                self.ready.clear();
                self.state = State::Pausing(Box::pin(tokio::time::sleep(PAUSE)));
            }
            // The connection broke: the client reports a gap, and the walk starts over there.
            Err(_) => self.state = State::Disconnected,
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

    /// Begins to read nodes up to the limit; completes the snapshot when none is left.
    fn advance(&mut self) {
        let State::Walking { unlisted, listings, changes } = &mut self.state else {
            return;
        };
        while listings.len() < IN_FLIGHT
            && let Some(path) = unlisted.pop()
        {
            let reads = Arc::clone(&self.reads);
            listings.push(Box::pin(async move {
                let answer = list(&reads, &path).await;
                (path, answer)
            }));
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
