//! Users of the console: requests, triggers, logins and logouts, event streams.

use std::{
    net::TcpStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::{BoxError, console::HttpClient};

/// What the pages request.
const PATHS: [&str; 10] = [
    "/api/v1/r/default/jobs",
    "/api/v1/r/default/jobs/every-second",
    "/api/v1/r/default/jobs/every-second/shards",
    "/api/v1/r/default/jobs/failing/explain",
    "/api/v1/r/default/overview",
    "/api/v1/r/default/servers",
    "/api/v1/r/default/instances",
    "/api/v1/r/default/runs?limit=20",
    "/api/v1/r/default/failures",
    "/api/v1/audit",
];
const TRIGGER: &str = "/api/v1/r/default/jobs/triggered/trigger";
const EVENTS: &str = "/api/v1/r/default/events";
/// Event streams that are open at once.
const STREAMS: usize = 8;

/// How much was done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) requests: u64,
    pub(super) triggers: u64,
    pub(super) logins: u64,
    pub(super) streams: u64,
}

#[derive(Debug, Default)]
struct Shared {
    is_over: AtomicBool,
    requests: AtomicU64,
    triggers: AtomicU64,
    logins: AtomicU64,
    streams: AtomicU64,
    error: Mutex<Option<String>>,
}

/// Uses the console at an address, with the password of `admin`, until the load is over.
type User = fn(&Shared, &str, &str) -> Result<(), BoxError>;

/// Dropping it ends the load.
pub(super) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(address: &str, password: &str) -> Self {
        let shared = Arc::new(Shared::default());
        let users: [User; 3] = [look, log_in_and_out, watch];
        let threads = users.into_iter().map(|user| {
            let (shared, address, password) =
                (Arc::clone(&shared), address.to_owned(), password.to_owned());
            thread::spawn(move || {
                if let Err(error) = user(&shared, &address, &password) {
                    *shared.error.lock().unwrap_or_else(PoisonError::into_inner) =
                        Some(error.to_string());
                }
            })
        });
        Self { threads: threads.collect(), shared }
    }

    /// Fails if a user got an error.
    pub(super) fn check(&self) -> Result<(), BoxError> {
        match &*self.shared.error.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(format!("the load failed: {error}").into()),
            None => Ok(()),
        }
    }

    pub(super) fn stop(mut self) -> Result<Done, BoxError> {
        self.end();
        self.check()?;
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let Shared { requests, triggers, logins, streams, .. } = &*self.shared;
        Ok(Done {
            requests: count(requests),
            triggers: count(triggers),
            logins: count(logins),
            streams: count(streams),
        })
    }

    fn end(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A panic of a user has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Looks at everything, and triggers a job now and then.
fn look(shared: &Shared, address: &str, password: &str) -> Result<(), BoxError> {
    let mut client = HttpClient::login(address, password)?;
    for number in 0_usize.. {
        if shared.is_over() {
            return Ok(());
        }
        client.get(PATHS[number % PATHS.len()])?;
        add_one(&shared.requests);
        if number % 40 == 0 {
            client.post(TRIGGER)?;
            add_one(&shared.triggers);
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn log_in_and_out(shared: &Shared, address: &str, password: &str) -> Result<(), BoxError> {
    while !shared.is_over() {
        let mut client = HttpClient::login(address, password)?;
        client.get("/api/v1/session")?;
        client.post("/api/v1/logout")?;
        add_one(&shared.logins);
        thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// Keeps some event streams open; closes the oldest and opens another.
fn watch(shared: &Shared, address: &str, password: &str) -> Result<(), BoxError> {
    let client = HttpClient::login(address, password)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    while !shared.is_over() {
        if streams.len() >= STREAMS {
            streams.remove(0);
        }
        streams.push(client.open_stream(EVENTS)?);
        add_one(&shared.streams);
        thread::sleep(Duration::from_millis(250));
    }
    Ok(())
}
