//! Room for a thousand sockets.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes as many open files as this process may have, as a JVM does by itself. What it starts inherits that.
pub(crate) fn allow_many() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Refused at worst: then a connection fails, and says why.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
