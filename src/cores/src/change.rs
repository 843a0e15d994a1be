//! Changes of files, as entries that a core persists.
//!
//! The crate `store` makes them durable; the directory is the shell's choice.

/// One change below a directory; paths are relative to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file has exactly this content. A crash leaves this content or the old one.
    Replace {
        /// The file. Missing directories are created.
        path: String,
        /// The whole content.
        bytes: Vec<u8>,
    },
    /// These bytes follow the content of the file. A crash may leave a part of them.
    Append {
        /// The file. It and missing directories are created.
        path: String,
        /// The length of the valid content before, if it is known: an earlier attempt may have left more. A core does
        /// not know it.
        at: Option<u64>,
        /// The bytes to add.
        bytes: Vec<u8>,
    },
    /// The directory exists, with its parents.
    Directory {
        /// The directory.
        path: String,
    },
    /// The symbolic link points to `target`, also if it pointed elsewhere before.
    Link {
        /// The link. Missing directories are created.
        path: String,
        /// An absolute path.
        target: String,
    },
    /// The file, link or directory with its content does not exist.
    Remove {
        /// The file, link or directory; it need not exist.
        path: String,
    },
}

impl Change {
    /// Path of the file, link or directory.
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
