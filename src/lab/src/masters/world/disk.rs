//! The modelled disk of a member's journal: the durable bytes, and a write in progress.
//!
//! `peers::Records` decides what is written, and `peers::Stored` reads it, as in the daemon. The disk of agents
//! (`world/disk.rs`) is not used: it is a tree of checkpoints, and the agent continues without it.

use std::time::Duration;

use base::Time;
use peers::{RecordError, Stored, Write};

use crate::world::DiskError;

/// Number of parts into which a write can be torn.
pub const PARTS: u32 = 8;

/// The disk of a master's host.
#[derive(Debug, Default)]
pub(super) struct Disk {
    /// Content of the journal's file; `None` if there is no file.
    file: Option<Vec<u8>>,
    /// The write in progress, which is not durable yet.
    writing: Option<Write>,
    /// Error of all writes until a time, after this many parts of each are in the file.
    refusal: Option<(DiskError, u32, Time)>,
    /// Delay of all writes until a time.
    slow: (Duration, Time),
}

impl Disk {
    /// Returns the content that the next process works with; the caller writes it to the file. An empty disk receives
    /// the number `number`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn open(&mut self, number: u64) -> Result<Stored, RecordError> {
        let stored = self.file.as_ref().map(|bytes| Stored::read(bytes)).transpose()?;
        let mut stored = stored.map_or_else(|| Stored::new(number), |(stored, _)| stored);
        stored.starts += 1;
        Ok(stored)
    }

    /// Returns the content that a process would read.
    pub fn stored(&self) -> Option<Stored> {
        self.file.as_ref().and_then(|bytes| Stored::read(bytes).ok()).map(|(stored, _)| stored)
    }

    /// Begins a write to the disk.
    ///
    /// # Errors
    /// Returns the error with which the disk refuses it. A part of the write may be in the file.
    pub fn begin(&mut self, write: Write, now: Time) -> Result<(), DiskError> {
        self.writing = Some(write);
        match self.refusal {
            Some((error, part, until)) if now < until => {
                self.tear(part.min(PARTS - 1));
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Makes the write in progress durable.
    pub fn complete(&mut self) {
        self.tear(PARTS);
    }

    /// Ends the write in progress after this many parts, as a crash does. A file that is written anew exists completely
    /// or not at all.
    pub fn tear(&mut self, part: u32) {
        match self.writing.take() {
            Some(Write::Append(bytes)) => {
                let length = bytes.len() * part.min(PARTS) as usize / PARTS as usize;
                self.file.get_or_insert_default().extend_from_slice(&bytes[..length]);
            }
            Some(Write::Anew(bytes)) if part >= PARTS / 2 => self.file = Some(bytes),
            Some(Write::Anew(_)) | None => {}
        }
    }

    /// Replaces the disk of a master by an empty one.
    pub fn replace(&mut self) {
        (self.file, self.writing) = (None, None);
    }

    pub fn is_empty(&self) -> bool {
        self.file.is_none()
    }

    /// Makes writes fail with `error` until a time.
    pub fn refuse(&mut self, error: DiskError, part: u32, until: Time) {
        self.refusal = Some((error, part, until));
    }

    /// Makes writes take longer until a time.
    pub fn slow_down(&mut self, by: Duration, until: Time) {
        self.slow = (by, until);
    }

    /// Returns by how much a write that begins now takes longer.
    pub fn delay(&self, now: Time) -> Duration {
        if now < self.slow.1 { self.slow.0 } else { Duration::ZERO }
    }

    /// Ends all faults of the disk.
    pub fn heal(&mut self) {
        (self.refusal, self.slow) = (None, (Duration::ZERO, Time::EPOCH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_durable_when_it_is_complete_and_may_be_torn_before() {
        let mut disk = Disk::default();
        let stored = disk.open(7).unwrap();
        assert_eq!((stored.disk, stored.starts, disk.is_empty()), (7, 1, true));
        disk.begin(Write::Anew(stored.file()), Time::EPOCH).unwrap();
        assert!(disk.stored().is_none());
        disk.complete();
        assert_eq!(disk.stored(), Some(stored.clone()));
        // A torn record is ignored, and a file that is written anew exists completely or not at all.
        disk.begin(Write::Append(vec![9; 16]), Time::EPOCH).unwrap();
        disk.tear(PARTS / 4);
        assert_eq!(disk.stored(), Some(stored.clone()));
        let next = disk.open(1).unwrap();
        assert_eq!((next.disk, next.starts), (7, 2));
        for (part, wanted) in [(1, &stored), (PARTS - 1, &next)] {
            disk.begin(Write::Anew(next.file()), Time::EPOCH).unwrap();
            disk.tear(part);
            assert_eq!(disk.stored().as_ref(), Some(wanted));
        }
    }

    #[test]
    fn a_disk_that_refuses_takes_a_part_at_most() {
        let mut disk = Disk::default();
        let stored = disk.open(7).unwrap();
        disk.begin(Write::Anew(stored.file()), Time::EPOCH).unwrap();
        disk.complete();
        disk.refuse(DiskError::NoSpace, PARTS, Time::from_secs(1));
        assert_eq!(disk.begin(Write::Append(vec![9; 16]), Time::EPOCH), Err(DiskError::NoSpace));
        assert_eq!(disk.stored(), Some(stored));
        assert_eq!(disk.begin(Write::Append(vec![9; 16]), Time::from_secs(1)), Ok(()));
    }
}
