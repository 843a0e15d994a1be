//! Prints the table of results: measured and promised figures, and the machine.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::time::Duration;

/// A table that is printed row by row.
pub struct Report;

impl Report {
    /// Prints the question, the machine and the head of the table.
    pub fn new(question: &str) -> Report {
        println!("{question}");
        println!("{}", machine());
        row("what", "measured", "at least now", "promise", "Mesos 1.11");
        Report
    }

    /// Prints a figure. A cell is empty where nothing is promised, or known of Mesos.
    pub fn row(&self, what: &str, measured: &str, least: &str, promise: &str, mesos: &str) {
        row(what, measured, least, promise, mesos);
    }

    /// Prints a figure that explains the others.
    pub fn note(&self, what: &str, measured: &str) {
        row(what, measured, "", "", "");
    }
}

fn row(what: &str, measured: &str, least: &str, promise: &str, mesos: &str) {
    println!("| {what:<62} | {measured:>22} | {least:>12} | {promise:>12} | {mesos:>16} |");
}

/// Returns processor, cores, memory, kernel, and load of the machine.
pub fn machine() -> String {
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let meminfo = read("/proc/meminfo");
    let memory = meminfo.split_whitespace().nth(1).and_then(|v| v.parse::<u64>().ok()).unwrap_or(0) >> 20;
    let kernel = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("?");
    format!("machine: {model}, {cores} cores, {memory} GiB, Linux {}; load average {load}", kernel.trim())
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Formats a time in milliseconds, with as many decimals as it needs.
pub fn millis(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.0} ms") }
}

/// Formats the microseconds of each of `count`.
pub fn each(time: Duration, count: usize) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6 / count.max(1) as f64)
}

/// Formats a rate per second.
pub fn rate(count: usize, time: Duration) -> String {
    format!("{:.0} /s", count as f64 / time.as_secs_f64())
}

/// Formats an amount of bytes.
pub fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
