//! A script and everything it started.
//!
//! A script starts as the leader of a process group of its own; what it starts belongs to the group unless it leaves on purpose
//! (`setsid`, a daemon). Signals go to the group, and so it is not told who is in it.
//!
//! A process group's id is its leader's process id, which the system gives to somebody else once the leader was waited for and nobody is left in the
//! group. So the leader is waited for last: until then it is at least a zombie, and its id is ours.
//!
//! Those that left the group are looked for when everything has to end: on Linux their environment tells whose they are. What also
//! has cleared its environment gets away.

use std::fs;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};
use tokio::process::Child;

/// How often to look for those that left: each look finds what was started during the last.
const LOOKS: usize = 5;

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
        for _ in 0..LOOKS {
            if self.kill_those_who_left() == 0 {
                return;
            }
        }
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

    /// Ends those that carry our marks, and says how many there were.
    fn kill_those_who_left(&self) -> usize {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.filter_map(Pid::from_raw).filter(|id| self.kill_if_ours(*id)).count()
    }

    fn kill_if_ours(&self, id: Pid) -> bool {
        // A handle first: it stays with this process, even if the id goes to another while we look.
        let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
        let Ok(environment) = fs::read(format!("/proc/{}/environ", id.as_raw_nonzero())) else {
            return false;
        };
        let mut left = self.marks.iter();
        let ours =
            left.all(|mark| environment.split(|byte| *byte == 0).any(|variable| variable == mark));
        ours && pidfd_send_signal(handle, Signal::KILL).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
