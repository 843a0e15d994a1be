//! Converts a [`Spec`] to the data of the child stage: C strings, pointers to them, open files. All memory that the new
//! process touches before it runs its program is allocated here, in the parent.
//!
//! No process is created here.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::SpawnError;
use super::mounts;
use crate::cgroups::Entry;
use crate::isolation::{Capabilities, FilterStep, Isolation};
use crate::lookup::candidates;
use crate::{Directory, Output, Program, ProgramFile, Rlimit, RlimitKind, Spec, User};

/// A null-terminated array of C strings, as execve takes it.
pub(super) struct CArray {
    pointers: Vec<*const libc::c_char>,
    // Owns the bytes that the pointers point to; a move of a CString does not move its bytes.
    _texts: Vec<CString>,
}

impl CArray {
    fn new(texts: Vec<CString>) -> CArray {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        CArray { pointers, _texts: texts }
    }

    pub(super) fn as_ptr(&self) -> *const *const libc::c_char {
        self.pointers.as_ptr()
    }

    /// Returns the pointers to the strings without the null at the end.
    pub(super) fn items(&self) -> &[*const libc::c_char] {
        self.pointers.split_last().map_or(&[], |(_, items)| items)
    }
}

/// The three standard streams of a spec, opened.
pub(crate) struct Streams([Stream; 3]);

impl Streams {
    /// Opens the three streams.
    ///
    /// # Errors
    /// The file that cannot be opened.
    pub(crate) fn open(spec: &Spec) -> Result<Streams, SpawnError> {
        match &spec.stdin {
            Some(fd) => Streams::with_input(spec, fd),
            None => Streams::with_input(spec, &Arc::new(null_input()?)),
        }
    }

    /// Opens standard output and error; standard input is `input`.
    ///
    /// # Errors
    /// As [`Streams::open`].
    pub(crate) fn with_input(spec: &Spec, input: &Arc<OwnedFd>) -> Result<Streams, SpawnError> {
        let owner = spec.user.as_ref().filter(|user| !user.is_current());
        let input = stream(&Output::Fd(Arc::clone(input)), None, None)?;
        let directory = spec.directory.as_ref();
        Ok(Streams([input, stream(&spec.stdout, owner, directory)?, stream(&spec.stderr, owner, directory)?]))
    }

    /// Returns input, output and error; those that are inherited are the caller's own.
    pub(crate) fn each(&self) -> [BorrowedFd<'_>; 3] {
        let own = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
        std::array::from_fn(|index| match &self.0[index] {
            Stream::Inherit => own[index],
            Stream::Owned(fd) => fd.as_fd(),
            Stream::Shared(fd) => fd.as_fd(),
        })
    }
}

/// Opens `/dev/null` for reading.
pub(crate) fn null_input() -> Result<OwnedFd, SpawnError> {
    let path = Path::new("/dev/null");
    let null = OpenOptions::new().read(true).open(path).and_then(|file| above_standard(file.into()));
    null.map_err(|source| SpawnError::Output { path: path.to_owned(), source })
}

/// A file that becomes a standard stream.
enum Stream {
    Inherit,
    Owned(OwnedFd),
    Shared(Arc<OwnedFd>),
}

impl Stream {
    /// Returns the descriptor to copy; -1 if the stream is inherited.
    fn raw(&self) -> RawFd {
        match self {
            Stream::Inherit => -1,
            Stream::Owned(fd) => fd.as_raw_fd(),
            Stream::Shared(fd) => fd.as_raw_fd(),
        }
    }
}

/// The data that the child stage reads.
pub(crate) struct Prepared {
    pub(super) program: String,
    pub(super) files: CArray,
    /// The program, if it is given as an open file.
    pub(super) open: Option<ProgramFile>,
    pub(super) argv: CArray,
    /// `/bin/sh`, the file, the arguments: for a file in a format that the kernel does not know. The child sets the
    /// second element to the candidate.
    pub(super) script_argv: Vec<*const libc::c_char>,
    pub(super) environment: CArray,
    pub(super) working_dir: Option<CString>,
    /// The working directory, if it is open already.
    pub(super) directory: Option<Arc<OwnedFd>>,
    streams: Streams,
    pub(super) user: Option<User>,
    pub(super) new_session: bool,
    pub(super) die_with_parent: bool,
    pub(super) rlimits: Vec<(RlimitKind, libc::rlimit64)>,
    pub(super) isolation: Isolated,
}

/// The isolation of a spec, prepared for the child.
pub(super) struct Isolated {
    pub(super) enter: Option<Arc<OwnedFd>>,
    /// The namespaces of `enter` to enter: flags of setns.
    pub(super) enter_flags: libc::c_int,
    /// Namespaces to create with the process: flags of clone.
    pub(super) new: libc::c_int,
    /// Namespaces to create after those of another process were entered: flags of unshare.
    pub(super) new_inside: libc::c_int,
    /// Whether the process has a mount namespace of its own.
    pub(super) mounts_of_its_own: bool,
    pub(super) network: Option<Arc<OwnedFd>>,
    pub(super) cgroup: Option<Entry>,
    pub(super) tasks: Option<Arc<OwnedFd>>,
    pub(super) mounts: Vec<mounts::Prepared>,
    pub(super) root: Option<CString>,
    pub(super) hostname: Option<CString>,
    pub(super) capabilities: Option<Capabilities>,
    pub(super) no_new_privileges: bool,
    pub(super) seccomp: Vec<Arc<[FilterStep]>>,
    pub(super) terminal: bool,
    pub(super) oom_score: Option<CString>,
}

impl Isolated {
    fn new(isolation: &Isolation) -> Result<Isolated, SpawnError> {
        // A new mount namespace is a copy of the process's current one: it is created after another one was entered.
        let inside = isolation.enter.as_ref().map_or(0, |_| isolation.enter_which.flags() & libc::CLONE_NEWNS);
        let name = |text: &str, item| c_string(OsString::from(text), item);
        Ok(Isolated {
            enter: isolation.enter.clone(),
            enter_flags: isolation.enter_which.flags(),
            new: isolation.namespaces.flags() & !inside,
            new_inside: isolation.namespaces.flags() & inside,
            mounts_of_its_own: isolation.namespaces.mount,
            network: isolation.network.clone(),
            cgroup: isolation.cgroup.clone(),
            tasks: isolation.tasks.clone(),
            mounts: mounts::prepare(&isolation.mounts)?,
            root: match &isolation.root {
                Some(path) => Some(c_string(path.as_os_str().to_owned(), "root directory")?),
                None => None,
            },
            hostname: isolation.hostname.as_deref().map(|text| name(text, "host name")).transpose()?,
            capabilities: isolation.capabilities,
            no_new_privileges: isolation.no_new_privileges,
            seccomp: isolation.seccomp.clone(),
            terminal: isolation.terminal,
            oom_score: isolation.oom_score.map(|score| name(&score.to_string(), "score")).transpose()?,
        })
    }

    /// Returns whether the isolation needs only a small stack in the child: it makes no mounts and restricts no rights.
    pub(super) fn is_little(&self) -> bool {
        !self.mounts_of_its_own && self.root.is_none() && self.capabilities.is_none() && self.seccomp.is_empty()
    }

    /// Returns whether the child must be a copy of this process: no other can be created in a group of version 2.
    pub(super) fn needs_a_copy(&self) -> bool {
        matches!(self.cgroup, Some(Entry::Born(_)))
    }
}

impl Prepared {
    pub(crate) fn new(spec: &Spec) -> Result<Prepared, SpawnError> {
        let (files, argv) = match &spec.program {
            Program::Shell(script) => (vec!["/bin/sh".into()], vec!["sh".into(), "-c".into(), script.clone()]),
            Program::Argv { file, argv } if argv.is_empty() => {
                (candidates(file, &spec.environment), vec![file.clone()])
            }
            Program::Argv { file, argv } => (candidates(file, &spec.environment), argv.clone()),
            Program::Open { argv, .. } => (Vec::new(), argv.clone()),
        };
        let open = match &spec.program {
            Program::Open { file, .. } => Some(file.clone()),
            _ => None,
        };
        let program = match &spec.program {
            Program::Shell(_) => "/bin/sh".to_owned(),
            Program::Argv { file, .. } => file.to_string_lossy().into_owned(),
            Program::Open { argv, .. } => argv.first().map_or_else(String::new, |a| a.to_string_lossy().into_owned()),
        };
        let argv = c_array(argv, "argument list")?;
        let script_argv = [c"/bin/sh".as_ptr(), ptr::null()].into_iter().chain(argv.items().iter().skip(1).copied());
        let script_argv = script_argv.chain([ptr::null()]).collect();
        let user = spec.user.clone().filter(|user| !user.is_current());
        let streams = Streams::open(spec)?;
        Ok(Prepared {
            files: c_array(files, "name of the program")?,
            open,
            script_argv,
            argv,
            environment: c_array(environment(&spec.environment), "environment")?,
            working_dir: match &spec.working_dir {
                Some(path) => Some(c_string(path.as_os_str().to_owned(), "working directory")?),
                None => None,
            },
            directory: working_directory(spec).cloned(),
            streams,
            user,
            new_session: spec.new_session,
            die_with_parent: spec.die_with_parent,
            rlimits: spec.rlimits.iter().map(rlimit).collect(),
            isolation: Isolated::new(&spec.isolation)?,
            program,
        })
    }

    /// Returns the descriptors for standard input, output and error; -1 leaves the caller's.
    pub(super) fn stream_fds(&self) -> [RawFd; 3] {
        self.streams.0.each_ref().map(Stream::raw)
    }
}

/// Returns the open working directory, if the process may use it without a lookup: with mounts and a root of its own
/// its path may lead elsewhere.
pub(crate) fn working_directory(spec: &Spec) -> Option<&Arc<OwnedFd>> {
    let isolation = &spec.isolation;
    let elsewhere = isolation.namespaces.mount || isolation.root.is_some() || isolation.enter.is_some();
    let directory =
        spec.directory.as_ref().filter(|directory| !elsewhere && spec.working_dir.as_ref() == Some(&directory.path));
    directory.map(|directory| &directory.fd)
}

fn c_string(text: OsString, item: &'static str) -> Result<CString, SpawnError> {
    CString::new(text.into_vec()).map_err(|_| SpawnError::Nul { item })
}

fn c_array(texts: Vec<OsString>, item: &'static str) -> Result<CArray, SpawnError> {
    let texts: Result<Vec<CString>, SpawnError> = texts.into_iter().map(|text| c_string(text, item)).collect();
    Ok(CArray::new(texts?))
}

/// Returns `NAME=value` with the last value of each name, in the order of the names' first places.
fn environment(variables: &[(OsString, OsString)]) -> Vec<OsString> {
    let mut names: std::collections::BTreeMap<&OsStr, usize> = std::collections::BTreeMap::new();
    let mut texts: Vec<OsString> = Vec::with_capacity(variables.len());
    for (name, value) in variables {
        let mut text = OsString::with_capacity(name.len() + value.len() + 1);
        text.push(name);
        text.push("=");
        text.push(value);
        match names.get(name.as_os_str()) {
            Some(&index) => texts[index] = text,
            None => {
                names.insert(name, texts.len());
                texts.push(text);
            }
        }
    }
    texts
}

fn stream(output: &Output, owner: Option<&User>, directory: Option<&Directory>) -> Result<Stream, SpawnError> {
    let at = |path: &Path, source| SpawnError::Output { path: path.to_owned(), source };
    match output {
        Output::Inherit => Ok(Stream::Inherit),
        Output::Fd(fd) if fd.as_raw_fd() > 2 => Ok(Stream::Shared(Arc::clone(fd))),
        Output::Fd(fd) => {
            let copy = fd.try_clone().and_then(above_standard).map_err(|e| at(Path::new("a standard stream"), e))?;
            Ok(Stream::Owned(copy))
        }
        Output::Null => {
            let path = Path::new("/dev/null");
            let file = OpenOptions::new().write(true).open(path).map_err(|e| at(path, e))?;
            Ok(Stream::Owned(above_standard(file.into()).map_err(|e| at(path, e))?))
        }
        Output::File(path) => {
            let file = open_output(path, owner, directory).map_err(|e| at(path, e))?;
            Ok(Stream::Owned(above_standard(file.into()).map_err(|e| at(path, e))?))
        }
    }
}

/// Opens a file for a process's output for appending, and creates it if it is missing. A link or anything but a regular
/// file is rejected.
///
/// # Errors
/// The path is not a regular file, or an error of the system.
pub fn open_for_output(path: &Path) -> io::Result<File> {
    open_output(path, None, None)
}

/// Opens a file for a process's output for appending, and creates it for `owner` if it is missing. It is opened
/// relative to `directory` if that is its parent.
pub(crate) fn open_output(path: &Path, owner: Option<&User>, directory: Option<&Directory>) -> io::Result<File> {
    const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL);
    let directory = directory.filter(|directory| path.parent() == Some(&directory.path));
    // Most files are new, and a file that was just created needs no check.
    let file = match directory.zip(path.file_name()) {
        Some((directory, name)) => rustix::fs::openat(&directory.fd, name, APPENDED | NEW, NEW_MODE).map(File::from),
        None => open_for_appending(path, NEW),
    };
    let file = match file {
        Err(Errno::EXIST) => open_old_output(path)?,
        new => new?,
    };
    if let Some(user) = owner {
        std::os::unix::fs::fchown(&file, Some(user.uid), Some(user.gid))?;
    }
    Ok(file)
}

fn open_old_output(path: &Path) -> io::Result<File> {
    // Nonblocking, and only regular files: in the user's directory the name may lead to a pipe without a reader.
    let file = open_for_appending(path, OFlags::NONBLOCK)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    Ok(file)
}

const APPENDED: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_MODE: Mode = Mode::from_raw_mode(0o644);

/// Opens a file for appending. Links are followed only in directories of this user.
fn open_for_appending(path: &Path, more: OFlags) -> Result<File, Errno> {
    let flags = APPENDED | more;
    let mode = if more.contains(OFlags::CREATE) { NEW_MODE } else { Mode::empty() };
    let opened = match rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        // The path contains a link, or the kernel cannot tell.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {
            let directory = crate::directories::open_directory(path.parent().unwrap_or(Path::new("")), false)?;
            rustix::fs::openat(&directory, path.file_name().ok_or(Errno::INVAL)?, flags, mode)?
        }
        outcome => outcome?,
    };
    Ok(opened.into())
}

/// Duplicates a descriptor to a number above 2: the child stage copies over 0, 1 and 2 one after the other.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

fn rlimit(limit: &Rlimit) -> (RlimitKind, libc::rlimit64) {
    let number = |value: Option<u64>| value.unwrap_or(libc::RLIM64_INFINITY);
    (limit.kind, libc::rlimit64 { rlim_cur: number(limit.soft), rlim_max: number(limit.hard) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_variables_win() {
        let variables: Vec<(OsString, OsString)> =
            [("A", "1"), ("B", ""), ("A", "2=3")].map(|(n, v)| (n.into(), v.into())).into();
        assert_eq!(environment(&variables), ["A=2=3", "B="]);
    }

    #[test]
    fn output_goes_to_regular_files() {
        let directory = std::env::temp_dir().join(format!("tepui-output-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let at = |name: &str| directory.join(name);
        for text in ["a", "b"] {
            std::io::Write::write_all(&mut open_for_output(&at("file")).unwrap(), text.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "ab");
        std::os::unix::fs::symlink(at("elsewhere"), at("link")).unwrap();
        assert!(open_for_output(&at("link")).is_err() && !at("elsewhere").exists());
        // A pipe without a reader does not block, and one with a reader is rejected, too.
        rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(open_for_output(&at("pipe")).is_err());
        let _reader = File::options().read(true).write(true).open(at("pipe")).unwrap();
        assert!(open_for_output(&at("pipe")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn nul_bytes_are_named() {
        let program = Program::Shell("a\0b".into());
        let error = Prepared::new(&Spec::new(program)).err().unwrap();
        assert_eq!(error.to_string(), "The argument list contains a NUL byte");
    }
}
