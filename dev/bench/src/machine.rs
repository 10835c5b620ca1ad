//! Where and when: numbers without that say nothing.

use std::{fs, thread};

use elasticjob::runtime::{Clock, SystemClock};

/// One line: the day, the processor, how many there are, and how many programs wanted one in the last minute.
pub(crate) fn line() -> String {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("an unknown processor", |(_, model)| model.trim());
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let day = SystemClock.now().strftime("%Y-%m-%d");
    format!("{day}, {processors} × {model}, load {load}")
}
