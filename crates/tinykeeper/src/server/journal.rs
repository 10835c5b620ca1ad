//! Between the core and the world when there is a data folder: nothing is told before it is on disk.
//!
//! One thread, because a disk blocks. It takes every batch that has gathered while it was busy, writes them with one fsync, and
//! only then sends what they hold. When the disk fails it stops, without having told anything it could not keep: the server
//! ends with the disk's error.

use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::outbox::Outbox;
use crate::store::{self, Store};

/// What the core did in one turn.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Transactions, by number.
    pub(super) records: Vec<(i64, Bytes)>,
    /// What may be sent once they are on disk, in order.
    pub(super) deliveries: Vec<(Outbox, Bytes)>,
    /// The whole tree as of the last of these records, when it is time.
    pub(super) snapshot: Option<(i64, Bytes)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.deliveries.is_empty() && self.snapshot.is_none()
    }

    /// Sends what may be sent.
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
        // Few, so that a slow disk is felt by those who write and not by the memory.
        let (sender, receiver) = mpsc::channel(16);
        let thread = std::thread::Builder::new()
            .name("tinykeeper-journal".into())
            .spawn(move || keep(store, receiver))?;
        Ok(Self { batches: sender, thread })
    }

    /// Hands a batch over; `false` when the journal has stopped because the disk failed.
    pub(super) async fn write(&self, batch: Batch) -> bool {
        self.batches.send(batch).await.is_ok()
    }

    /// Waits until the journal has stopped because the disk failed.
    pub(super) async fn stopped(&self) {
        self.batches.closed().await;
    }

    /// Waits until everything handed over is on disk, and says how it went.
    pub(super) async fn finish(self) -> Result<(), store::Error> {
        drop(self.batches);
        let thread = self.thread;
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        match joined {
            Ok(Ok(result)) => result,
            _ => Ok(()),
        }
    }
}

fn keep(mut store: Store, mut batches: mpsc::Receiver<Batch>) -> Result<(), store::Error> {
    let mut snapshots = Snapshots::default();
    let mut gathered = Vec::new();
    let mut waiting = Vec::new();
    while batches.blocking_recv_many(&mut gathered, 64) > 0 {
        for mut batch in gathered.drain(..) {
            for (zxid, record) in &batch.records {
                store.append(*zxid, record);
            }
            let snapshot = batch.snapshot.take();
            waiting.push(batch);
            if let Some((zxid, tree)) = snapshot {
                // Nothing after the snapshot may be in a log before it, so the line is drawn here.
                commit(&mut store, &mut waiting)?;
                snapshots.take(&mut store, zxid, tree)?;
            }
        }
        commit(&mut store, &mut waiting)?;
    }
    snapshots.finish();
    Ok(())
}

fn commit(store: &mut Store, waiting: &mut Vec<Batch>) -> Result<(), store::Error> {
    store
        .commit()
        .inspect_err(|error| tracing::error!(error = told(error), "the journal stops"))?;
    waiting.drain(..).for_each(Batch::deliver);
    Ok(())
}

/// Snapshots are written beside the journal, one at a time.
#[derive(Default)]
struct Snapshots {
    thread: Option<JoinHandle<()>>,
}

impl Snapshots {
    fn take(&mut self, store: &mut Store, zxid: i64, tree: Bytes) -> Result<(), store::Error> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let writer = store.begin_snapshot(zxid)?;
        let thread = std::thread::Builder::new().name("tinykeeper-snapshot".into());
        let write = move || {
            if let Err(error) = writer.write([tree]) {
                tracing::error!(
                    error = told(&error),
                    "a snapshot could not be written; the log goes on"
                );
            }
        };
        // Without a thread to spare the log simply grows until the next occasion.
        self.thread = thread.spawn(write).ok();
        Ok(())
    }

    fn finish(self) {
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// The error with what the system said about it.
fn told(error: &store::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
