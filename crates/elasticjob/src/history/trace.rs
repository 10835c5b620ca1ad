//! The trace that a run is: everybody who knows the run knows its name, without anybody having to agree.

use crate::job::RunId;
#[cfg(feature = "otel")]
use crate::job::TaskId;

/// The trace of a run: 32 hexadecimal digits, never all zero.
pub(crate) fn trace(run: &RunId) -> String {
    format!("{:032x}", hash(&run.to_string()).max(1))
}

/// The span of what one instance runs of a run: 16 hexadecimal digits, never all zero.
#[cfg(feature = "otel")]
pub(super) fn part(run: &RunId, task: &TaskId) -> String {
    span(&format!("{run}#{task}"))
}

/// A span by what it is about.
#[cfg(feature = "otel")]
pub(super) fn span(name: &str) -> String {
    format!("{:016x}", (hash(name) as u64).max(1))
}

/// FNV-1a: it has to stay the same for ever, and nobody chooses these names to collide.
fn hash(name: &str) -> u128 {
    name.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}
