//! The machine and date of a measurement.

use std::{fs, thread};

use elasticjob::runtime::{Clock, SystemClock};

/// One line: the date, the number and model of the processors, and the load of the last minute.
pub(crate) fn line() -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let day = SystemClock.now().strftime("%Y-%m-%d");
    format!("{day}, {processors} × {model}, load {load}")
}
