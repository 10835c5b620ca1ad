//! Writes transactions to disk before their replies and notifications are sent. Used if the server has a data directory.
//!
//! The journal is a thread, because disk I/O blocks. It takes all batches that arrived while it was busy, writes them with one
//! fsync, and only then sends their output. If the disk fails, the thread stops without sending output of transactions that
//! may not be durable, and the server stops with the disk's error.

use std::{sync::Arc, thread::JoinHandle};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::outbox::Outbox;
use crate::{
    store::{self, Store},
    tree::FrozenTree,
};

/// Bytes of records and output that may be queued, including those that are being written.
const MAX_QUEUED: usize = 8 << 20;
const MAX_QUEUED_BATCHES: usize = 16;
/// Bytes of records in one commit, far below the limit of the store. A single larger record is committed alone.
const MAX_COMMIT: usize = 4 << 20;

/// The records and output of one turn of the core.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Zxid and encoded transaction, in order.
    pub(super) records: Vec<(i64, Bytes)>,
    /// Output to send once the records are on disk, in order.
    pub(super) deliveries: Vec<(Outbox, Bytes)>,
    /// The tree after the last of these records, with its zxid, if a snapshot is due.
    pub(super) snapshot: Option<(i64, FrozenTree)>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.deliveries.is_empty() && self.snapshot.is_none()
    }

    /// Size of the records and the output.
    fn bytes(&self) -> usize {
        let records = self.records.iter().map(|(_, record)| record.len());
        let deliveries = self.deliveries.iter().map(|(_, bytes)| bytes.len());
        records.chain(deliveries).sum()
    }

    /// Sends the output.
    pub(super) fn deliver(self) {
        for (outbox, bytes) in self.deliveries {
            outbox.send(bytes);
        }
    }
}

/// A batch that waits for the disk.
#[derive(Debug)]
pub(super) struct QueuedBatch {
    batch: Batch,
    /// Its part of [`MAX_QUEUED`], returned once its output is sent.
    _permit: OwnedSemaphorePermit,
}

impl QueuedBatch {
    /// Sends the output and makes room for other batches.
    pub(super) fn deliver(self) {
        self.batch.deliver();
    }
}

/// The core's end of the journal.
#[derive(Debug)]
pub(super) struct Journal {
    batches: mpsc::Sender<QueuedBatch>,
    /// Bytes that may still be queued.
    room: Arc<Semaphore>,
    thread: JoinHandle<Result<(), store::Error>>,
}

impl Journal {
    pub(super) fn start(store: Store) -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_BATCHES);
        let thread = std::thread::Builder::new()
            .name("tinykeeper-journal".into())
            .spawn(move || Committer::new(store).run(receiver))?;
        Ok(Self { batches: sender, room: Arc::new(Semaphore::new(MAX_QUEUED)), thread })
    }

    /// Queues a batch once there is room for it, so that a slow disk slows clients down instead of filling memory; `false` if
    /// the journal has stopped because the disk failed.
    pub(super) async fn write(&self, batch: Batch) -> bool {
        // A batch larger than the whole queue waits until it is the only one.
        let bytes = batch.bytes().min(MAX_QUEUED) as u32;
        let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(bytes).await else {
            return false;
        };
        self.batches.send(QueuedBatch { batch, _permit: permit }).await.is_ok()
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

/// Writes batches to the store, several in one commit.
struct Committer {
    store: Store,
    snapshots: Snapshots,
    /// Batches whose output is sent after the next commit.
    uncommitted: Vec<QueuedBatch>,
    /// Bytes of the records in the next commit.
    bytes: usize,
}

impl Committer {
    fn new(store: Store) -> Self {
        Self { store, snapshots: Snapshots::default(), uncommitted: Vec::new(), bytes: 0 }
    }

    fn run(mut self, mut batches: mpsc::Receiver<QueuedBatch>) -> Result<(), store::Error> {
        let mut received = Vec::new();
        while batches.blocking_recv_many(&mut received, 64) > 0 {
            for queued in received.drain(..) {
                self.add(queued)?;
            }
            self.commit()?;
        }
        self.snapshots.finish();
        Ok(())
    }

    fn add(&mut self, mut queued: QueuedBatch) -> Result<(), store::Error> {
        for (zxid, record) in &queued.batch.records {
            // Each record is a transaction of its own, so a commit may end within a batch.
            if self.bytes > 0 && self.bytes + record.len() > MAX_COMMIT {
                self.commit()?;
            }
            self.store.append(*zxid, record);
            self.bytes += record.len();
        }
        let snapshot = queued.batch.snapshot.take();
        self.uncommitted.push(queued);
        if let Some((zxid, tree)) = snapshot {
            // Records after the snapshot must not be in a log before it, so the records so far are committed here.
            self.commit()?;
            self.snapshots.start(&mut self.store, zxid, tree)?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), store::Error> {
        self.store
            .commit()
            .inspect_err(|error| tracing::error!(error = with_source(error), "journal stopped"))?;
        self.bytes = 0;
        self.uncommitted.drain(..).for_each(QueuedBatch::deliver);
        Ok(())
    }
}

/// Encodes and writes snapshots in a thread beside the journal, one at a time.
#[derive(Default)]
struct Snapshots {
    thread: Option<JoinHandle<()>>,
}

impl Snapshots {
    fn start(
        &mut self,
        store: &mut Store,
        zxid: i64,
        tree: FrozenTree,
    ) -> Result<(), store::Error> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        let writer = store.begin_snapshot(zxid)?;
        let thread = std::thread::Builder::new().name("tinykeeper-snapshot".into());
        let write = move || {
            let bytes = tree.to_snapshot();
            // Nodes that change from now on need not be copied.
            drop(tree);
            if let Err(error) = writer.write([bytes]) {
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
impl Journal {
    /// A journal that writes nothing, and the batches it was given.
    pub(super) fn stuck() -> (Self, mpsc::Receiver<QueuedBatch>) {
        let (batches, receiver) = mpsc::channel(MAX_QUEUED_BATCHES);
        let room = Arc::new(Semaphore::new(MAX_QUEUED));
        (Self { batches, room, thread: std::thread::spawn(|| Ok(())) }, receiver)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::unconstrained;

    use super::*;

    fn batch(zxids: std::ops::RangeInclusive<i64>, record: &Bytes) -> Batch {
        Batch { records: zxids.map(|zxid| (zxid, record.clone())).collect(), ..Batch::default() }
    }

    #[tokio::test]
    async fn writer_waits_while_the_queue_is_full() {
        let (journal, mut disk) = Journal::stuck();
        let quarter = Bytes::from(vec![b'x'; MAX_QUEUED / 4]);
        for zxid in 1..=4 {
            assert!(journal.write(batch(zxid..=zxid, &quarter)).await);
        }

        let mut fifth = std::pin::pin!(unconstrained(journal.write(batch(5..=5, &quarter))));
        let is_waiting = tokio::select! {
            biased;
            _ = &mut fifth => false,
            () = std::future::ready(()) => true,
        };
        drop(disk.recv().await);

        assert!(is_waiting);
        assert!(fifth.await);
    }

    #[tokio::test]
    async fn batch_larger_than_the_queue_is_accepted() {
        let (journal, _disk) = Journal::stuck();

        assert!(journal.write(batch(1..=1, &Bytes::from(vec![b'x'; MAX_QUEUED + 1]))).await);
    }

    #[tokio::test]
    async fn writer_learns_that_the_journal_has_stopped_while_the_queue_is_full() {
        let (journal, disk) = Journal::stuck();
        let full = Bytes::from(vec![b'x'; MAX_QUEUED]);
        assert!(journal.write(batch(1..=1, &full)).await);

        let (second, ()) = tokio::join!(journal.write(batch(2..=2, &full)), async { drop(disk) });

        assert!(!second);
    }

    #[test]
    fn commit_never_exceeds_its_limit_however_large_a_batch_is() {
        let dir = tempfile::tempdir().unwrap();
        let options = store::Options { fsync: false, ..store::Options::default() };
        let (store, _) = Store::open(dir.path(), options).unwrap();
        let mut committer = Committer::new(store);
        let record = Bytes::from(vec![b'x'; MAX_COMMIT / 4]);
        let room = Arc::new(Semaphore::new(2));

        for zxids in [1..=10, 11..=20] {
            let permit = Arc::clone(&room).try_acquire_owned().unwrap();
            committer.add(QueuedBatch { batch: batch(zxids, &record), _permit: permit }).unwrap();
            assert!(committer.bytes <= MAX_COMMIT, "{} bytes", committer.bytes);
        }
        committer.commit().unwrap();
        drop(committer);

        let (_, recovery) = Store::open(dir.path(), options).unwrap();
        assert_eq!(recovery.records.len(), 20);
        assert_eq!(room.available_permits(), 2);
    }

    #[tokio::test]
    #[should_panic(expected = "boom")]
    async fn panic_of_the_journal_reaches_the_core() {
        let (journal, _) = Journal::stuck();
        let journal = Journal { thread: std::thread::spawn(|| panic!("boom")), ..journal };

        journal.finish().await.unwrap();
    }
}
