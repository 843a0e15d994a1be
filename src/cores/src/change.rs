//! Changes of files that a core persists.
//!
//! The crate `store` makes them durable; the shell chooses the directory.

/// A change of a file, a link or a directory below a base directory; paths are relative to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Replaces the content of a file. A crash leaves this content or the old one.
    Replace {
        /// Path of the file. Missing directories are created.
        path: String,
        /// Content of the file from now on.
        bytes: Vec<u8>,
    },
    /// Appends bytes to a file. A crash may leave a part of them.
    Append {
        /// Path of the file. It and missing directories are created.
        path: String,
        /// Length of the valid content before the bytes, if it is known: an earlier attempt may have left more. A core
        /// does not know it.
        at: Option<u64>,
        /// Bytes to append to the file.
        bytes: Vec<u8>,
    },
    /// Creates a directory and its parents, if they are missing.
    Directory {
        /// Path of the directory.
        path: String,
    },
    /// Makes a symbolic link to `target`, also if it pointed elsewhere before.
    Link {
        /// Path of the link. Missing directories are created.
        path: String,
        /// Absolute path that the link points to.
        target: String,
    },
    /// Removes a file, a link, or a directory with its content.
    Remove {
        /// Path of the file, link or directory; it need not exist.
        path: String,
    },
}

impl Change {
    /// Returns the path of the file, link or directory.
    pub fn path(&self) -> &str {
        match self {
            Change::Replace { path, .. }
            | Change::Append { path, .. }
            | Change::Directory { path }
            | Change::Link { path, .. }
            | Change::Remove { path } => path,
        }
    }
}
