//! The meta directory as a value: the input of a start, and the state of a modelled disk.
//!
//! It is built by a reader of the disk, or by applying [`Persist`] entries in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use base::Time;

use crate::output::Persist;

/// Files, links and directories below the meta directory; all paths are relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The files with their content.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The symbolic links and where they lead.
    pub links: BTreeMap<String, String>,
    /// The directories; those of files may be missing here.
    pub directories: BTreeSet<String>,
    /// When files were last written, of those for which that is of interest.
    pub times: BTreeMap<String, Time>,
}

impl Tree {
    /// Applies an entry of an agent's outbox.
    pub fn apply(&mut self, entry: &Persist) {
        self.take(entry.clone());
    }

    /// The same, taking the entry.
    pub fn take(&mut self, entry: Persist) {
        match entry {
            Persist::Replace { path, bytes } => {
                self.files.insert(path, bytes);
            }
            Persist::Append { path, at, bytes } => {
                let file = self.files.entry(path).or_default();
                file.truncate(at.and_then(|at| usize::try_from(at).ok()).unwrap_or(file.len()));
                file.extend_from_slice(&bytes);
            }
            Persist::Directory { path } => {
                self.directories.insert(path);
            }
            Persist::Link { path, target } => {
                self.links.insert(path, target);
            }
            Persist::Remove { path } => self.remove(&path),
        }
    }

    fn remove(&mut self, path: &str) {
        let gone = |name: &str| name == path || name.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.files.retain(|name, _| !gone(name));
        self.links.retain(|name, _| !gone(name));
        self.directories.retain(|name| !gone(name));
    }

    /// The names of a directory's entries.
    pub(crate) fn names_in(&self, directory: &str) -> BTreeSet<String> {
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
        tree.apply(&Persist::Replace { path: "a/b".into(), bytes: b"1".to_vec() });
        tree.apply(&Persist::Append { path: "a/b".into(), at: None, bytes: b"2".to_vec() });
        tree.apply(&Persist::Link { path: "a/latest".into(), target: "/x/b".into() });
        tree.apply(&Persist::Directory { path: "a/c".into() });
        tree.apply(&Persist::Directory { path: "a-b/x".into() });
        tree.apply(&Persist::Directory { path: "aa".into() });
        assert_eq!(tree.files["a/b"], b"12");
        assert_eq!(tree.names_in("a").into_iter().collect::<Vec<_>>(), ["b", "c", "latest"]);
        tree.apply(&Persist::Remove { path: "a".into() });
        tree.apply(&Persist::Remove { path: "aa".into() });
        tree.apply(&Persist::Remove { path: "a-b".into() });
        assert_eq!(tree, Tree::default());
    }
}
