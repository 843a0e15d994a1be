//! Confirms each commit of a registry's file in a second file beside it, `<registry>.commits`.
//!
//! It has two slots, one for commits with even numbers and one for those with odd numbers, so that a write that a crash
//! interrupts damages the older confirmation only. Disagreements are handled elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::digest::{BYTES, Content};
use super::file_identity::FileIdentity;
use super::loss::Confirmed;
use crate::error::StoreError;
use crate::replace::replace_file;

/// Start of a slot: the name and the version of its layout.
const MAGIC: &[u8; 8] = b"tepuiRC1";
/// Number of bytes of a slot that its checksum covers: the magic number, the commit's number, the time and the
/// content's checksum.
const CHECKED: usize = 8 + 8 + 8 + BYTES;
/// Size of a slot in bytes.
const SLOT: usize = CHECKED + BYTES;
/// Offset of the second slot: in another page than the first, so that no torn page contains both.
const STEP: usize = 4096;
/// Length of the file in bytes.
const LENGTH: usize = 2 * STEP;

/// A commit of a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// Number of commits before this one. The first one creates the file.
    pub(super) number: u64,
    /// Checksum of the registry's entries after the commit.
    pub(super) content: Content,
}

/// The content of a file of confirmations.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// The file does not exist.
    Absent,
    /// The file confirms nothing.
    Damaged,
    /// The file confirms a commit.
    Confirms {
        /// Newest confirmed commit.
        commit: Commit,
        /// Number and time of the confirmation.
        confirmed: Confirmed,
        /// Whether the other slot is valid, too. If it is not, it may have confirmed a later commit.
        is_whole: bool,
    },
}

/// A file of confirmations that is open for writing.
#[derive(Debug)]
pub(super) struct Confirmation {
    file: File,
    identity: FileIdentity,
}

/// Returns the path of the file that confirms the commits of `registry`.
pub(super) fn path_of(registry: &Path) -> PathBuf {
    let mut name = registry.as_os_str().to_owned();
    name.push(".commits");
    PathBuf::from(name)
}

impl Confirmation {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn read(path: &Path) -> Result<Reading, StoreError> {
        let mut bytes = Vec::new();
        match File::open(path).and_then(|file| file.take(LENGTH as u64 + 1).read_to_end(&mut bytes)) {
            Ok(_) => Ok(read(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Reading::Absent),
            Err(error) => Err(StoreError::io("read", path)(error)),
        }
    }

    /// Creates a file that confirms this commit, or replaces an existing one, durably.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn create(path: &Path, commit: &Commit, time: SystemTime) -> Result<Confirmation, StoreError> {
        let (mut bytes, slot) = (vec![0; LENGTH], encode(commit, time));
        for begin in [0, STEP] {
            bytes[begin..begin + SLOT].copy_from_slice(&slot);
        }
        replace_file(path, &bytes)?;
        Confirmation::open(path)
    }

    /// Opens the file at `path`, which was read before.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn open(path: &Path) -> Result<Confirmation, StoreError> {
        let file = OpenOptions::new().write(true).open(path).map_err(StoreError::io("open", path))?;
        Ok(Confirmation { identity: FileIdentity::of(path, &file)?, file })
    }

    /// Confirms a commit that is durable in the registry's file. Returns when the confirmation is durable and at its
    /// path.
    ///
    /// # Errors
    /// An error of the system, or the file is no longer at its path.
    pub(super) fn write(&mut self, commit: &Commit, time: SystemTime) -> Result<(), StoreError> {
        let begin = if commit.number.is_multiple_of(2) { 0 } else { STEP as u64 };
        let path = self.identity.path();
        self.file.write_all_at(&encode(commit, time), begin).map_err(StoreError::io("write", path))?;
        self.file.sync_data().map_err(StoreError::io("sync", path))?;
        self.identity.check().map(drop)
    }
}

fn encode(commit: &Commit, time: SystemTime) -> [u8; SLOT] {
    let millis = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut slot = [0; SLOT];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..16].copy_from_slice(&commit.number.to_le_bytes());
    slot[16..24].copy_from_slice(&u64::try_from(millis).unwrap_or(u64::MAX).to_le_bytes());
    slot[24..CHECKED].copy_from_slice(&commit.content.0);
    let check = Sha256::digest(&slot[..CHECKED]);
    slot[CHECKED..].copy_from_slice(&check);
    slot
}

fn read(bytes: &[u8]) -> Reading {
    let slots = [bytes, bytes.get(STEP..).unwrap_or_default()].map(decode);
    let is_whole = slots.iter().all(Option::is_some) && bytes.len() == LENGTH;
    match slots.into_iter().flatten().max_by_key(|(commit, _)| commit.number) {
        Some((commit, time)) => {
            Reading::Confirms { confirmed: Confirmed { number: commit.number, time }, commit, is_whole }
        }
        None => Reading::Damaged,
    }
}

fn decode(bytes: &[u8]) -> Option<(Commit, SystemTime)> {
    let (checked, check) = bytes.get(..SLOT)?.split_at_checked(CHECKED)?;
    if !checked.starts_with(MAGIC) || Sha256::digest(checked).as_slice() != check {
        return None;
    }
    let number = |at: usize| Some(u64::from_le_bytes(*checked.get(at..)?.first_chunk()?));
    let content = Content(*checked.get(24..)?.first_chunk()?);
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(number(16)?))?;
    Some((Commit { number: number(8)?, content }, time))
}
