//! The queue of passwords to be hashed.
//!
//! A hash is expensive, so only a few are computed at once. A request that waits for its hash holds what others need, such as a turn to make a
//! change, and a stranger can send any number of passwords. So the queue is short for strangers, and one client cannot fill it. Requests of users
//! who are known, by a session or by an address from which they logged in before, always get a place: those are few.
//!
//! The hashes have threads of their own, each with its [`PasswordHasher`].

use std::{
    io, iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::password_hasher::PasswordHasher;
use crate::http::{
    client_network::ClientNetwork,
    problem::{Code, Problem},
    quota::Quota,
};

/// Each argon2 hash takes a core for a moment and 19 MiB.
const MAX_CONCURRENT_HASHES: usize = 2;
/// Passwords of strangers that wait.
const MAX_WAITING: usize = 64;
const MAX_WAITING_PER_ADDRESS: usize = 8;
/// Seconds after which a refused client should try again; a full queue takes about as long.
const RETRY_AFTER: u64 = 3;

type Work = Box<dyn FnOnce(&mut PasswordHasher) + Send>;

#[derive(Debug)]
pub(crate) struct HashQueue {
    permits: Arc<Semaphore>,
    waiting: Quota<ClientNetwork>,
    /// Read by the hashing threads, which end when it is closed.
    work: mpsc::Sender<Work>,
}

/// The right to hash one password. It is given back when the hash is done, even if its client has gone: otherwise clients that hang up could
/// have any number of hashes computed at once.
#[derive(Debug)]
pub(crate) struct HashTurn {
    permit: OwnedSemaphorePermit,
    work: mpsc::Sender<Work>,
}

impl HashQueue {
    /// The first thread goes on with the memory of `hasher`. Fails if the system starts no more threads.
    pub(crate) fn start(hasher: PasswordHasher) -> io::Result<Self> {
        let (work, received) = mpsc::channel();
        let received = Arc::new(Mutex::new(received));
        let others = iter::repeat_with(PasswordHasher::default);
        for hasher in iter::once(hasher).chain(others).take(MAX_CONCURRENT_HASHES) {
            let received = Arc::clone(&received);
            thread::Builder::new()
                .name("password-hash".to_owned())
                .spawn(move || hash_all(&received, hasher))?;
        }
        Ok(Self {
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            waiting: Quota::new(MAX_WAITING, MAX_WAITING_PER_ADDRESS),
            work,
        })
    }

    /// Waits until another password may be hashed.
    pub(crate) async fn turn(&self) -> Result<HashTurn, Problem> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit
            .map(|permit| HashTurn { permit, work: self.work.clone() })
            .map_err(|_| Problem::new(Code::Internal, "passwords are not checked any more"))
    }

    /// The turn of a stranger, who is refused if too many wait. Without a client, only all of them together are limited.
    pub(crate) async fn turn_of_stranger(
        &self,
        client: Option<ClientNetwork>,
    ) -> Result<HashTurn, Problem> {
        let _place = self.waiting.take(client).map_err(|_| {
            Problem::new(Code::TooManyRequests, "too many passwords are being checked")
                .with_hint(format!("try again in {RETRY_AFTER} s"))
                .with_retry_after(RETRY_AFTER)
        })?;
        self.turn().await
    }
}

impl HashTurn {
    /// `None` if the hash was aborted.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut PasswordHasher) -> T + Send + 'static,
    ) -> Option<T> {
        let Self { permit, work: queue } = self;
        let (done, result) = oneshot::channel();
        let hash = move |hasher: &mut PasswordHasher| {
            let result = work(hasher);
            drop(permit);
            // A client that hung up wants no result.
            let _ = done.send(result);
        };
        queue.send(Box::new(hash)).ok()?;
        result.await.ok()
    }
}

/// Computes hashes until the queue is dropped. A hash that panics ends only itself.
fn hash_all(received: &Mutex<mpsc::Receiver<Work>>, mut hasher: PasswordHasher) {
    let next = || received.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(work) = next() {
        let _ = catch_unwind(AssertUnwindSafe(|| work(&mut hasher)));
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, net::IpAddr};

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn hash_of_a_client_that_hung_up_keeps_its_turn_until_it_is_done() {
        let queue = HashQueue::start(PasswordHasher::default()).unwrap();
        let (finish, finished) = mpsc::channel();
        let turn = queue.turn().await.unwrap();

        let hung_up = turn.run(move |_| finished.recv()).now_or_never();

        assert!(hung_up.is_none());
        assert_eq!(queue.permits.available_permits(), MAX_CONCURRENT_HASHES - 1);
        finish.send(()).unwrap();
        let _all = queue.permits.acquire_many(2).await.unwrap();
    }

    #[tokio::test]
    async fn memory_for_two_hashes_serves_however_many_there_are() {
        let queue = HashQueue::start(PasswordHasher::default()).unwrap();
        let mut threads = HashSet::new();

        for _ in 0..20 {
            let (first, second) = (queue.turn().await.unwrap(), queue.turn().await.unwrap());
            let id = |_: &mut PasswordHasher| thread::current().id();
            let (first, second) = tokio::join!(first.run(id), second.run(id));
            threads.extend([first.unwrap(), second.unwrap()]);
        }

        assert!(threads.len() <= MAX_CONCURRENT_HASHES, "{} threads", threads.len());
    }

    #[tokio::test]
    async fn hash_that_panics_gives_its_turn_back_and_ends_no_thread() {
        let queue = HashQueue::start(PasswordHasher::default()).unwrap();

        for _ in 0..=MAX_CONCURRENT_HASHES {
            let turn = queue.turn().await.unwrap();
            assert!(turn.run(|_| panic!("broken hash")).await.is_none());
        }

        assert_eq!(queue.turn().await.unwrap().run(|_| 7).await, Some(7));
    }

    #[tokio::test]
    async fn queue_is_bounded_for_strangers_and_for_each_client() {
        let queue = HashQueue::start(PasswordHasher::default()).unwrap();
        let stranger = |number: usize| {
            let last = u8::try_from(number / MAX_WAITING_PER_ADDRESS).unwrap();
            let client = IpAddr::from([203, 0, 113, last]).into();
            Box::pin(queue.turn_of_stranger(Some(client)))
        };
        let refusal = |number| {
            let refused = stranger(number).now_or_never().expect("it does not wait");
            refused.unwrap_err().code
        };
        let busy = [queue.turn().await.unwrap(), queue.turn().await.unwrap()];
        let mut waiting = Vec::new();
        for number in 0..MAX_WAITING {
            let mut turn = stranger(number);
            assert!((&mut turn).now_or_never().is_none(), "{number} waits");
            waiting.push(turn);
            if number == MAX_WAITING_PER_ADDRESS - 1 {
                assert_eq!(refusal(0), Code::TooManyRequests, "too many of one client");
            }
        }

        assert_eq!(refusal(MAX_WAITING), Code::TooManyRequests, "too many of all");
        let mut known = Box::pin(queue.turn());
        assert!((&mut known).now_or_never().is_none(), "a known user waits");

        drop(busy);
        for turn in waiting {
            drop(turn.await.unwrap());
        }
        drop(known.await.unwrap());
        assert!(stranger(MAX_WAITING).await.is_ok(), "the queue is empty again");
    }
}
