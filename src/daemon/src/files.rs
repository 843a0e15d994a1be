//! Reads sandboxes and logs through virtual paths (docs/mesos/endpoints.md), for `/files/*`, LIST_FILES and READ_FILE.
//!
//! HTTP is elsewhere. Files outside an attached directory cannot be reached.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use base::lock;

/// Maximum number of bytes of one read: 16 pages.
pub const READ_LIMIT: u64 = 16 * 4096;
/// Maximum size of a file that is read as a whole, in bytes.
const WHOLE_LIMIT: u64 = 64 << 20;

/// An error when a virtual path is read; `Display` is the body of the response.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// 404: nothing is attached at the path, or there is no such file.
    #[error("")]
    NotFound,
    /// 400: the request is invalid, or not possible for this kind of file.
    #[error("{0}\n")]
    Refused(String),
    /// 500: an error of the system.
    #[error("{0}\n")]
    Io(String),
}

impl FilesError {
    /// Returns the HTTP status of the error.
    pub fn status(&self) -> u16 {
        match self {
            FilesError::NotFound => 404,
            FilesError::Refused(_) => 400,
            FilesError::Io(_) => 500,
        }
    }
}

impl From<std::io::Error> for FilesError {
    fn from(error: std::io::Error) -> FilesError {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => FilesError::NotFound,
            _ => FilesError::Io(error.to_string()),
        }
    }
}

/// An entry of a directory, as in `FileInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// The requested path, a slash, and the name.
    pub path: String,
    /// Number of hard links.
    pub nlink: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change, in whole seconds since the epoch.
    pub modified: Duration,
    /// Mode of stat(2): type and permissions.
    pub mode: u32,
    /// Name of the owner, or the number as text.
    pub user: String,
    /// Name of the group, or the number as text.
    pub group: String,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Size of the whole file in bytes.
    pub size: u64,
    /// Offset of `data` in the file; the size, if the request had no offset.
    pub offset: u64,
    /// Content, at most [`READ_LIMIT`] bytes.
    pub data: Vec<u8>,
}

/// A file that is opened to be sent.
#[derive(Debug)]
pub struct Download {
    /// Name to save it under.
    pub name: String,
    /// The file, opened for reading.
    pub file: File,
    /// Size in bytes.
    pub size: u64,
}

/// The attached paths of a daemon. Shared by all connections.
#[derive(Debug, Default)]
pub struct Files {
    attached: Mutex<BTreeMap<String, PathBuf>>,
}

impl Files {
    /// Attaches `real` to `virtual_path`, and replaces what was attached there.
    pub fn attach(&self, virtual_path: &str, real: &Path) {
        lock(&self.attached).insert(trimmed(virtual_path).to_owned(), real.to_owned());
    }

    /// Detaches all virtual paths that are, or are below, the directory `virtual_path`.
    pub fn detach_below(&self, virtual_path: &str) {
        let (path, mut attached) = (trimmed(virtual_path), lock(&self.attached));
        attached.remove(path);
        let inside = format!("{path}/");
        while let Some(name) = attached.range(inside.clone()..).next().map(|(name, _)| name.clone())
            && name.starts_with(&inside)
        {
            attached.remove(&name);
        }
    }

    /// Returns all virtual paths with their real ones, for `/files/debug`.
    pub fn list(&self) -> Vec<(String, PathBuf)> {
        lock(&self.attached).iter().map(|(name, real)| (name.clone(), real.clone())).collect()
    }

    /// Finds the file of a virtual path: the longest attached prefix decides. The file is held by a path descriptor,
    /// not opened: a task may replace it at any time.
    ///
    /// # Errors
    /// 404 if nothing is attached there or the file is missing, 400 if the path leads out of the attached directory.
    fn find(&self, path: &str) -> Result<Found, FilesError> {
        match (self.find_attached(path), task_of_a_pod(path)) {
            (Err(FilesError::NotFound), Some(task)) => self.find_attached(&task),
            (found, _) => found,
        }
    }

    fn find_attached(&self, path: &str) -> Result<Found, FilesError> {
        let (prefix, root) = self.attachment(path).ok_or(FilesError::NotFound)?;
        beneath(root, &trimmed(path)[prefix.len()..], path)
    }

    /// Returns the longest attached prefix of a path, and the real path attached to it.
    fn attachment<'p>(&self, path: &'p str) -> Option<(&'p str, PathBuf)> {
        let mut prefix = trimmed(path);
        loop {
            let attached = lock(&self.attached).get(prefix).cloned();
            if let Some(root) = attached {
                return Some((prefix, root));
            }
            match prefix.rfind('/') {
                Some(cut) if cut > 0 => prefix = trimmed(&prefix[..cut]),
                _ => return None,
            }
        }
    }

    /// Returns the attached path that a path is below, whether or not there is such a file; `None` if nothing would be
    /// found.
    pub fn attached_above(&self, path: &str) -> Option<String> {
        let found = |path: &str| self.attachment(path).map(|(prefix, _)| prefix.to_owned());
        found(path).or_else(|| found(&task_of_a_pod(path)?))
    }

    /// Returns the entries of a directory, sorted by path; empty for a file.
    ///
    /// # Errors
    /// 404 if nothing is attached there or the file is missing, 400 if the path leads out of the attached directory.
    pub fn browse(&self, path: &str) -> Result<Vec<FileInfo>, FilesError> {
        let found = self.find(path)?;
        if !found.file.metadata()?.is_dir() {
            return Ok(Vec::new());
        }
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/self/fd/{}", found.file.as_raw_fd()))? {
            let entry = entry?;
            let name = entry.file_name();
            // For a link that leads out, the link itself is described. A file that vanishes meanwhile is not listed.
            let target = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => containers::find_beneath(&found.root, &found.relative.join(&name)),
                _ => Ok(None),
            };
            let metadata = match target {
                Ok(Some(target)) => target.metadata(),
                _ => entry.metadata(),
            };
            if let Ok(metadata) = metadata {
                entries.push(info(&format!("{}/{}", trimmed(path), name.to_string_lossy()), &metadata));
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    /// Reads at most `length` bytes from `offset` on; without an offset only the size.
    ///
    /// # Errors
    /// See [`Files::browse`]; 400 if it is not a regular file.
    pub fn read(&self, path: &str, offset: Option<u64>, length: Option<u64>) -> Result<Part, FilesError> {
        let (mut file, size) = self.find(path)?.open("read")?;
        let Some(offset) = offset else {
            return Ok(Part { size, offset: size, data: Vec::new() });
        };
        let mut data = Vec::new();
        if offset < size {
            let wanted = length.unwrap_or(READ_LIMIT).min(READ_LIMIT);
            file.seek(SeekFrom::Start(offset))?;
            file.take(wanted).read_to_end(&mut data)?;
        }
        Ok(Part { size, offset, data })
    }

    /// Opens a file of any size to send it. Tasks choose the size, so it is not read into memory.
    ///
    /// # Errors
    /// See [`Files::browse`]; 400 if it is not a regular file.
    pub fn download(&self, path: &str) -> Result<Download, FilesError> {
        let (file, size) = self.find(path)?.open("download")?;
        let name = trimmed(path).rsplit('/').next().unwrap_or_default().to_owned();
        Ok(Download { name, file, size })
    }

    /// Reads a whole file. Returns its name and its content.
    ///
    /// # Errors
    /// See [`Files::browse`]; 400 if it is not a regular file, or has more than 64 MiB.
    pub fn read_whole(&self, path: &str) -> Result<(String, Vec<u8>), FilesError> {
        let Download { name, file, size } = self.download(path)?;
        if size > WHOLE_LIMIT {
            return Err(FilesError::Refused(format!("'{path}' has {size} bytes, more than {WHOLE_LIMIT}.")));
        }
        let mut data = Vec::new();
        // The file may grow meanwhile.
        file.take(WHOLE_LIMIT).read_to_end(&mut data)?;
        Ok((name, data))
    }
}

/// A file below an attached path.
struct Found {
    root: PathBuf,
    relative: PathBuf,
    file: File,
}

impl Found {
    /// Opens the file for reading. Returns it and its size.
    fn open(self, to: &str) -> Result<(File, u64), FilesError> {
        let metadata = self.file.metadata()?;
        if metadata.is_dir() {
            return Err(FilesError::Refused(format!("Cannot {to} a directory.")));
        }
        if !metadata.is_file() {
            return Err(FilesError::Refused(format!("Cannot {to} what is not a regular file.")));
        }
        Ok((containers::open_found(&self.file)?, metadata.len()))
    }
}

/// Returns the full path of a pod's task that is named without the run of its executor (EXE-48).
fn task_of_a_pod(path: &str) -> Option<String> {
    let (executor, task) = path.split_once("/tasks/")?;
    executor.contains("/executors/").then(|| format!("{executor}/runs/latest/tasks/{task}"))
}

fn trimmed(path: &str) -> &str {
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

/// Finds `rest` below `root`; symbolic links are followed as long as they lead below it.
fn beneath(root: PathBuf, rest: &str, asked: &str) -> Result<Found, FilesError> {
    let relative = PathBuf::from(rest.trim_start_matches('/'));
    let outside = || FilesError::Refused(format!("'{asked}' is inaccessible."));
    let file = containers::find_beneath(&root, &relative)?.ok_or_else(outside)?;
    Ok(Found { root, relative, file })
}

fn info(path: &str, metadata: &Metadata) -> FileInfo {
    FileInfo {
        path: path.to_owned(),
        nlink: metadata.nlink(),
        size: metadata.len(),
        modified: Duration::from_secs(u64::try_from(metadata.mtime()).unwrap_or(0)),
        mode: metadata.mode(),
        user: crate::host::user_name(metadata.uid()),
        group: crate::host::group_name(metadata.gid()),
    }
}

/// Formats a mode of stat(2), such as `drwxr-x---`.
pub fn mode_text(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o020_000 => 'c',
        0o060_000 => 'b',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '-',
    };
    let bit = |shift: u32, letter: char| if mode & (1 << shift) != 0 { letter } else { '-' };
    let mut text = String::from(kind);
    for group in [6, 3, 0] {
        text.extend([bit(group + 2, 'r'), bit(group + 1, 'w'), bit(group, 'x')]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox() -> (tempfile::TempDir, Files) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::write(directory.path().join("digits"), "0123456789").unwrap();
        std::fs::write(directory.path().join("sub/inner"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("out")).unwrap();
        let files = Files::default();
        files.attach("/frameworks/f/runs/latest", directory.path());
        (directory, files)
    }

    #[test]
    fn browse_sorted() {
        let (_directory, files) = sandbox();
        let found = files.browse("/frameworks/f/runs/latest/").unwrap();
        let names: Vec<&str> = found.iter().map(|f| f.path.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["digits", "out", "sub"]);
        assert_eq!(found[0].size, 10);
        assert!(mode_text(found[2].mode).starts_with("drwx"));
        assert_eq!(files.browse("/frameworks/f/runs/latest/digits").unwrap(), []);
    }

    #[test]
    fn a_directory_is_detached_with_all_below_it() {
        let files = Files::default();
        for name in ["/w/e", "/w/e-1/runs", "/w/e/runs/1", "/w/e/runs/latest", "/w/f"] {
            files.attach(name, Path::new("/real"));
        }
        files.detach_below("/w/e/");
        let left: Vec<_> = files.list().into_iter().map(|(name, _)| name).collect();
        assert_eq!(left, ["/w/e-1/runs", "/w/f"]);
    }

    #[test]
    fn tasks_of_pods_by_their_names() {
        let (directory, files) = sandbox();
        files.attach("/frameworks/f/executors/e/runs/latest", directory.path());
        std::fs::create_dir(directory.path().join("tasks")).unwrap();
        std::os::unix::fs::symlink("../sub", directory.path().join("tasks/one")).unwrap();
        let read = |path: &str| files.read_whole(path).map(|(_, data)| data).map_err(|error| error.status());
        assert_eq!(read("/frameworks/f/executors/e/tasks/one/inner"), Ok(b"x".to_vec()));
        assert_eq!(read("/frameworks/f/executors/e/tasks/two/inner"), Err(404));
        assert_eq!(read("/frameworks/f/runs/tasks/one/inner"), Err(404));
        let above = |path: &str| files.attached_above(path);
        let executor = Some("/frameworks/f/executors/e/runs/latest".to_owned());
        assert_eq!(above("/frameworks/f/executors/e/tasks/one/inner"), executor);
        assert_eq!(above("/frameworks/f/executors/e/runs/latest/"), executor);
        assert_eq!(above("/frameworks/f/executors/e/runs"), None);
    }

    #[test]
    fn read_parts() {
        let (_directory, files) = sandbox();
        let read = |offset, length| files.read("/frameworks/f/runs/latest/digits", offset, length).unwrap();
        assert_eq!(read(None, None), Part { size: 10, offset: 10, data: vec![] });
        assert_eq!(read(Some(2), Some(3)).data, b"234");
        assert_eq!(read(Some(8), None).data, b"89");
        assert_eq!(read(Some(99), None), Part { size: 10, offset: 99, data: vec![] });
    }

    #[test]
    fn a_file_by_itself() {
        let (directory, files) = sandbox();
        files.attach("/master/log", &directory.path().join("digits"));
        assert_eq!(files.read("/master/log", Some(8), None).unwrap().data, b"89");
    }

    #[test]
    fn nothing_outside() {
        let (_directory, files) = sandbox();
        for (path, status) in [
            ("/etc/passwd", 404),
            ("/frameworks/f/runs/latest/none", 404),
            ("/frameworks/f/runs/latest/out", 400),
            ("/frameworks/f/runs/latest/sub/../../x", 400),
            ("/frameworks/f/runs/late", 404),
            ("", 404),
            ("/", 404),
        ] {
            assert_eq!(files.find(path).err().unwrap().status(), status, "{path}");
        }
        assert_eq!(files.read("/frameworks/f/runs/latest/sub", Some(0), None).unwrap_err().status(), 400);
        assert_eq!(files.download("/frameworks/f/runs/latest/sub").unwrap_err().status(), 400);
    }

    #[test]
    fn a_download_is_opened_whatever_its_size() {
        let (directory, files) = sandbox();
        File::create(directory.path().join("sparse")).unwrap().set_len(1 << 32).unwrap();
        let found = files.download("/frameworks/f/runs/latest/sparse").unwrap();
        assert_eq!((found.name.as_str(), found.size), ("sparse", 1 << 32));
        assert_eq!(files.read_whole("/frameworks/f/runs/latest/sparse").unwrap_err().status(), 400);
    }

    #[test]
    fn links_within_are_followed_and_pipes_are_not_waited_for() {
        let (directory, files) = sandbox();
        let path = |name: &str| format!("/frameworks/f/runs/latest/{name}");
        std::os::unix::fs::symlink("sub/inner", directory.path().join("near")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("digits"), directory.path().join("from-the-top")).unwrap();
        assert_eq!(files.read_whole(&path("near")).unwrap().1, b"x");
        assert_eq!(files.read_whole(&path("from-the-top")).unwrap().1, b"0123456789");
        let listed = files.browse("/frameworks/f/runs/latest").unwrap();
        let of = |name: &str| listed.iter().find(|info| info.path.ends_with(name)).unwrap();
        assert_eq!((of("from-the-top").size, of("near").size), (10, 1));
        // The target outside is not described.
        assert!(mode_text(of("/out").mode).starts_with('l'));
        rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), rustix::fs::Mode::RUSR).unwrap();
        for refused in [files.read(&path("pipe"), Some(0), None).err(), files.read_whole(&path("pipe")).err()] {
            assert_eq!(refused.unwrap().status(), 400);
        }
    }

    #[test]
    fn dots_within_are_resolved_and_those_that_lead_out_are_refused() {
        let (directory, files) = sandbox();
        let root = directory.path();
        let secret = tempfile::tempdir().unwrap();
        std::fs::write(secret.path().join("inner"), "secret").unwrap();
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        std::fs::write(root.join("deep/file"), "deep").unwrap();
        std::os::unix::fs::symlink("deep/er", root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("deep/er"), root.join("from-the-top")).unwrap();
        std::os::unix::fs::symlink(secret.path(), root.join("away")).unwrap();
        let own = root.file_name().unwrap().to_str().unwrap();
        let secret = secret.path().file_name().unwrap().to_str().unwrap().to_owned();
        let read = |name: &str| {
            let read = files.read_whole(&format!("/frameworks/f/runs/latest/{name}"));
            read.map(|(_, data)| String::from_utf8(data).unwrap()).map_err(|error| error.status())
        };
        for (name, text) in [
            ("sub/../digits", "0123456789"),
            ("./sub/.././sub/inner", "x"),
            ("deep/er/../../digits", "0123456789"),
            // `..` after a link is resolved from the link's target, as in any program.
            ("link/../file", "deep"),
            ("link/../../digits", "0123456789"),
            ("from-the-top/../file", "deep"),
        ] {
            assert_eq!(read(name), Ok(text.to_owned()), "{name}");
        }
        for (name, status) in [
            ("..", 400),
            ("../", 400),
            ("../nothing", 400),
            ("sub/../..", 400),
            ("sub/../../nothing", 400),
            ("../../../../../../etc/passwd", 400),
            (&format!("../{own}/digits"), 400),
            (&format!("sub/../../{secret}/inner"), 400),
            ("away/inner", 400),
            ("away/../digits", 404),
            (&format!("away/../{secret}/inner"), 400),
            ("sub/../none", 404),
            ("none/../digits", 404),
            ("digits/../digits", 404),
        ] {
            assert_eq!(read(name), Err(status), "{name}");
        }
        let listed = files.browse("/frameworks/f/runs/latest/deep/er/..").unwrap();
        let paths: Vec<&str> = listed.iter().map(|info| info.path.as_str()).collect();
        let below = "/frameworks/f/runs/latest/deep/er/..";
        assert_eq!(paths, [format!("{below}/er"), format!("{below}/file")]);
        assert_eq!(files.browse("/frameworks/f/runs/latest/../..").unwrap_err().status(), 400);
        // The attached path decides, not the normalised text.
        assert_eq!(files.browse("/frameworks/f/x/../runs/latest").unwrap_err().status(), 404);
    }

    /// A task that replaces a directory by a link and back as fast as it can cannot make the agent read files
    /// elsewhere.
    #[test]
    fn a_directory_that_becomes_a_link_meanwhile_leads_nowhere() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let (directory, files) = sandbox();
        let secret = tempfile::tempdir().unwrap();
        std::fs::write(secret.path().join("inner"), "secret").unwrap();
        std::fs::write(secret.path().join("other"), "secret").unwrap();
        let (sub, trap) = (directory.path().join("sub"), directory.path().join("trap"));
        std::os::unix::fs::symlink(secret.path(), &trap).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut read = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    renameat_with(CWD, &sub, CWD, &trap, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..20_000 {
                if let Ok((_, data)) = files.read_whole("/frameworks/f/runs/latest/sub/inner") {
                    assert_eq!(data, b"x");
                    read += 1;
                }
                if let Ok((_, data)) = files.read_whole("/frameworks/f/runs/latest/sub/../sub/inner") {
                    assert_eq!(data, b"x");
                }
                let names = files.browse("/frameworks/f/runs/latest/sub").unwrap_or_default();
                assert!(names.iter().all(|info| !info.path.ends_with("other")), "{names:?}");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(read > 0);
    }
}
