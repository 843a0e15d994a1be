//! A directory tree in memory: the input of an agent's recovery, and the state of a modelled disk.
//!
//! A reader of the disk builds it, or [`Change`]s are applied to it; it accesses no disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use base::Time;

use crate::Change;

/// Files, links and directories below a base directory; all paths are relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Content of each file, by its path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Target of each symbolic link, by its path.
    pub links: BTreeMap<String, String>,
    /// Paths of the directories; parents of files may be missing.
    pub directories: BTreeSet<String>,
    /// Times of the last write, only of files below a directory `pids`: there the time distinguishes a pid from a later
    /// one of the same number.
    pub times: BTreeMap<String, Time>,
}

impl Tree {
    /// Applies a change, such as an entry of an agent's outbox.
    pub fn apply(&mut self, change: &Change) {
        self.take(change.clone());
    }

    /// Applies a change and stores its bytes without a copy.
    pub fn take(&mut self, change: Change) {
        match change {
            Change::Replace { path, bytes } => {
                self.files.insert(path, bytes);
            }
            Change::Append { path, at, bytes } => {
                let file = self.files.entry(path).or_default();
                file.truncate(at.and_then(|at| usize::try_from(at).ok()).unwrap_or(file.len()));
                file.extend_from_slice(&bytes);
            }
            Change::Directory { path } => {
                self.directories.insert(path);
            }
            Change::Link { path, target } => {
                self.links.insert(path, target);
            }
            Change::Remove { path } => self.remove(&path),
        }
    }

    fn remove(&mut self, path: &str) {
        let gone = |name: &str| name == path || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.files.retain(|name, _| !gone(name));
        self.links.retain(|name, _| !gone(name));
        self.directories.retain(|name| !gone(name));
        self.times.retain(|name, _| !gone(name));
    }

    /// Returns the names of a directory's entries.
    pub fn names_in(&self, directory: &str) -> BTreeSet<String> {
        // In a tree with thousands of executors only the part below the directory is visited.
        let prefix = format!("{directory}/");
        let from = || (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let inside = |path: &&String| path.starts_with(&prefix);
        let name = |path: &String| path[prefix.len()..].split('/').next().map(str::to_owned);
        let files = self.files.range::<str, _>(from()).map(|(path, _)| path).take_while(inside);
        let links = self.links.range::<str, _>(from()).map(|(path, _)| path).take_while(inside);
        let paths = files.chain(links).chain(self.directories.range::<str, _>(from()).take_while(inside));
        paths.filter_map(name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_change_the_tree() {
        let mut tree = Tree::default();
        tree.apply(&Change::Replace { path: "a/b".into(), bytes: b"1".to_vec() });
        tree.apply(&Change::Append { path: "a/b".into(), at: None, bytes: b"2".to_vec() });
        tree.apply(&Change::Link { path: "a/latest".into(), target: "/x/b".into() });
        tree.apply(&Change::Directory { path: "a/c".into() });
        tree.apply(&Change::Directory { path: "a-b/x".into() });
        tree.apply(&Change::Directory { path: "aa".into() });
        assert_eq!(tree.files["a/b"], b"12");
        assert_eq!(tree.names_in("a").into_iter().collect::<Vec<_>>(), ["b", "c", "latest"]);
        tree.apply(&Change::Remove { path: "a".into() });
        tree.apply(&Change::Remove { path: "aa".into() });
        tree.apply(&Change::Remove { path: "a-b".into() });
        assert_eq!(tree, Tree::default());
    }
}
