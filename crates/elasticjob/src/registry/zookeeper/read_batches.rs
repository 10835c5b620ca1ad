//! Reads of one connection that are made at the same time share a request.
//!
//! A read that finds nothing under way is sent at once and alone. Reads that come meanwhile wait for the next answer and are then sent together, as a
//! `multiRead`, whose operations are answered one by one: a refused one concerns no other. So thousands of jobs that join, or that catch up after a
//! reconnect, cost a few hundred requests, and a single read waits for nothing. As long as full batches wait, a few of them are under way at once.
//!
//! A read that waits sees a later state than it would have seen, never an earlier one: its caller has sent nothing after it.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use tinykeeper::{
    client::{Client, Error},
    wire::{MultiResult, ReadOp, Request, Response, Stat},
};
use tokio::sync::{mpsc, oneshot};

use crate::runtime::Tasks;

/// How many reads a batch may contain. Answers of so many nodes of the largest size have to be accepted; see [`MAX_RESPONSE`].
const MAX_READS: usize = 128;
/// Largest answer to accept, in bytes. A node has at most one mebibyte.
pub(super) const MAX_RESPONSE: usize = (MAX_READS + 1) << 20;
/// How many batches may be under way at once. A batch that is not full waits until none is.
const MAX_BATCHES: usize = 4;

/// Sends the reads of a connection. Dropping it ends what it has under way.
pub(super) struct ReadBatches {
    queue: mpsc::UnboundedSender<Read>,
    _tasks: Tasks,
}

struct Read {
    op: ReadOp,
    reply: oneshot::Sender<Result<MultiResult, Error>>,
}

impl ReadBatches {
    /// Must be called on a runtime.
    pub(super) fn new(client: Client) -> Self {
        let (queue, reads) = mpsc::unbounded_channel();
        let mut tasks = Tasks::new();
        tasks.spawn(run(client, reads));
        Self { queue, _tasks: tasks }
    }

    /// A node's data and stat.
    pub(super) async fn get(&self, path: &str) -> Result<(Bytes, Stat), Error> {
        match self.read(ReadOp::GetData { path: path.to_owned() }).await? {
            MultiResult::GetData { data, stat } => Ok((data.unwrap_or_default(), stat)),
            _ => Err(Error::Unknown),
        }
    }

    /// The names of a node's children.
    pub(super) async fn children(&self, path: &str) -> Result<Vec<String>, Error> {
        match self.read(ReadOp::GetChildren { path: path.to_owned() }).await? {
            MultiResult::GetChildren { children } => Ok(children),
            _ => Err(Error::Unknown),
        }
    }

    async fn read(&self, op: ReadOp) -> Result<MultiResult, Error> {
        let (reply, answer) = oneshot::channel();
        // It fails only after a panic of the task, and then the answer says so.
        let _ = self.queue.send(Read { op, reply });
        answer.await.unwrap_or(Err(Error::Closed))
    }
}

async fn run(client: Client, mut reads: mpsc::UnboundedReceiver<Read>) {
    let mut waiting = VecDeque::new();
    let mut in_flight = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(()) = in_flight.next() => {}
            read = reads.recv() => match read {
                Some(read) => waiting.push_back(read),
                None => return,
            },
        }
        while let Ok(read) = reads.try_recv() {
            waiting.push_back(read);
        }
        while let Some(batch) = next_batch(&mut waiting, in_flight.len()) {
            in_flight.push(send(&client, batch));
        }
    }
}

/// The next batch to send, if one may be sent now. A read whose caller no longer waits is not sent.
fn next_batch(waiting: &mut VecDeque<Read>, in_flight: usize) -> Option<Vec<Read>> {
    waiting.retain(|read| !read.reply.is_closed());
    let count = waiting.len().min(MAX_READS);
    let may_send = in_flight == 0 || (count == MAX_READS && in_flight < MAX_BATCHES);
    (count > 0 && may_send).then(|| waiting.drain(..count).collect())
}

/// Sends a batch and answers each of its reads.
async fn send(client: &Client, batch: Vec<Read>) {
    if batch.len() == 1 {
        return send_singly(client, batch).await;
    }
    let ops = batch.iter().map(|read| read.op.clone()).collect();
    match client.call(Request::MultiRead(ops)).await.map(|reply| reply.response) {
        Ok(Response::Multi(results)) if results.len() == batch.len() => {
            for (read, result) in batch.into_iter().zip(results) {
                let answer = match result {
                    MultiResult::Error(code) => Err(Error::Refused { code, zxid: 0 }),
                    // Copied: it would keep the answer to the whole batch in memory.
                    MultiResult::GetData { data, stat } => {
                        let data = data.map(|data| Bytes::copy_from_slice(&data));
                        Ok(MultiResult::GetData { data, stat })
                    }
                    result => Ok(result),
                };
                let _ = read.reply.send(answer);
            }
        }
        // The server refuses to answer so much at once, for example.
        Ok(_) | Err(Error::Refused { .. }) => send_singly(client, batch).await,
        Err(error) => {
            for read in batch {
                let _ = read.reply.send(Err(error.clone()));
            }
        }
    }
}

/// Sends each read as a request of its own, all at once.
async fn send_singly(client: &Client, batch: Vec<Read>) {
    let requests = batch.into_iter().map(async |Read { op, reply }| {
        let answer = match op {
            ReadOp::GetData { path } => client
                .get(&path)
                .await
                .map(|(data, stat)| MultiResult::GetData { data: Some(data), stat }),
            ReadOp::GetChildren { path } => client
                .children(&path)
                .await
                .map(|(children, _)| MultiResult::GetChildren { children }),
        };
        let _ = reply.send(answer);
    });
    join_all(requests).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(count: usize) -> (VecDeque<Read>, Vec<oneshot::Receiver<Result<MultiResult, Error>>>) {
        (0..count)
            .map(|number| {
                let (reply, answer) = oneshot::channel();
                (Read { op: ReadOp::GetData { path: format!("/{number}") }, reply }, answer)
            })
            .unzip()
    }

    #[test]
    fn read_alone_is_sent_at_once_and_later_ones_wait_for_its_answer() {
        let (mut waiting, _answers) = reads(1);
        assert_eq!(next_batch(&mut waiting, 0).map(|batch| batch.len()), Some(1));
        assert!(next_batch(&mut waiting, 0).is_none(), "nothing waits");

        let (mut waiting, _answers) = reads(5);
        assert!(next_batch(&mut waiting, 1).is_none());
        assert_eq!(next_batch(&mut waiting, 0).map(|batch| batch.len()), Some(5));
    }

    #[test]
    fn full_batches_do_not_wait_for_each_other() {
        let (mut waiting, _answers) = reads(MAX_READS + 1);
        assert_eq!(next_batch(&mut waiting, 1).map(|batch| batch.len()), Some(MAX_READS));
        assert!(next_batch(&mut waiting, 2).is_none(), "the rest is not full");

        let (mut waiting, _answers) = reads(MAX_READS);
        assert!(next_batch(&mut waiting, MAX_BATCHES).is_none());
    }

    #[test]
    fn read_without_a_caller_is_not_sent() {
        let (mut waiting, answers) = reads(2);
        drop(answers);

        assert!(next_batch(&mut waiting, 0).is_none());
        assert!(waiting.is_empty());
    }
}
