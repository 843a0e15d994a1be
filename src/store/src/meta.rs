//! Reads an agent's meta directory (docs/mesos/disk.md) into memory.
//!
//! It reads what a recovery needs: of earlier agents, of older runs and of executors that ended long ago only the
//! names, so that an agent with a long history starts as fast as a new one. It decodes nothing; unknown names, such as
//! those of temporary files, are kept.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::Time;
use cores::{Change, Tree};

use crate::error::StoreError;

/// Name of the journal of checkpoints, which is read elsewhere.
pub(crate) const JOURNAL: &str = "checkpoints.journal";
/// Name of the file that marks a run whose executor has ended with all updates acknowledged.
const SENTINEL: &str = "executor.sentinel";
/// Number of ended executors of each framework that are read completely: as many as an agent shows by default.
const HISTORY: usize = 150;

/// Reads the meta directory at `root`; a missing one is empty.
///
/// # Errors
/// A file cannot be read.
pub fn read_meta(root: &Path) -> Result<Tree, StoreError> {
    let mut tree = Tree::default();
    read_directory(root, "", &mut tree)?;
    Ok(tree)
}

/// Applies a change of a journal that was last written at `journaled` to the tree of the directory at `root`.
pub(crate) fn apply(tree: &mut Tree, root: &Path, change: &Change, journaled: Time) {
    match change {
        Change::Replace { path, .. } if path.rsplit('/').nth(1) == Some("pids") => {
            tree.times.insert(path.clone(), journaled);
        }
        Change::Append { path, .. } if !tree.files.contains_key(path) => {
            tree.files.insert(path.clone(), fs::read(root.join(path)).unwrap_or_default());
        }
        _ => {}
    }
    if !matches!(change, Change::Remove { .. }) {
        let path = change.path();
        tree.directories.extend(path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
    }
    tree.apply(change);
}

/// Names of the entries of a directory.
struct Names {
    files: Vec<String>,
    links: BTreeMap<String, String>,
    directories: Vec<String>,
}

fn read_directory(root: &Path, path: &str, tree: &mut Tree) -> Result<(), StoreError> {
    let Some(names) = names_in(&root.join(path))? else { return Ok(()) };
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
    // If there is a link `latest`, only its target is read completely.
    let latest = names.links.get("latest").and_then(|target| target.rsplit('/').next().map(str::to_owned));
    let is_choice = path == "slaves" || path.ends_with("/runs");
    for name in names.files.iter().filter(|name| !path.is_empty() || *name != JOURNAL) {
        if let Some(bytes) = read_file(&root.join(at(name)))? {
            tree.files.insert(at(name), bytes);
        }
        if path.ends_with("/pids") {
            tree.times.insert(at(name), Time::from_epoch(written(&root.join(at(name))).unwrap_or_default()));
        }
    }
    tree.links.extend(names.links.iter().map(|(name, target)| (at(name), target.clone())));
    let mut ended = Vec::new();
    for name in names.directories {
        let child = at(&name);
        tree.directories.insert(child.clone());
        let wanted = !is_choice || latest.as_ref() == Some(&name);
        if path.ends_with("/executors")
            && let Some(sentinel) = sentinel_of(root, &child)?
        {
            ended.push((written(&root.join(sentinel)).unwrap_or_default(), child));
        } else if wanted {
            read_directory(root, &child, tree)?;
        }
    }
    // The newest ended executors are shown; of the others only the names are needed.
    ended.sort();
    let old = ended.len().saturating_sub(HISTORY);
    for (index, (_, executor)) in ended.into_iter().enumerate() {
        match index < old {
            true => note_ended(root, &executor, tree)?,
            false => read_directory(root, &executor, tree)?,
        }
    }
    Ok(())
}

/// Returns the time of a file's last write.
fn written(path: &Path) -> Option<Duration> {
    let time: SystemTime = fs::symlink_metadata(path).ok()?.modified().ok()?;
    time.duration_since(UNIX_EPOCH).ok()
}

/// Returns the sentinel in an executor's newest run.
fn sentinel_of(root: &Path, executor: &str) -> Result<Option<String>, StoreError> {
    let link = root.join(executor).join("runs/latest");
    let target = match fs::read_link(&link) {
        Ok(target) => target,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => return Ok(None),
        Err(error) => return Err(StoreError::io("read the link", &link)(error)),
    };
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let path = format!("{executor}/runs/{name}/{SENTINEL}");
    Ok(root.join(&path).exists().then_some(path))
}

/// Adds an ended executor, with only the names of its runs and the sentinel.
fn note_ended(root: &Path, executor: &str, tree: &mut Tree) -> Result<(), StoreError> {
    let runs = format!("{executor}/runs");
    if let Some(names) = names_in(&root.join(&runs))? {
        tree.links.extend(names.links.into_iter().map(|(name, target)| (format!("{runs}/{name}"), target)));
        tree.directories.extend(names.directories.into_iter().map(|name| format!("{runs}/{name}")));
    }
    if let Some(path) = sentinel_of(root, executor)? {
        tree.files.insert(path, Vec::new());
    }
    Ok(())
}

fn names_in(directory: &Path) -> Result<Option<Names>, StoreError> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::io("read the directory", directory)(error)),
    };
    let mut names = Names { files: Vec::new(), links: BTreeMap::new(), directories: Vec::new() };
    for entry in entries {
        let entry = entry.map_err(StoreError::io("read the directory", directory))?;
        let kind = entry.file_type().map_err(StoreError::io("look at", &entry.path()))?;
        // Ids are UTF-8, so a name that is not was not created by an agent.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if kind.is_dir() {
            names.directories.push(name);
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(StoreError::io("read the link", &entry.path()))?;
            names.links.insert(name, target.to_string_lossy().into_owned());
        } else {
            names.files.push(name);
        }
    }
    names.files.sort();
    names.directories.sort();
    Ok(Some(names))
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}
