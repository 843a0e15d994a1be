//! Parses `/proc/<pid>/stat` of one process.
//!
//! It reads one file and caches nothing; a whole table of processes is `table.rs`.

use std::io::{self, Read};

/// The time at which a process was started, in clock ticks since the host booted. Together with the pid it identifies a
/// process until the host reboots: a pid alone is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StartTime(pub u64);

/// Returns the start time of process `pid`; `None` if there is no such process.
pub fn start_time(pid: i32) -> Option<StartTime> {
    read_stat(pid, &mut [0; STAT_ROOM]).map(|stat| stat.started)
}

/// Returns the current time as a [`StartTime`]: a process that is started between two equal ones has that start time.
pub(crate) fn tick() -> Option<StartTime> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(now.tv_sec).ok()?, u64::try_from(now.tv_nsec).ok()?);
    let hertz = rustix::param::clock_ticks_per_second();
    Some(StartTime(seconds * hertz + nanos * hertz / 1_000_000_000))
}

/// Size of the buffer for a `stat` file: 52 numbers of at most 21 characters and a name of at most 64.
pub(crate) const STAT_ROOM: usize = 2048;

/// The fields of `stat` that this crate uses. Times are in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    pub(crate) waited_user_ticks: u64,
    pub(crate) waited_system_ticks: u64,
    pub(crate) threads: u32,
    pub(crate) started: StartTime,
    pub(crate) rss_pages: u64,
}

impl Stat {
    /// Returns whether the process has ended and has not been reaped.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads `/proc/<pid>/stat`; `None` if the process is gone or the file is invalid.
pub(crate) fn read_stat(pid: i32, buffer: &mut [u8; STAT_ROOM]) -> Option<Stat> {
    let file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = read_all(file, buffer).ok()?;
    parse(&buffer[..length])
}

fn read_all(mut file: std::fs::File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            n => length += n,
        }
    }
    Ok(length)
}

/// Parses the text of `stat`. The name, which may contain any character, ends at the last `)`; then follow the state
/// and numbers.
fn parse(text: &[u8]) -> Option<Stat> {
    let end = text.iter().rposition(|&b| b == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut state = 0;
    let mut fields = [0_i64; 22];
    for (index, word) in rest.split_ascii_whitespace().take(22).enumerate() {
        if index == 0 {
            state = *word.as_bytes().first()?;
        } else {
            // Some fields may exceed i64; none of those that are used does.
            fields[index] = word.parse().unwrap_or(0);
        }
    }
    let small = |index: usize| i32::try_from(fields[index]).ok();
    let amount = |index: usize| u64::try_from(fields[index]).unwrap_or(0);
    Some(Stat {
        state,
        parent: small(1)?,
        group: small(2)?,
        session: small(3)?,
        user_ticks: amount(11),
        system_ticks: amount(12),
        waited_user_ticks: amount(13),
        waited_system_ticks: amount(14),
        threads: u32::try_from(fields[17]).unwrap_or(0),
        started: StartTime(amount(19)),
        rss_pages: amount(21),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names() {
        let text =
            b"7 (a) b (c) S 1 7 7 0 -1 4194560 9 8 7 6 11 12 13 14 20 0 3 0 12345 1000 42 18446744073709551615 1";
        let stat = parse(text).unwrap();
        assert_eq!((stat.state, stat.parent, stat.group, stat.session), (b'S', 1, 7, 7));
        assert_eq!(
            (stat.user_ticks, stat.system_ticks, stat.waited_user_ticks, stat.waited_system_ticks),
            (11, 12, 13, 14)
        );
        assert_eq!((stat.threads, stat.started, stat.rss_pages), (3, StartTime(12345), 42));
    }

    #[test]
    fn not_a_stat_file() {
        for text in [&b""[..], b"7 (a", b"7 (a) S x"] {
            assert!(parse(text).is_none_or(|s| s.parent == 0), "{text:?}");
        }
    }

    #[test]
    fn a_tick_is_a_start_time() {
        // Most processes start and end in one tick of ten milliseconds; few do on a busy machine.
        let equal = (0..5_000).any(|_| {
            let before = tick();
            let mut child = std::process::Command::new("true").spawn().unwrap();
            let started = start_time(i32::try_from(child.id()).unwrap());
            let after = tick();
            child.wait().unwrap();
            assert!(started >= before && started <= after, "{before:?} {started:?} {after:?}");
            before == after
        });
        assert!(equal);
    }

    #[test]
    fn this_process() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let stat = read_stat(pid, &mut [0; STAT_ROOM]).unwrap();
        assert!(stat.rss_pages > 0 && stat.threads > 0 && !stat.is_zombie());
        assert_eq!(start_time(pid), Some(stat.started));
        assert_eq!(start_time(i32::MAX), None);
    }
}
