//! The figures of this process under the names that client libraries of Prometheus use. Read when
//! metrics are requested. What the system does not provide is left out.

use std::fs;

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The position of `starttime` in `/proc/self/stat`, counted from the field after the name of the
/// program (proc(5)).
const START_TIME_FIELD: usize = 19;

/// Returns the figures of this process.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::with_prefix("process");
    let cpu = ConstCounter::new(seconds(clock_gettime(ClockId::ProcessCPUTime)));
    registry.register_with_unit("cpu", "Processor time of user and system", Unit::Seconds, cpu);
    if let Some((resident, all)) = memory_bytes() {
        let resident = ConstGauge::new(resident);
        registry.register_with_unit("resident_memory", "Memory in use", Unit::Bytes, resident);
        let help = "Memory that is mapped, in use or not";
        registry.register_with_unit("virtual_memory", help, Unit::Bytes, ConstGauge::new(all));
    }
    if let Some(open) = open_files() {
        let help = "Open files and connections";
        registry.register("open_fds", help, ConstGauge::new(open));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        let help = "The maximum number of open files and connections";
        registry.register("max_fds", help, ConstGauge::new(most));
    }
    if let Some(started_at) = started_at() {
        let started_at = ConstGauge::new(started_at);
        let help = "When the process started, since 1970";
        registry.register_with_unit("start_time", help, Unit::Seconds, started_at);
    }
    registry
}

/// Returns the memory in use and the memory that is mapped.
fn memory_bytes() -> Option<(u64, u64)> {
    let pages = fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = pages.split(' ').map(|count| count.parse::<u64>().ok());
    let (all, resident) = (pages.next()??, pages.next()??);
    let page_bytes = page_size() as u64;
    Some((resident * page_bytes, all * page_bytes))
}

/// Returns the number of open files, without the folder that is read here.
fn open_files() -> Option<u64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some(listed.saturating_sub(1))
}

/// Returns when this process started, in seconds since 1970.
fn started_at() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = start_ticks(&stat)? as f64;
    let booted_at =
        seconds(clock_gettime(ClockId::Realtime)) - seconds(clock_gettime(ClockId::Boottime));
    Some(booted_at + ticks / clock_ticks_per_second() as f64)
}

/// Returns when a process started, in clock ticks after the system.
fn start_ticks(stat: &str) -> Option<u64> {
    // The name of the program may contain spaces and brackets.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(START_TIME_FIELD)?.parse().ok()
}

fn seconds(time: Timespec) -> f64 {
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_read_from_the_line_of_a_process() {
        let line = "7 (a b) c) S 1 7 7 0 -1 4194560 9 0 0 0 3 4 0 0 20 0 5 0 98765 1 2";
        assert_eq!(start_ticks(line), Some(98_765));
        assert_eq!(start_ticks("7 (a"), None);
    }

    #[test]
    fn this_process_has_all_figures() {
        let (resident, all) = memory_bytes().unwrap();
        assert!(0 < resident && resident <= all);
        assert!(open_files().unwrap() > 0);
        assert!(started_at().unwrap() > 1e9);
    }
}
