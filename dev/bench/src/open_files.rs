//! The limit of open files, raised for thousands of sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, as a JVM does by itself. Child processes inherit it.
pub(crate) fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is refused, a later connection fails with a clear error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
