//! Runs scripts under a supervisor process, which outlives a killed or frozen worker.
//!
//! ```text
//!   worker ── starts itself again ──▶ supervisor ── starts ──▶ script, in its own process group
//!     │  ◀───── a socket ───────────────▶ │                       │
//!     │   lease T │ over │ end G          │ stops the group at T, when the socket closes, or on `end`
//!     │   status S │ unstarted E │ …      │                       │
//!     └ ◀────────────────── output of the script ─────────────────┘
//! ```
//!
//! * **Authority**: the worker, while it sends messages; the [lease](crate::execution::Lease), when it does not. A supervisor decides nothing
//!   that the worker has not told it in advance.
//! * **Lease**: it travels as a reading of the clock that both processes share, which includes the time a machine sleeps. So a message that was
//!   delayed because a process was frozen does not extend the lease. The first message is in the socket before the supervisor starts: without
//!   a lease it starts nothing.
//! * **Output**: only the script holds it; the supervisor passes on the pipes it was given and keeps neither open. When no process holds them
//!   open, the worker sends `over`, and only then the supervisor reaps the script.
//! * **The worker dies**: the socket closes and the supervisor stops the script. **The worker freezes**: its lease runs out, and the script is
//!   stopped before that.
//! * **The supervisor dies**: the worker notices and kills every process that it recognizes by its environment. If both die at the same time,
//!   the script keeps running.
//! * **The supervisor gets a signal** (from a service manager that signals all processes): it ignores it. The script may finish, as it may in
//!   a worker that drains.

mod protocol;
mod supervisor_side;
mod worker_side;

use std::path::PathBuf;

pub(super) use self::worker_side::Supervised;

/// Environment variable that makes a program a supervisor.
const SUPERVISE_VARIABLE: &str = "ELASTICJOB_SUPERVISE";

/// Turns this process into the supervisor of a script, and never returns, if the process was started for that. Otherwise returns at once, with
/// the argument for [`Node::supervisor`](crate::node::Node::supervisor).
///
/// A program has to call this first, before it starts a runtime and before it opens or prints anything: a worker starts its own program again
/// for each script, and everything before this call is repeated each time.
///
/// ```no_run
/// use elasticjob::{execution::supervise_if_requested, job::Job, node::Node};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let supervisor = supervise_if_requested();
///     let job = Job::named("backup")?.cron("0 0 3 * * ?")?.prop("script.command.line", "sh backup.sh")?;
///     let node = Node::join("zookeeper://127.0.0.1:2181/shop").supervisor(supervisor).script(job);
///     tokio::runtime::Runtime::new()?.block_on(node.run())?;
///     Ok(())
/// }
/// ```
#[must_use = "pass it to Node::supervisor, or scripts run without one"]
pub fn supervise_if_requested() -> Supervisor {
    if std::env::var_os(SUPERVISE_VARIABLE).is_some() {
        std::process::exit(supervisor_side::main());
    }
    // Not the program's path, which may hold another version by the time a script starts.
    Supervisor::program("/proc/self/exe")
}

/// A program that can supervise scripts: [this one](supervise_if_requested), or another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    program: PathBuf,
}

impl Supervisor {
    /// Another program that calls [`supervise_if_requested`] first, with the same version of this library. For tests, which cannot change their own
    /// `main`.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }
}
