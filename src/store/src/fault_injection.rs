//! Injects errors of a disk in tests: each system call that can fail for lack of room or descriptors is a step.
//!
//! Outside of this crate's own tests a step does nothing.

use std::fs::File;
use std::io::{self, Write};

/// Marks a system call that may fail; it is called before the system call.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

/// Writes all bytes; if this step is to fail, a part of them.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    if let Err(error) = step() {
        file.write_all(&bytes[..bytes.len() / 2])?;
        return Err(error);
    }
    file.write_all(bytes)
}

#[cfg(test)]
pub(crate) use tests::{fail, heal, step};

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        /// Number of steps that succeed, number of steps that fail after them, and their error.
        static PLAN: Cell<Option<(u32, u32, i32)>> = const { Cell::new(None) };
    }

    /// Makes `bad` steps fail with this error after `good` steps.
    pub(crate) fn fail(good: u32, bad: u32, error: i32) {
        PLAN.set(Some((good, bad, error)));
    }

    /// Ends the failures. Returns whether a step has failed.
    pub(crate) fn heal(bad: u32) -> bool {
        PLAN.take().is_some_and(|(_, left, _)| left < bad)
    }

    pub(crate) fn step() -> io::Result<()> {
        match PLAN.get() {
            None | Some((_, 0, _)) => Ok(()),
            Some((0, bad, error)) => {
                PLAN.set(Some((0, bad - 1, error)));
                Err(io::Error::from_raw_os_error(error))
            }
            Some((good, bad, error)) => {
                PLAN.set(Some((good - 1, bad, error)));
                Ok(())
            }
        }
    }
}
