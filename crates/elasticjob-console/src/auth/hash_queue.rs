//! The queue of passwords to be hashed.
//!
//! A hash is expensive, so only a few are computed at once. A request that waits for its hash holds what others need, such as a turn to make a
//! change, and a stranger can send any number of passwords. So the queue is short for strangers, and one client cannot fill it. Requests of users
//! who are known, by a session or by an address from which they logged in before, always get a place: those are few.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

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

#[derive(Debug)]
pub(crate) struct HashQueue {
    permits: Arc<Semaphore>,
    waiting: Quota<ClientNetwork>,
}

/// The right to hash one password. It is given back when the hash is done, even if its client has gone: otherwise clients that hang up could
/// have any number of hashes computed at once.
#[derive(Debug)]
pub(crate) struct HashTurn {
    _permit: OwnedSemaphorePermit,
}

impl Default for HashQueue {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
            waiting: Quota::new(MAX_WAITING, MAX_WAITING_PER_ADDRESS),
        }
    }
}

impl HashQueue {
    /// Waits until another password may be hashed.
    pub(crate) async fn turn(&self) -> Result<HashTurn, Problem> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit
            .map(|permit| HashTurn { _permit: permit })
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
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let hashed = spawn_blocking(move || {
            let result = work();
            drop(self);
            result
        });
        hashed.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::mpsc};

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn hash_of_a_client_that_hung_up_keeps_its_turn_until_it_is_done() {
        let queue = HashQueue::default();
        let (finish, finished) = mpsc::channel();
        let turn = queue.turn().await.unwrap();

        let hung_up = turn.run(move || finished.recv()).now_or_never();

        assert!(hung_up.is_none());
        assert_eq!(queue.permits.available_permits(), MAX_CONCURRENT_HASHES - 1);
        finish.send(()).unwrap();
        let _all = queue.permits.acquire_many(2).await.unwrap();
    }

    #[tokio::test]
    async fn queue_is_bounded_for_strangers_and_for_each_client() {
        let queue = HashQueue::default();
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
