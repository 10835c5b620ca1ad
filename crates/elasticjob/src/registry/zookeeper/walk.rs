//! A recursive watch that starts with a snapshot: the protocol only tells changes, so the snapshot is walked.
//!
//! The watch is set first and the tree is listed after, node by node, many at a time. What changes meanwhile is notified and told
//! after the snapshot, in order: a change may be told that the walk saw already, none is left out. When the connection
//! breaks the walk is void; it starts over at the gap the client reports once the watch is set again.
//!
//! Everything happens inside `next`, in the task of whoever watches, so there is no queue of our own between the client's and
//! the consumer: what the client has queued when a write is answered, `try_next` finds.

use std::{collections::VecDeque, future::Future, pin::Pin};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::FuturesUnordered};
use tinykeeper::{
    client::{self, Reply, Client, WatchEvent},
    wire::{Code, Request, Response},
};

use crate::registry::{
    path::Path,
    translate,
    watch::{Event, WatchSource},
};

/// How many listings are on the way at once: enough to fill the pipe, few enough not to fill the server's.
const IN_FLIGHT: usize = 256;

type Listing = Pin<Box<dyn Future<Output = (Path, Result<Reply, client::Error>)> + Send>>;

pub(super) struct Walker {
    client: Client,
    watch: client::Watch,
    prefix: Path,
    floor: i64,
    state: State,
    /// What is to be given out before anything else.
    ready: VecDeque<Event>,
    /// Whether what was given out makes a whole picture.
    whole: bool,
}

enum State {
    /// Looking around.
    Walking {
        unlisted: Vec<Path>,
        listings: FuturesUnordered<Listing>,
        changes: VecDeque<Event>,
    },
    /// The connection is gone; the next gap starts a walk.
    Blind,
    /// The picture is whole.
    Live,
    Closed,
}

impl Walker {
    pub(super) fn new(client: Client, watch: client::Watch, prefix: Path, floor: i64) -> Self {
        let mut walker = Self {
            client,
            watch,
            prefix,
            floor,
            state: State::Blind,
            ready: VecDeque::new(),
            whole: false,
        };
        walker.start();
        walker
    }

    fn start(&mut self) {
        self.whole = false;
        self.ready.clear();
        self.ready.push_back(Event::Init);
        self.state = State::Walking {
            unlisted: vec![self.prefix.clone()],
            listings: FuturesUnordered::new(),
            changes: VecDeque::new(),
        };
    }

    /// What the client says, as long as it does not end the picture.
    fn hear(&mut self, event: Option<WatchEvent>) {
        match event {
            Some(WatchEvent::Changed { path, kind }) => {
                let Some(event) = translate::event(kind, &path) else {
                    return;
                };
                match &mut self.state {
                    State::Walking { changes, .. } => changes.push_back(event),
                    State::Live => self.ready.push_back(event),
                    // Left over from before the gap.
                    State::Blind | State::Closed => {}
                }
            }
            Some(WatchEvent::Suspended) => {
                self.ready.clear();
                self.whole = false;
                self.state = State::Blind;
            }
            Some(WatchEvent::Gap(_)) => self.start(),
            None => self.state = State::Closed,
        }
    }

    /// One answer of the walk.
    fn see(&mut self, path: Path, answer: Result<Reply, client::Error>) {
        let State::Walking { unlisted, .. } = &mut self.state else {
            return;
        };
        match answer.map(|answer| answer.response) {
            Ok(Response::ChildrenStat { children, stat }) => {
                unlisted.extend(children.iter().filter_map(|name| path.join(name).ok()));
                self.ready
                    .push_back(Event::InitApply { path, stat: translate::stat(&stat, self.floor) });
            }
            // It went while we walked, or was never there: then there is nothing to tell.
            Err(client::Error::Refused { code: Code::NO_NODE, .. }) => {}
            Err(client::Error::Refused { code, .. }) => {
                tracing::warn!(%path, %code, "cannot look into a watched node");
            }
            // The connection broke: the client tells the gap, and the walk starts over there.
            Ok(_) | Err(_) => self.state = State::Blind,
        }
    }

    fn give(&mut self) -> Option<Event> {
        let event = self.ready.pop_front()?;
        if event == Event::InitDone {
            self.whole = true;
            // Changes come one by one: the room of the whole picture is not needed again.
            self.ready.shrink_to_fit();
        }
        Some(event)
    }

    /// Sends what may be sent; completes the picture when nothing is left.
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
impl WatchSource for Walker {
    async fn next(&mut self) -> Option<Event> {
        loop {
            self.advance();
            if let Some(event) = self.give() {
                return Some(event);
            }
            match &mut self.state {
                State::Closed => return None,
                State::Walking { listings, .. } => tokio::select! {
                    biased;
                    event = self.watch.next() => self.hear(event),
                    Some((path, answer)) = listings.next() => self.see(path, answer),
                },
                State::Live | State::Blind => {
                    let event = self.watch.next().await;
                    self.hear(event);
                }
            }
        }
    }

    fn try_next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.give() {
                return Some(event);
            }
            let event = self.watch.try_next()?;
            self.hear(Some(event));
        }
    }

    fn is_current(&self) -> bool {
        self.whole
    }
}
