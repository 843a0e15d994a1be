//! Reads /proc: the CPU, the descendants and the memory of a process.

use std::fs;
use std::time::Duration;

/// A clock tick of /proc/<pid>/stat: 100 a second on every Linux that this runs on.
const TICK: Duration = Duration::from_millis(10);

/// Returns the CPU time of a process so far, user and system, to the nanosecond, without children; zero if it is gone.
pub fn cpu(pid: u32) -> Duration {
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid.cast_signed()));
    clock.and_then(nix::time::ClockId::now).map(Duration::from).unwrap_or_default()
}

/// Returns the CPU time of a process, of all its living descendants, and of those that they waited for (in ticks of 10
/// ms).
pub fn tree_cpu(pid: u32) -> Duration {
    let all: Vec<(u32, u32, u32)> = processes().into_iter().filter_map(|p| stat(p).map(|(up, t)| (p, up, t))).collect();
    let mut family = vec![pid];
    let mut ticks = 0;
    while let Some(next) = family.pop() {
        ticks += all.iter().find(|(p, ..)| *p == next).map_or(0, |(_, _, t)| *t);
        family.extend(all.iter().filter(|(_, up, _)| *up == next).map(|(p, ..)| *p));
    }
    TICK * ticks
}

/// Returns the living children of a process.
pub fn children(pid: u32) -> Vec<u32> {
    processes().into_iter().filter(|p| stat(*p).is_some_and(|(up, _)| up == pid)).collect()
}

/// Returns the executors among the children of an agent: they run in sandboxes. The template that they are copies of
/// does not.
pub fn executors(agent: u32) -> Vec<u32> {
    let in_sandbox = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory.to_string_lossy().contains("/runs/"))
    };
    children(agent).into_iter().filter(in_sandbox).collect()
}

/// Returns the parent, and the ticks of CPU time including those of the children that were waited for.
fn stat(pid: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let ticks = fields.get(11..15)?.iter().filter_map(|f| f.parse::<u32>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the bytes of a field of /proc/<pid>/status (`VmRSS`, `VmHWM`) or of smaps_rollup (`Pss`, `Private_Dirty`).
pub fn memory(pid: u32, field: &str) -> u64 {
    let texts = ["status", "smaps_rollup"].map(|f| fs::read_to_string(format!("/proc/{pid}/{f}")).unwrap_or_default());
    let line = texts.iter().flat_map(|t| t.lines()).find(|l| l.split(':').next() == Some(field));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) << 10
}
