//! Writes transactions to disk before their replies and notifications are sent. Used if the server has a data directory.
//!
//! The journal is a thread, because disk I/O blocks. It takes all batches that arrived while it was busy, writes them with one
//! fsync, and only then sends their output. If the disk fails, the thread stops without sending output of transactions that
//! may not be durable, and the server stops with the disk's error.

use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::outbox::Outbox;
use crate::store::{self, Store};

/// The records and output of one turn of the core.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Zxid and encoded transaction, in order.
    pub(super) records: Vec<(i64, Bytes)>,
    /// Output to send once the records are on disk, in order.
    pub(super) deliveries: Vec<(Outbox, Bytes)>,
    /// Zxid and snapshot of the tree after the last of these records, if a snapshot is due.
    pub(super) snapshot: Option<(i64, Bytes)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.deliveries.is_empty() && self.snapshot.is_none()
    }

    /// Sends the output.
    pub(super) fn deliver(self) {
        for (outbox, bytes) in self.deliveries {
            outbox.send(bytes);
        }
    }
}

/// The core's end of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    batches: mpsc::Sender<Batch>,
    thread: JoinHandle<Result<(), store::Error>>,
}

impl Journal {
    pub(super) fn start(store: Store) -> std::io::Result<Self> {
        // A short queue, so that a slow disk slows clients down instead of filling memory.
        let (sender, receiver) = mpsc::channel(16);
        let thread = std::thread::Builder::new()
            .name("tinykeeper-journal".into())
            .spawn(move || run(store, receiver))?;
        Ok(Self { batches: sender, thread })
    }

    /// Queues a batch; `false` if the journal has stopped because the disk failed.
    pub(super) async fn write(&self, batch: Batch) -> bool {
        self.batches.send(batch).await.is_ok()
    }

    /// Waits until the journal stops because the disk failed.
    pub(super) async fn stopped(&self) {
        self.batches.closed().await;
    }

    /// Waits until all queued batches are on disk, and returns the journal's result. Panics if the journal has panicked.
    pub(super) async fn finish(self) -> Result<(), store::Error> {
        drop(self.batches);
        let thread = self.thread;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(result)) => result,
            // The core's task panics too, so that the server ends with an error.
            Ok(Err(payload)) => std::panic::resume_unwind(payload),
            Err(error) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                // The runtime is shutting down.
                Err(_) => Ok(()),
            },
        }
    }
}

fn run(mut store: Store, mut batches: mpsc::Receiver<Batch>) -> Result<(), store::Error> {
    let mut snapshots = Snapshots::default();
    let mut received = Vec::new();
    let mut uncommitted = Vec::new();
    while batches.blocking_recv_many(&mut received, 64) > 0 {
        for mut batch in received.drain(..) {
            for (zxid, record) in &batch.records {
                store.append(*zxid, record);
            }
            let snapshot = batch.snapshot.take();
            uncommitted.push(batch);
            if let Some((zxid, tree)) = snapshot {
                // Records after the snapshot must not be in a log before it, so the records so far are committed here.
                commit(&mut store, &mut uncommitted)?;
                snapshots.start(&mut store, zxid, tree)?;
            }
        }
        commit(&mut store, &mut uncommitted)?;
    }
    snapshots.finish();
    Ok(())
}

fn commit(store: &mut Store, uncommitted: &mut Vec<Batch>) -> Result<(), store::Error> {
    store
        .commit()
        .inspect_err(|error| tracing::error!(error = with_source(error), "journal stopped"))?;
    uncommitted.drain(..).for_each(Batch::deliver);
    Ok(())
}

/// Writes snapshots in a thread beside the journal, one at a time.
#[derive(Default)]
struct Snapshots {
    thread: Option<JoinHandle<()>>,
}

impl Snapshots {
    fn start(&mut self, store: &mut Store, zxid: i64, tree: Bytes) -> Result<(), store::Error> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let writer = store.begin_snapshot(zxid)?;
        let thread = std::thread::Builder::new().name("tinykeeper-snapshot".into());
        let write = move || {
            if let Err(error) = writer.write([tree]) {
                tracing::error!(error = with_source(&error), "snapshot not written, log continues");
            }
        };
        // If no thread can be started, the log grows until the next snapshot is due.
        self.thread = thread.spawn(write).ok();
        Ok(())
    }

    fn finish(self) {
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// The error text, followed by that of its source.
fn with_source(error: &store::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[should_panic(expected = "boom")]
    async fn panic_of_the_journal_reaches_the_core() {
        let (batches, _) = mpsc::channel(1);
        let journal = Journal { batches, thread: std::thread::spawn(|| panic!("boom")) };

        journal.finish().await.unwrap();
    }
}
