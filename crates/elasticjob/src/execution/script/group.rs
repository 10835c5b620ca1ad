//! A script and everything it started.
//!
//! A script starts as the leader of a process group of its own; what it starts belongs to the group unless it leaves on purpose
//! (`setsid`, a daemon). Signals go to the group, so nobody has to know who is in it.
//!
//! A process group's id is its leader's process id, which the system gives to somebody else once the leader was waited for and nobody is left in the
//! group. So the leader is waited for last: until then it is at least a zombie, and its id is ours.
//!
//! [Those that left](super::stragglers) are looked for when everything has to end.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::Child;

use super::stragglers;

/// A process group that ends, with all that came of it, when this is dropped, unless it was [let go](Self::let_go).
pub(super) struct Group {
    leader: Option<Pid>,
    marks: Vec<Vec<u8>>,
}

impl Group {
    /// The group this child leads. `marks` stand in the environment of everything that comes of it.
    pub(super) fn led_by(child: &Child, marks: Vec<Vec<u8>>) -> Self {
        let leader = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Self { leader, marks }
    }

    /// Asks everybody in the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends everybody, in the group or out of it. The leader must not have been waited for.
    pub(super) fn kill(&self) {
        if self.leader.is_none() {
            return;
        }
        self.signal(Signal::KILL);
        stragglers::kill(&self.marks);
    }

    /// Whether the leader has ended. It is not waited for: only looked at.
    pub(super) fn leader_has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.leader.is_none_or(|leader| !matches!(waitid(WaitId::Pid(leader), options), Ok(None)))
    }

    /// The leader was waited for, so its id is no longer ours.
    pub(super) fn let_go(&mut self) {
        self.leader = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader {
            // The only failure there can be is that nobody is left.
            let _ = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
