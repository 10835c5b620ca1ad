//! Kills processes of a script that left its process group: with `setsid`, or as daemons.
//!
//! They are recognized by their environment, unless they have cleared it. Only Linux allows that; on other systems they keep running.

use std::{thread, time::Duration};

/// Maximum number of scans: each scan finds processes that were started during the one before.
const MAX_SCANS: usize = 15;

/// Delay between two scans: a killed process takes a moment to be gone.
const SCAN_INTERVAL: Duration = Duration::from_millis(2);

/// Kills every process, except this one, whose environment contains all of these `NAME=value` pairs.
pub(super) fn kill(marks: &[Vec<u8>]) {
    for _ in 0..MAX_SCANS {
        if kill_marked(marks) == 0 {
            return;
        }
        thread::sleep(SCAN_INTERVAL);
    }
}

/// Returns the number of processes because of which another scan is needed.
#[cfg(target_os = "linux")]
fn kill_marked(marks: &[Vec<u8>]) -> usize {
    use rustix::process::{Pid, getpid};

    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = ids.filter_map(Pid::from_raw).filter(|id| *id != getpid());
    others.filter(|id| kill_if_marked(*id, marks)).count()
}

#[cfg(target_os = "linux")]
fn kill_if_marked(id: rustix::process::Pid, marks: &[Vec<u8>]) -> bool {
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    // Opened first: the handle keeps referring to this process even if its id is reused meanwhile.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    let folder = format!("/proc/{}", id.as_raw_nonzero());
    let Ok(environment) = std::fs::read(format!("{folder}/environ")) else { return false };
    if environment.is_empty() {
        return std::fs::read_to_string(format!("{folder}/stat"))
            .is_ok_and(|stat| may_be_in_exec(&stat));
    }
    let holds = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|held| held == mark);
    marks.iter().all(holds) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

/// Whether a process without an environment may be about to get one: it has none during `exec`. Zombies and kernel threads never have one.
#[cfg(target_os = "linux")]
fn may_be_in_exec(stat: &str) -> bool {
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let (state, parent) = (fields.next(), fields.next());
    !matches!(state, Some("Z" | "X")) && !matches!(parent, Some("0" | "2"))
}

#[cfg(not(target_os = "linux"))]
fn kill_marked(_: &[Vec<u8>]) -> usize {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn zombies_and_kernel_threads_are_not_in_exec() {
        assert!(may_be_in_exec("812 (a) b) R 811 812 812 0"));
        assert!(!may_be_in_exec("812 (sh) Z 811 812 812 0"));
        assert!(!may_be_in_exec("2 (kthreadd) S 0 0 0 0"));
        assert!(!may_be_in_exec("9 (kworker/0:1) I 2 0 0 0"));
    }
}
