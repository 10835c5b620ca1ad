//! The process group of a script.
//!
//! A script starts as the leader of its own process group; the processes it starts belong to the group unless they leave it on purpose
//! (`setsid`, a daemon). Signals go to the group, so its members need not be known.
//!
//! The id of a process group is its leader's process id, which the system may reuse once the leader was reaped and the group is empty. So the
//! leader is reaped last: until then it is at least a zombie, and its id stays valid.
//!
//! [Processes that left the group](super::stragglers) are searched for when everything has to end.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;

use super::stragglers;

/// A process group. Dropping it kills the group and all stragglers, unless the leader was [reaped](Self::mark_reaped).
pub(super) struct Group {
    leader: Option<Pid>,
    marks: Vec<Vec<u8>>,
}

impl Group {
    /// The group that this child leads. `marks` are in the environment of every process that the child starts, directly or not.
    pub(super) fn led_by(child: &Child, marks: Vec<Vec<u8>>) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { leader, marks }
    }

    /// Sends `SIGTERM` to the group.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the group and all stragglers. The leader must not have been reaped.
    pub(super) fn kill(&self) {
        if self.leader.is_none() {
            return;
        }
        self.signal(Signal::KILL);
        stragglers::kill(&self.marks);
    }

    /// Whether the leader has exited. Does not reap it.
    pub(super) fn leader_has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.leader.is_none_or(|leader| !matches!(waitid(WaitId::Pid(leader), options), Ok(None)))
    }

    /// The leader was reaped, so its id may belong to another process.
    pub(super) fn mark_reaped(&mut self) {
        self.leader = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The only possible failure is that the group is empty.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
