//! The interface between the laboratory and bundled frameworks: what a framework provides to take part in a scenario.
//!
//! The laboratory does not depend on the frameworks. Its caller passes a [`Catalog`]. A framework's scheduler is the
//! one that runs live; its tasks are modelled.

mod events;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use sdk::Scheduler;
use toml::Table;

pub use crate::scenario::{Broken, JobKind};
use crate::seeds::Seed;
use crate::users::Inbox;
pub use events::{Diary, Entry, Word};

/// A kind of framework that scenarios can name.
pub trait Bundled: Sync {
    /// Its name in scenarios.
    fn name(&self) -> &'static str;

    /// Reads a scenario's table of one framework.
    ///
    /// # Errors
    /// The first field that breaks a rule; its path starts at the framework: `options.policy`, `jobs.0.time`.
    fn read(&self, part: Part<'_>) -> Result<Box<dyn Ready>, Broken>;

    /// Why it does not take part in runs on real clusters, and what to do instead; none if it does.
    fn not_live(&self) -> Option<&'static str> {
        None
    }
}

/// A scenario's description of a bundled framework.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its `options`.
    pub options: &'a Table,
    /// Its jobs. Their fields are right, but what a task needs and how long it takes may be missing.
    pub jobs: &'a [JobKind],
    /// Where files that it names are looked for.
    pub(crate) directory: &'a Path,
    /// The files that were asked for: results of a run are of what they hold, too.
    pub(crate) files: &'a RefCell<BTreeSet<PathBuf>>,
}

impl Part<'_> {
    /// The file or directory that a scenario names; it counts as read.
    pub fn file(&self, name: &str) -> PathBuf {
        let file = self.directory.join(name);
        self.files.borrow_mut().insert(file.clone());
        file
    }
}

/// A bundled framework whose part of a scenario is right.
pub trait Ready {
    /// The kinds of its jobs. A kind of the scenario can be several here that arrive at the same times, such as the
    /// jobs of a file.
    fn kinds(&self) -> Vec<Kind>;

    /// What it writes of itself into its [`Diary`] beside what is measured of every framework.
    fn measures(&self) -> &'static [Measure] {
        &[]
    }

    /// Its scheduler. It takes its jobs from the desk at `Event::Wake`.
    fn scheduler(&self, desk: Desk) -> Box<dyn Scheduler>;
}

/// Jobs of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Which of the scenario's it belongs to.
    pub of: usize,
    /// When and how they arrive; what a task needs and how long it takes are there.
    pub jobs: JobKind,
}

impl Kind {
    /// The kinds of a framework that takes the scenario's as they are, filled in at most.
    pub fn each<'a>(jobs: impl Iterator<Item = &'a JobKind>) -> Vec<Kind> {
        jobs.cloned().enumerate().map(|(of, jobs)| Kind { of, jobs }).collect()
    }
}

/// The surroundings of a scheduler in a laboratory: its jobs, its events and its seed.
#[derive(Clone, Debug)]
pub struct Desk {
    /// Where its jobs are put. A job's `kind` is the place of its kind among [`Ready::kinds`].
    pub inbox: Inbox,
    /// Where it writes what only it knows.
    pub diary: Diary,
    /// For what it must draw.
    pub seed: Seed,
}

/// Something that is measured of one framework alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name in results, below the framework's.
    pub name: &'static str,
    /// What it is, with its unit.
    pub title: &'static str,
    /// How it is summed up.
    pub of: Sum,
}

/// How something is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// It changes in steps: its mean over the time in which it has a value, and a picture.
    Time,
    /// It is a property of each job or query: the mean over these.
    Each,
}

/// The bundled frameworks that scenarios can name.
#[derive(Clone, Copy, Default)]
pub struct Catalog(pub &'static [&'static dyn Bundled]);

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|one| one.name())).finish()
    }
}

impl Catalog {
    /// The bundled framework of this name.
    ///
    /// # Errors
    /// An unknown name; the rule lists the known ones.
    pub fn find(self, name: &str) -> Result<&'static dyn Bundled, Broken> {
        let unknown = || {
            let known: Vec<&str> = self.0.iter().map(|one| one.name()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Broken::new("bundled", format!("'{name}' is not a bundled framework; there are: {known}"))
        };
        self.0.iter().copied().find(|one| one.name() == name).ok_or_else(unknown)
    }
}

/// Options as a type with a default for each.
///
/// # Errors
/// An unknown option or an invalid value; its path starts with `path`.
pub fn options<T: serde::de::DeserializeOwned>(path: &str, table: &Table) -> Result<T, Broken> {
    let broken = |at: String, why: &toml::de::Error| Broken::new(at, why.message().trim().replace('\n', ", "));
    for (name, value) in table {
        let one = Table::from_iter([(name.clone(), value.clone())]);
        one.try_into::<T>().map_err(|why| broken(format!("{path}.{name}"), &why))?;
    }
    table.clone().try_into().map_err(|why| broken(path.to_owned(), &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Two {
        a: u8,
        b: bool,
    }

    #[test]
    fn a_wrong_option_is_named() {
        let read = |text: &str| options::<Two>("options", &toml::from_str(text).unwrap());
        let two = read("b = true\na = 3").unwrap();
        assert_eq!((two.a, two.b), (3, true));
        assert_eq!(read("a = 3\nb = 'x'").unwrap_err().path, "options.b");
        let unknown = read("a = 3\nc = 'x'").unwrap_err();
        assert!(unknown.path == "options.c" && unknown.rule.contains("`a`"), "{unknown:?}");
    }
}
