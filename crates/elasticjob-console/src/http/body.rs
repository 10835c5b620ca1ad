//! Receives the body of a request before anything is done for it.
//!
//! A client decides how fast a body arrives, so nothing that others need may be held meanwhile: no turn to make a change, and little memory.

use std::{error::Error, time::Duration};

use axum::body::{Body, Bytes};
use bytes::BytesMut;
use futures_util::StreamExt;

use super::{
    client_network::ClientNetwork,
    problem::{Code, Problem},
    quota::{Quota, QuotaSlot},
};

/// Limit of a request body; a configuration is far smaller.
pub(super) const MAX_BODY_BYTES: usize = 256 * 1024;
/// Limit for sending the body, from the end of the head.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// A body up to this size is always received; a login is smaller.
const SMALL_BODY_BYTES: usize = 8 * 1024;
/// Larger bodies in memory at a time: 64 MiB.
const MAX_LARGE_BODIES: usize = 256;
const MAX_LARGE_BODIES_PER_ADDRESS: usize = 32;
/// The same for clients that are not authenticated yet: 8 MiB. They must not take the room of those who are, and hardly need any.
const MAX_LARGE_BODIES_OF_STRANGERS: usize = 32;
const MAX_LARGE_BODIES_PER_STRANGER: usize = 8;

/// Limits the memory of request bodies.
#[derive(Debug)]
pub(crate) struct Bodies {
    large: Quota<ClientNetwork>,
    large_of_strangers: Quota<ClientNetwork>,
}

/// Who sends a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) client: Option<ClientNetwork>,
    /// The head of the request has valid credentials.
    pub(super) is_known: bool,
}

/// A body that has arrived completely.
#[derive(Debug)]
pub(super) struct CompleteBody {
    pub(super) bytes: Bytes,
    /// To be dropped together with the bytes.
    pub(super) large: Option<LargeBody>,
}

pub(super) type LargeBody = QuotaSlot<ClientNetwork>;

impl Default for Bodies {
    fn default() -> Self {
        Self {
            large: Quota::new(MAX_LARGE_BODIES, MAX_LARGE_BODIES_PER_ADDRESS),
            large_of_strangers: Quota::new(
                MAX_LARGE_BODIES_OF_STRANGERS,
                MAX_LARGE_BODIES_PER_STRANGER,
            ),
        }
    }
}

impl Bodies {
    /// Receives a body. Of one that is too large only the beginning is read; the extractor refuses it by its length.
    pub(super) async fn receive(
        &self,
        body: Body,
        sender: Sender,
    ) -> Result<CompleteBody, Problem> {
        let received = tokio::time::timeout(BODY_TIMEOUT, self.read(body, sender)).await;
        received.unwrap_or_else(|_| {
            let text = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            Err(Problem::new(Code::BodyTimedOut, text).with_hint("nothing was done: send it again"))
        })
    }

    async fn read(&self, body: Body, sender: Sender) -> Result<CompleteBody, Problem> {
        let mut chunks = body.into_data_stream();
        let (mut bytes, mut large) = (BytesMut::new(), None);
        while let Some(chunk) = chunks.next().await {
            bytes.extend_from_slice(&chunk.map_err(|error| incomplete(&error))?);
            if bytes.len() > MAX_BODY_BYTES {
                bytes.truncate(MAX_BODY_BYTES + 1);
                break;
            }
            if bytes.len() > SMALL_BODY_BYTES && large.is_none() {
                large = Some(self.make_room(sender)?);
            }
        }
        Ok(CompleteBody { bytes: bytes.freeze(), large })
    }

    fn make_room(&self, sender: Sender) -> Result<LargeBody, Problem> {
        let (quota, hint) = if sender.is_known {
            (&self.large, "send them one after another")
        } else {
            let hint = "log in first, or send an API token; a password in each request counts once it was checked";
            (&self.large_of_strangers, hint)
        };
        quota.take(sender.client).map_err(|_| too_many(hint))
    }
}

fn incomplete(error: &dyn Error) -> Problem {
    Problem::new(Code::Malformed, format!("the body is incomplete: {error}"))
        .with_hint("Content-Length is the number of its bytes")
}

fn too_many(hint: &str) -> Problem {
    Problem::new(Code::TooManyRequests, "too many large bodies are sent at a time")
        .with_hint(hint)
        .with_retry_after(1)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, net::IpAddr};

    use futures_util::stream;

    use super::*;

    fn stranger(last: u8) -> Sender {
        Sender { client: Some(IpAddr::from([10, 0, 0, last]).into()), is_known: false }
    }

    fn client(last: u8) -> Sender {
        Sender { is_known: true, ..stranger(last) }
    }

    #[tokio::test(start_paused = true)]
    async fn body_that_stalls_is_refused_at_its_deadline() {
        let beginning = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"{"))]);
        let body = Body::from_stream(beginning.chain(stream::pending()));

        let problem = Bodies::default().receive(body, stranger(1)).await.unwrap_err();

        assert_eq!(problem.code, Code::BodyTimedOut);
    }

    #[tokio::test]
    async fn large_bodies_of_one_client_leave_memory_for_others() {
        let bodies = Bodies::default();
        let large = || Body::from(vec![b' '; SMALL_BODY_BYTES + 1]);
        let mut received = Vec::new();
        for _ in 0..MAX_LARGE_BODIES_PER_ADDRESS {
            received.push(bodies.receive(large(), client(1)).await.unwrap());
        }

        let refused = bodies.receive(large(), client(1)).await.unwrap_err();
        assert_eq!(refused.code, Code::TooManyRequests);
        let small = Body::from(vec![b' '; SMALL_BODY_BYTES]);
        assert!(bodies.receive(small, client(1)).await.is_ok());
        assert!(bodies.receive(large(), client(2)).await.is_ok());

        drop(received);
        assert!(bodies.receive(large(), client(1)).await.is_ok());
    }

    #[tokio::test]
    async fn large_bodies_of_strangers_are_few_and_leave_room_for_others() {
        let bodies = Bodies::default();
        let large = || Body::from(vec![b' '; SMALL_BODY_BYTES + 1]);
        let mut received = Vec::new();
        for number in 0..MAX_LARGE_BODIES_OF_STRANGERS {
            let last = u8::try_from(number / MAX_LARGE_BODIES_PER_STRANGER).unwrap();
            received.push(bodies.receive(large(), stranger(last)).await.unwrap());
        }

        for last in [0, 200] {
            let refused = bodies.receive(large(), stranger(last)).await.unwrap_err();
            assert_eq!(refused.code, Code::TooManyRequests);
        }
        assert!(bodies.receive(large(), client(0)).await.is_ok(), "once it is authenticated");
    }

    #[tokio::test]
    async fn too_large_body_is_cut_where_the_extractor_refuses_it() {
        let body = Body::from(vec![b' '; 2 * MAX_BODY_BYTES]);

        let received = Bodies::default().receive(body, client(1)).await.unwrap();

        assert_eq!(received.bytes.len(), MAX_BODY_BYTES + 1);
    }
}
