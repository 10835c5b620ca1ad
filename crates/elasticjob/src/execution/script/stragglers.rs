//! Those of a script's processes that left its group: with `setsid`, or as daemons.
//!
//! Their environment tells whose they are, as long as they have not cleared it. Only Linux lets us look; elsewhere they get away.

/// How often to look: each look finds what was started during the last.
const LOOKS: usize = 5;

/// Ends everybody but us whose environment holds all of these variables.
pub(super) fn kill(marks: &[Vec<u8>]) {
    for _ in 0..LOOKS {
        if kill_those_there(marks) == 0 {
            return;
        }
    }
}

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
    let Ok(environment) = std::fs::read(format!("/proc/{}/environ", id.as_raw_nonzero())) else {
        return false;
    };
    let holds = |mark: &Vec<u8>| environment.split(|byte| *byte == 0).any(|held| held == mark);
    marks.iter().all(holds) && pidfd_send_signal(handle, Signal::KILL).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn kill_those_there(_: &[Vec<u8>]) -> usize {
    0
}
