//! Describes the damage of a registry whose two files do not agree, and the extent of the loss.
//!
//! The operator decides whether the process continues.

use std::fmt;
use std::path::PathBuf;
use std::time::SystemTime;

/// A commit that the file of confirmations confirms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confirmed {
    /// Number of the commit.
    pub number: u64,
    /// Time at which the commit was written.
    pub time: SystemTime,
}

/// A registry that does not contain, or may not contain, the last commit.
#[derive(Debug, thiserror::Error)]
#[error("the registry '{}' {found}", path.display())]
pub struct Loss {
    /// Path of the registry's file.
    pub path: PathBuf,
    /// Kind of the damage.
    pub found: Found,
    /// The storage engine's error, if it cannot read the file.
    #[source]
    pub(super) source: Option<Box<redb::Error>>,
}

/// Kind of damage that was found in place of a registry whose newest commit is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The file is missing, but there are confirmations of its commits.
    Missing(Option<Confirmed>),
    /// The file is empty. A new registry is never an empty file.
    Empty(Option<Confirmed>),
    /// The storage engine cannot read the file.
    Unreadable(Option<Confirmed>),
    /// The registry ends before the confirmed commit.
    RolledBack {
        /// Newest commit of the registry.
        last: u64,
        /// Newest confirmed commit.
        confirmed: Confirmed,
    },
    /// The registry's entries are not those of its newest commit.
    Changed {
        /// Newest commit of the registry.
        last: u64,
    },
    /// The registry has no confirmations.
    Unconfirmed {
        /// Newest commit of the registry.
        last: u64,
    },
    /// The confirmations are damaged, so that there may have been later commits.
    ConfirmationsDamaged {
        /// Newest commit of the registry.
        last: u64,
    },
    /// The confirmations end more than one commit before the registry.
    ConfirmationsOld {
        /// Newest commit of the registry.
        last: u64,
        /// Newest confirmed commit.
        confirmed: Confirmed,
    },
}

impl Loss {
    /// Returns the number of the newest known commit. It identifies this loss: the first commit after an operator has
    /// accepted it has a higher one.
    pub fn number(&self) -> u64 {
        let of = |confirmed: Option<Confirmed>| confirmed.map_or(0, |confirmed| confirmed.number);
        match self.found {
            Found::Missing(confirmed) | Found::Empty(confirmed) | Found::Unreadable(confirmed) => of(confirmed),
            Found::RolledBack { last, confirmed } | Found::ConfirmationsOld { last, confirmed } => {
                last.max(confirmed.number)
            }
            Found::Changed { last } | Found::Unconfirmed { last } | Found::ConfirmationsDamaged { last } => last,
        }
    }

    /// Returns whether the registry's file can be read, so that its entries remain if the loss is accepted.
    pub fn leaves_entries(&self) -> bool {
        !matches!(self.found, Found::Missing(_) | Found::Empty(_) | Found::Unreadable(_))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Missing(confirmed) => write!(out, "is missing: {}", AllCommitsLost(*confirmed)),
            Found::Empty(confirmed) => write!(out, "is an empty file: {}", AllCommitsLost(*confirmed)),
            Found::Unreadable(confirmed) => write!(out, "cannot be read: {}", AllCommitsLost(*confirmed)),
            Found::RolledBack { last: 0, confirmed } => {
                write!(
                    out,
                    "is older than its commit 1, but {confirmed} is confirmed: {}",
                    AllCommitsLost(Some(*confirmed))
                )
            }
            Found::RolledBack { last, confirmed } => {
                write!(out, "ends with commit {last}, but {confirmed} is confirmed: ")?;
                match confirmed.number - last {
                    1 => write!(out, "the last commit is lost"),
                    lost => write!(out, "the last {lost} commits are lost"),
                }
            }
            Found::Changed { last } => {
                write!(out, "does not match its commit {last}: any of its entries may be lost or changed")
            }
            Found::Unconfirmed { last } => write!(
                out,
                "ends with commit {last}, and the file beside it that confirms commits, '.commits', is missing: later commits may be lost"
            ),
            Found::ConfirmationsDamaged { last } => write!(
                out,
                "ends with commit {last}, and the file beside it that confirms commits, '.commits', is damaged: later commits may be lost"
            ),
            Found::ConfirmationsOld { last, confirmed } => write!(
                out,
                "ends with commit {last}, but the file beside it that confirms commits, '.commits', ends with {confirmed}: \
                 one of the two is a copy from another time"
            ),
        }
    }
}

impl fmt::Display for Confirmed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "commit {} of {}", self.number, humantime::format_rfc3339_seconds(self.time))
    }
}

/// Formats the message that all commits are lost.
struct AllCommitsLost(Option<Confirmed>);

impl fmt::Display for AllCommitsLost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(confirmed) => write!(out, "all commits up to {confirmed} are lost"),
            None => write!(out, "all its entries are lost"),
        }
    }
}
