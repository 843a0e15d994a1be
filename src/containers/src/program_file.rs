//! A program file that is kept open.
//!
//! Every user can run it wherever the file is, and also after the file has been replaced. `spawn/` runs it.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open};
use rustix::io::Errno;

/// The size of a large page in bytes, on processors with pages of 4 KiB.
pub(crate) const LARGE_PAGE: usize = 2 << 20;

/// An open program file. Clones share the descriptor; two values are equal if they do.
#[derive(Clone, Debug)]
pub struct ProgramFile(Arc<OwnedFd>);

impl ProgramFile {
    /// Opens the program file at `path`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path) -> io::Result<ProgramFile> {
        let fd = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Ok(ProgramFile(Arc::new(fd)))
    }

    /// Copies a program into a file in memory (memfd) that cannot be changed. `name` is the name that `/proc` shows.
    ///
    /// # Errors
    /// If there is no memory, or the host runs no programs from memory (sysctl `vm.memfd_noexec`).
    pub fn in_memory(name: &CStr, program: &[u8]) -> io::Result<ProgramFile> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = match memfd_create(name, flags | MemfdFlags::EXEC) {
            // Kernels before 6.3 do not know the flag; there every file in memory may be executed.
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
