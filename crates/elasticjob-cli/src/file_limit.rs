//! How many files this process may open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files up to `wanted`, as far as the system allows. Returns the limit.
///
/// Shells and service managers usually set a low limit that a process may raise: it protects programs that use `select`, and this one does not.
pub(crate) fn raise_to(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let as_files = |limit: Option<u64>| {
        limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    };
    let raised = wanted.min(as_files(maximum));
    if raised <= as_files(current) {
        return as_files(current);
    }
    let limit = Rlimit { current: u64::try_from(raised).ok(), maximum };
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => raised,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            as_files(current)
        }
    }
}
