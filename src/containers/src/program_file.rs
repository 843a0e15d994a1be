//! A program file that is kept open.
//!
//! It can be run by every user wherever the file lies, and also after the file has been replaced. Running it is in
//! `spawn/`.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open};
use rustix::io::Errno;

/// The size of a large page, on the processors that have pages of 4 KiB.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// See the module's text. Clones share the descriptor; two are equal if they do.
#[derive(Clone, Debug)]
pub struct ProgramFile(Arc<OwnedFd>);

impl ProgramFile {
    /// Opens a program that lies somewhere.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<ProgramFile> {
        let fd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(ProgramFile(Arc::new(fd)))
    }

    /// Puts a program into memory, where it cannot be changed any more. `name` is what `/proc` shows.
    ///
    /// # Errors
    /// If there is no room, or this machine runs no programs from memory (sysctl `vm.memfd_noexec`).
    pub fn in_memory(name: &CStr, program: &[u8]) -> io::Result<ProgramFile> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create(name, flags | MemfdFlags::EXEC) {
            // Kernels before 6.3 do not know the flag; there every such file may be run.
            Err(Errno::INVAL) => memfd_create(name, flags)?,
            other => other?,
        };
        let mut file = File::from(fd);
        file.write_all(program)?;
        // Whole large pages can be mapped as such.
        file.set_len(program.len().next_multiple_of(LARGE_PAGE) as u64)?;
        let fd = OwnedFd::from(file);
        fcntl_add_seals(&fd, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
        Ok(ProgramFile(Arc::new(fd)))
    }

    pub(crate) fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl PartialEq for ProgramFile {
    fn eq(&self, other: &ProgramFile) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ProgramFile {}
