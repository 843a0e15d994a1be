//! The exit status of a process: the raw status of `wait(2)` and its text.
//!
//! It waits for nothing; see `child.rs`.

use std::fmt;

/// The raw status of `wait(2)`, as it is on the wire in `Failure.status` and `WaitContainer.exit_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WaitStatus(i32);

impl WaitStatus {
    /// Creates a status from the number that `wait(2)` returns.
    pub const fn from_raw(raw: i32) -> WaitStatus {
        WaitStatus(raw)
    }

    /// Returns the status of a process that called `exit(code)`.
    pub const fn from_exit_code(code: u8) -> WaitStatus {
        WaitStatus((code as i32) << 8)
    }

    /// Returns the status of a process that `signal` ended.
    pub const fn from_signal(signal: i32, core_dumped: bool) -> WaitStatus {
        WaitStatus((signal & 0x7f) | if core_dumped { 0x80 } else { 0 })
    }

    /// Returns the number that `wait(2)` returns.
    pub const fn raw(self) -> i32 {
        self.0
    }

    /// Returns the exit code, if the process exited.
    pub const fn code(self) -> Option<i32> {
        if self.0 & 0x7f == 0 { Some((self.0 >> 8) & 0xff) } else { None }
    }

    /// Returns the signal that ended the process, if one did.
    pub const fn signal(self) -> Option<i32> {
        let signal = self.0 & 0x7f;
        if signal != 0 && signal != 0x7f { Some(signal) } else { None }
    }

    /// Returns whether a core was dumped.
    pub const fn core_dumped(self) -> bool {
        self.signal().is_some() && self.0 & 0x80 != 0
    }

    /// Returns whether the process exited with code 0.
    pub const fn success(self) -> bool {
        self.0 == 0
    }
}

/// Formats the status in Mesos's words: `exited with status 3`, `terminated with signal Killed`.
impl fmt::Display for WaitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code() {
            return write!(f, "exited with status {code}");
        }
        let signal = self.0 & 0x7f;
        match signal_text(signal) {
            Some(text) => write!(f, "terminated with signal {text}")?,
            None if (34..=64).contains(&signal) => {
                write!(f, "terminated with signal Real-time signal {}", signal - 34)?
            }
            None => write!(f, "terminated with signal Unknown signal {signal}")?,
        }
        f.write_str(if self.core_dumped() { " (core dumped)" } else { "" })
    }
}

/// The texts of `strsignal(3)` of the GNU library for signals 1 to 31, so that they are the same with every C library.
const SIGNALS: [&str; 31] = [
    "Hangup",
    "Interrupt",
    "Quit",
    "Illegal instruction",
    "Trace/breakpoint trap",
    "Aborted",
    "Bus error",
    "Floating point exception",
    "Killed",
    "User defined signal 1",
    "Segmentation fault",
    "User defined signal 2",
    "Broken pipe",
    "Alarm clock",
    "Terminated",
    "Stack fault",
    "Child exited",
    "Continued",
    "Stopped (signal)",
    "Stopped",
    "Stopped (tty input)",
    "Stopped (tty output)",
    "Urgent I/O condition",
    "CPU time limit exceeded",
    "File size limit exceeded",
    "Virtual timer expired",
    "Profiling timer expired",
    "Window changed",
    "I/O possible",
    "Power failure",
    "Bad system call",
];

/// Returns the text of a signal, such as `Killed` for 9; `None` for real-time and unknown ones.
pub fn signal_text(signal: i32) -> Option<&'static str> {
    usize::try_from(signal).ok()?.checked_sub(1).and_then(|index| SIGNALS.get(index)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for (raw, words) in [
            (0, "exited with status 0"),
            (0x300, "exited with status 3"),
            (0xff00, "exited with status 255"),
            (9, "terminated with signal Killed"),
            (15, "terminated with signal Terminated"),
            (0x8b, "terminated with signal Segmentation fault (core dumped)"),
            (40, "terminated with signal Real-time signal 6"),
        ] {
            assert_eq!(WaitStatus::from_raw(raw).to_string(), words);
        }
    }

    #[test]
    fn parts() {
        let exited = WaitStatus::from_exit_code(255);
        assert_eq!((exited.code(), exited.signal(), exited.success()), (Some(255), None, false));
        let killed = WaitStatus::from_signal(9, true);
        assert_eq!((killed.code(), killed.signal(), killed.core_dumped(), killed.raw()), (None, Some(9), true, 0x89));
    }
}
