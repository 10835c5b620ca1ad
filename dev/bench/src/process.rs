//! Memory, threads and open files of a process, as reported by the kernel.

use std::{fs, str::FromStr, time::Duration};

use crate::BoxError;

/// Resident memory, in megabytes of a million bytes.
pub(crate) fn resident(pid: u32) -> Result<f64, BoxError> {
    Ok(megabytes(status(pid, "VmRSS")?))
}

/// Peak resident memory, in megabytes of a million bytes.
pub(crate) fn peak_resident(pid: u32) -> Result<f64, BoxError> {
    Ok(megabytes(status(pid, "VmHWM")?))
}

pub(crate) fn threads(pid: u32) -> Result<usize, BoxError> {
    status(pid, "Threads")
}

/// Processor time so far, of all threads that still run.
pub(crate) fn busy(pid: u32) -> Result<Duration, BoxError> {
    let folder = format!("/proc/{pid}/task");
    let threads =
        fs::read_dir(&folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
    // A thread that has ended meanwhile has no file any more.
    let files = threads.flatten().map(|thread| thread.path().join("schedstat"));
    let times = files.filter_map(|file| nanoseconds_in(&fs::read_to_string(file).ok()?));
    Ok(Duration::from_nanos(times.sum()))
}

/// Number of open files and sockets.
pub(crate) fn open_files(pid: u32) -> Result<usize, BoxError> {
    let folder = format!("/proc/{pid}/fd");
    let files = fs::read_dir(&folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
    Ok(files.count())
}

fn megabytes(kibibytes: f64) -> f64 {
    kibibytes * 1024.0 / 1e6
}

fn status<T: FromStr>(pid: u32, name: &str) -> Result<T, BoxError> {
    let file = format!("/proc/{pid}/status");
    let status =
        fs::read_to_string(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    Ok(number_in(&status, name).ok_or_else(|| format!("no {name} in {file}"))?)
}

/// The first number is the time on a processor.
fn nanoseconds_in(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

fn number_in<T: FromStr>(status: &str, name: &str) -> Option<T> {
    let (_, value) =
        status.lines().filter_map(|line| line.split_once(':')).find(|line| line.0 == name)?;
    value.trim().trim_end_matches("kB").trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_kb_are_kibibytes() {
        let status = "Name:\ttinykeeper\nVmRSS:\t   10000 kB\nRssAnon:\t 1 kB\nThreads:\t7\n";

        assert!((number_in(status, "VmRSS").map(megabytes).unwrap() - 10.24).abs() < 1e-9);
        assert_eq!(number_in(status, "Threads"), Some(7));
        assert_eq!(number_in::<f64>("Name:\ttinykeeper\n", "VmRSS"), None);
    }

    #[test]
    fn processor_time_is_the_first_number() {
        assert_eq!(nanoseconds_in("300 7 9\n"), Some(300));
        assert_eq!(nanoseconds_in(""), None);
    }
}
