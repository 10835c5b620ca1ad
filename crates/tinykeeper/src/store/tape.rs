//! For tests: the steps that change the disk, as this thread takes them.
//!
//! While recording, nothing waits for the disk, and one step can be made to fail.

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
struct Tape {
    steps: Vec<Step>,
    taken: usize,
    fail_at: Option<usize>,
}

thread_local! {
    static TAPE: RefCell<Option<Tape>> = const { RefCell::new(None) };
}

/// Starts recording; the step with number `fail_at`, counting from zero, fails with no effect.
pub(super) fn start(fail_at: Option<usize>) {
    TAPE.set(Some(Tape { fail_at, ..Tape::default() }));
}

/// Stops recording and answers the steps taken; a failed one is not among them.
pub(super) fn stop() -> Vec<Step> {
    TAPE.take().map_or_else(Vec::new, |tape| tape.steps)
}

/// How many steps succeeded so far.
pub(super) fn recorded() -> usize {
    TAPE.with_borrow(|tape| tape.as_ref().map_or(0, |tape| tape.steps.len()))
}

pub(super) fn is_recording() -> bool {
    TAPE.with_borrow(Option::is_some)
}

pub(super) fn record(step: impl FnOnce() -> Step) -> io::Result<()> {
    TAPE.with_borrow_mut(|tape| {
        let Some(tape) = tape else { return Ok(()) };
        let number = tape.taken;
        tape.taken += 1;
        if tape.fail_at == Some(number) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        tape.steps.push(step());
        Ok(())
    })
}
