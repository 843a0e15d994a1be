//! A user's training program as an algorithm: its command and its rules.
//!
//! This module does not run the program. This crate only knows what the program reports: see
//! [`trainer`](crate::trainer).

use serde::{Deserialize, Serialize};

use super::algorithm::within;
use super::error::LearnError;

/// Maximum number of words of a command, and maximum number of bytes of all of them.
const WORDS_MAX: usize = 1_000;
const BYTES_MAX: usize = 64 << 10;

/// A training program of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramOptions {
    /// Program and its arguments; the program must exist under this name on all agents.
    pub command: Vec<String>,
    /// Memory of the program's task, in MB. 512 by default.
    #[serde(default = "mem")]
    pub mem: u32,
    /// Seconds without a checkpoint after which the next one is requested. 5 by default.
    #[serde(default = "checkpoint_seconds")]
    pub checkpoint_seconds: f64,
    /// Seconds without a line of output after which the program counts as hanging, and the job fails. 600 by default.
    #[serde(default = "silence")]
    pub silence: f64,
}

fn mem() -> u32 {
    512
}

fn checkpoint_seconds() -> f64 {
    5.0
}

fn silence() -> f64 {
    600.0
}

impl ProgramOptions {
    pub(crate) fn check(&self) -> Result<(), LearnError> {
        let bytes: usize = self.command.iter().map(String::len).sum();
        if self.command.first().is_none_or(String::is_empty) {
            return Err(LearnError::invalid("command", "names no program"));
        }
        if self.command.len() > WORDS_MAX || bytes > BYTES_MAX {
            return Err(LearnError::invalid(
                "command",
                format!("has more than {WORDS_MAX} words or {BYTES_MAX} bytes"),
            ));
        }
        if self.command.iter().any(|word| word.contains('\0')) {
            return Err(LearnError::invalid("command", "has a word with a zero byte"));
        }
        if !(32..=16 << 20).contains(&self.mem) {
            return Err(LearnError::invalid("mem", "must be between 32 and 16777216 MB"));
        }
        within("checkpoint_seconds", self.checkpoint_seconds, 0.1, 1e6)?;
        within("silence", self.silence, 1.0, 1e7)
    }
}
