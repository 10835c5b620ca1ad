//! Writing a log: made whole, appended batch by batch, trimmed when it is done.

use std::path::Path;

use super::{
    Error, Options,
    batch::Batch,
    disk::{self, Output},
    files,
    header::{Header, Kind},
};

/// The log being written. Everything before `file.position()` was acknowledged or is about to be.
#[derive(Debug)]
pub(super) struct Log {
    file: Output,
    salt: u64,
    options: Options,
    /// The length of the file: zeros from the last batch up to here.
    allocated: u64,
}

impl Log {
    /// Makes the log whose first record is `first`; the last record before that is `previous`.
    pub(super) fn create(
        dir: &Path,
        first: i64,
        previous: i64,
        options: Options,
    ) -> Result<Log, Error> {
        let header = Header { unsynced: !options.fsync, ..Header::new(Kind::Log, previous) };
        let path = files::log_path(dir, first);
        let mut file = Output::create(files::beside(&path, "tmp"))?;
        file.write(&header.encode())?;
        let allocated = file.position().max(options.preallocate);
        file.set_len(allocated)?;
        // Also without fsync: the header must be whole whenever the name is there.
        file.sync_all()?;
        file.rename(path)?;
        disk::sync_dir(dir)?;
        Ok(Log { file, salt: header.salt, options, allocated })
    }

    /// Writes a batch and answers how many bytes it took.
    pub(super) fn write(&mut self, batch: &mut Batch) -> Result<u64, Error> {
        let start = self.file.position();
        let frame = batch.seal(self.salt, start);
        let end = start + frame.len() as u64;
        if end > self.allocated {
            // The fdatasync below makes the new length durable too, once per block.
            self.allocated = end.max(self.allocated.saturating_add(self.options.preallocate));
            if self.allocated > end {
                self.file.set_len(self.allocated)?;
            }
        }
        self.file.write(frame)?;
        if self.options.fsync {
            self.file.sync_data()?;
        }
        Ok(end - start)
    }

    /// Ends the log for good: exactly its records, and durable also without `Options::fsync`,
    /// because damage is forgiven in the last log only.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.trim()?;
        self.file.sync_all()
    }

    /// Gives back what is allocated ahead.
    pub(super) fn trim(&mut self) -> Result<(), Error> {
        if self.allocated > self.file.position() {
            self.allocated = self.file.position();
            self.file.set_len(self.allocated)?;
        }
        Ok(())
    }
}
