//! Writes a log: creates it with its header, appends batches, and trims it at the end.

use std::path::Path;

use super::{
    Error, Options,
    batch::Batch,
    disk::{self, OutputFile},
    files,
    header::{Header, Kind},
};

/// The log being written. Everything before `file.position()` is acknowledged or about to be.
#[derive(Debug)]
pub(super) struct Log {
    file: OutputFile,
    salt: u64,
    options: Options,
    /// Length of the file; it is zero from the last batch up to here.
    allocated: u64,
}

impl Log {
    /// Creates the log whose first record is `first`; `previous` is the last record before it.
    pub(super) fn create(
        dir: &Path,
        first: i64,
        previous: i64,
        options: Options,
    ) -> Result<Log, Error> {
        let header = Header { unsynced: !options.fsync, ..Header::new(Kind::Log, previous) };
        let path = files::log_path(dir, first);
        let mut file = OutputFile::create(files::with_suffix(&path, "tmp"))?;
        file.write(&header.encode())?;
        let allocated = file.position().max(options.preallocate);
        file.set_len(allocated)?;
        // Also without fsync: a log under its final name must have a complete header.
        file.sync_all()?;
        file.rename(path)?;
        disk::sync_dir(dir)?;
        Ok(Log { file, salt: header.salt, options, allocated })
    }

    /// Writes a batch; returns the number of bytes written.
    pub(super) fn write(&mut self, batch: &mut Batch) -> Result<u64, Error> {
        let start = self.file.position();
        let frame = batch.encode(self.salt, start);
        let end = start + frame.len() as u64;
        if end > self.allocated {
            // The fdatasync below also makes the new length durable, once per preallocated block.
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

    /// Finishes the log: trims it to its records and syncs it, also without `Options::fsync`, because only the last log may be
    /// torn.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.trim()?;
        self.file.sync_all()
    }

    /// Truncates the preallocated space.
    pub(super) fn trim(&mut self) -> Result<(), Error> {
        if self.allocated > self.file.position() {
            self.allocated = self.file.position();
            self.file.set_len(self.allocated)?;
        }
        Ok(())
    }
}
