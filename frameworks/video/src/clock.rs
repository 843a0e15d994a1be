//! The machine's monotonic clock and the processor clocks, in seconds.
//!
//! Only code that runs (feeds, workers, the profiler) reads them; all code that decides takes times as values.

use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Returns the seconds of this machine's monotonic clock. Values of different machines are not comparable.
pub(crate) fn monotonic() -> f64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0.0, |t| Duration::from(t).as_secs_f64())
}

/// Returns the core-seconds that a process has used; 0 if there is no such process.
pub(crate) fn of_process(id: u32) -> f64 {
    let clock = i32::try_from(id).ok().and_then(|pid| clock_getcpuclockid(Pid::from_raw(pid)).ok());
    clock.and_then(|clock| clock_gettime(clock).ok()).map_or(0.0, |t| Duration::from(t).as_secs_f64())
}
