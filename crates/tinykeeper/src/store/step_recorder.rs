//! For tests: records the steps of this thread that change the disk.
//!
//! While recording, syncs return at once, and one step can be made to fail.

use std::{cell::RefCell, io, path::PathBuf};

#[derive(Debug, Clone)]
pub(super) enum Step {
    Create(PathBuf),
    Write { path: PathBuf, offset: u64, bytes: Vec<u8> },
    SetLen { path: PathBuf, len: u64 },
    Sync(PathBuf),
    Rename { from: PathBuf, to: PathBuf },
    Remove(PathBuf),
    SyncDir,
}

#[derive(Debug, Default)]
struct Recorder {
    steps: Vec<Step>,
    taken: usize,
    fail_at: Option<usize>,
}

thread_local! {
    static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Starts recording; step number `fail_at`, from zero, fails without effect.
pub(super) fn start(fail_at: Option<usize>) {
    RECORDER.set(Some(Recorder { fail_at, ..Recorder::default() }));
}

/// Stops recording and returns the steps, without the failed one.
pub(super) fn stop() -> Vec<Step> {
    RECORDER.take().map_or_else(Vec::new, |recorder| recorder.steps)
}

/// Number of steps that succeeded so far.
pub(super) fn recorded() -> usize {
    RECORDER.with_borrow(|recorder| recorder.as_ref().map_or(0, |recorder| recorder.steps.len()))
}

pub(super) fn is_recording() -> bool {
    RECORDER.with_borrow(Option::is_some)
}

pub(super) fn record(step: impl FnOnce() -> Step) -> io::Result<()> {
    RECORDER.with_borrow_mut(|recorder| {
        let Some(recorder) = recorder else { return Ok(()) };
        let number = recorder.taken;
        recorder.taken += 1;
        if recorder.fail_at == Some(number) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        recorder.steps.push(step());
        Ok(())
    })
}
