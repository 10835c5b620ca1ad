//! Scripts under a supervisor, which outlives a killed or frozen worker.
//!
//! ```text
//!   worker ── starts itself again ──▶ supervisor ── starts ──▶ script, in a group of its own
//!     │  ◀───── a socket ───────────────▶ │                       │
//!     │   lease T │ over │ end G          │ ends the group when T comes, when the socket closes, when told to
//!     │   status S │ unstarted E │ …      │                       │
//!     └ ◀───────────────── what the script prints ────────────────┘
//! ```
//!
//! * **Who is authoritative**: the worker, while it speaks; the [lease](crate::execution::Lease), when it does not. A supervisor decides
//!   nothing that the worker has not told it in advance.
//! * **The lease** travels as a reading of the clock both ends share, which counts the time a machine sleeps; so a word that was
//!   long on its way, because one end was frozen, is not worth more than when it was said. The first word is there before the
//!   supervisor is: without a lease nothing is started.
//! * **The output** is the script's alone: the supervisor passes on what it was given and keeps nothing of it. When nobody holds it
//!   any more the worker says `over`, and only then the script is waited for.
//! * **The worker dies**: the socket closes, everything ends. **It freezes**: its lease runs out, everything ends before it has.
//! * **The supervisor dies**: the worker sees it and ends everything it can find by its environment. If both die at once, nobody is left.
//! * **Somebody asks the supervisor to end** (a service manager that signals everybody): it does not listen. What runs may finish, as
//!   it may in a worker that drains.

mod inside;
mod outside;
mod words;

use std::path::PathBuf;

pub(super) use self::outside::Supervised;

/// What makes a program a supervisor.
const ASKED: &str = "ELASTICJOB_SUPERVISE";

/// Makes this process the supervisor of a script if that is what it was started for, and then never returns. Otherwise it
/// returns at once, with what [`Node::supervisor`](crate::node::Node::supervisor) wants.
///
/// It has to be the first thing a program does, before its runtime starts and before it opens or prints anything: a worker starts its own program
/// again for each script, and all of it that lies before this call is done once more each time.
///
/// ```no_run
/// use elasticjob::{execution::supervise_if_asked, job::Job, node::Node};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let supervisor = supervise_if_asked();
///     let job = Job::named("backup")?.cron("0 0 3 * * ?")?.prop("script.command.line", "sh backup.sh")?;
///     let node = Node::join("zookeeper://127.0.0.1:2181/shop").supervisor(supervisor).script(job);
///     tokio::runtime::Runtime::new()?.block_on(node.run())?;
///     Ok(())
/// }
/// ```
#[must_use = "give it to Node::supervisor, or scripts run without one"]
pub fn supervise_if_asked() -> Supervisor {
    if std::env::var_os(ASKED).is_some() {
        std::process::exit(inside::main());
    }
    // Not its path: that may be another version by the time a script starts.
    Supervisor::program("/proc/self/exe")
}

/// A program that can be the supervisor of scripts: [this one](supervise_if_asked), or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// Another program that calls [`supervise_if_asked`] first, with the same version of this library. For tests: the `main` of
    /// a test is not theirs.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}
