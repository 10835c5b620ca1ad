//! Those of a script's processes that left its group: with `setsid`, or as daemons.
//!
//! Their environment tells whose they are, as long as they have not cleared it. Only Linux lets us look; elsewhere they get away.

use std::{thread, time::Duration};

/// How often to look: each look finds what was started during the last.
const LOOKS: usize = 15;

/// How long between two looks: what was killed takes a moment to be gone.
const PAUSE: Duration = Duration::from_millis(2);

/// Ends everybody but us whose environment holds all of these variables.
pub(super) fn kill(marks: &[Vec<u8>]) {
    for _ in 0..LOOKS {
        if kill_those_there(marks) == 0 {
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Says because of how many to look again.
#[cfg(target_os = "linux")]
fn kill_those_there(marks: &[Vec<u8>]) -> usize {
    use rustix::process::{Pid, getpid};

    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let others = ids.filter_map(Pid::from_raw).filter(|id| *id != getpid());
    others.filter(|id| kill_if_marked(*id, marks)).count()
}

#[cfg(target_os = "linux")]
fn kill_if_marked(id: rustix::process::Pid, marks: &[Vec<u8>]) -> bool {
    use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    // A handle first: it stays with this process, even if the id goes to another while we look.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    let folder = format!("/proc/{}", id.as_raw_nonzero());
    let Ok(environment) = std::fs::read(format!("{folder}/environ")) else { return false };
    if environment.is_empty() {
        return std::fs::read_to_string(format!("{folder}/stat")).is_ok_and(|stat| starts(&stat));
    }
    let holds = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|held| held == mark);
    marks.iter().all(holds) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

/// Whether one without an environment may be about to get it: while a process becomes another program it has none. The dead and
/// the kernel's own never have one.
#[cfg(target_os = "linux")]
fn starts(stat: &str) -> bool {
    let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let (state, parent) = (fields.next(), fields.next());
    !matches!(state, Some("Z" | "X")) && !matches!(parent, Some("0" | "2"))
}

#[cfg(not(target_os = "linux"))]
fn kill_those_there(_: &[Vec<u8>]) -> usize {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_dead_and_the_kernel_are_not_waited_for() {
        assert!(starts("812 (a) b) R 811 812 812 0"));
        assert!(!starts("812 (sh) Z 811 812 812 0"));
        assert!(!starts("2 (kthreadd) S 0 0 0 0"));
        assert!(!starts("9 (kworker/0:1) I 2 0 0 0"));
    }
}
