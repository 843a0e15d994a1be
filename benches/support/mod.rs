//! Helpers of the benchmarks: daemons as processes, their CPU, load from fake agents and schedulers, the printed table.
//!
//! It neither defines what is measured nor asserts times.
#![allow(dead_code, reason = "each benchmark uses its part")]

pub mod agents;
pub mod daemon;
pub mod http;
pub mod message;
pub mod pages;
pub mod proc;
pub mod report;
pub mod scheduler;
pub mod tunnel;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Returns whether `--quick` was given.
pub fn quick() -> bool {
    std::env::args().any(|a| a == "--quick")
}

/// Returns the value of `--name=value`.
pub fn option(name: &str) -> Option<String> {
    std::env::args().find_map(|a| a.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned))
}

/// Returns the value of `--name=value` as a number, otherwise `default`.
pub fn number(name: &str, default: usize) -> usize {
    option(name).and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Calls `reached` every millisecond until it returns `true`, and returns the time that this took.
///
/// # Errors
/// This did not happen within a minute.
pub fn wait_for(what: &str, mut reached: impl FnMut() -> bool) -> Result<Duration> {
    let start = Instant::now();
    while !reached() {
        if start.elapsed() > Duration::from_secs(60) {
            bail!("{what}: not within a minute");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(start.elapsed())
}

/// Returns a quantile of the values, where `share` is 0 to 1; zero if there are none. Sorts the values.
pub fn quantile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}
