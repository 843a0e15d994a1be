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

pub use crate::scenario::{InvalidField, JobKind};
use crate::seeds::Seed;
use crate::users::Inbox;
pub use events::{EventLog, FrameworkEvent, TimedEvent};

/// A kind of framework that scenarios can name.
pub trait Bundled: Sync {
    /// Returns the framework's name in scenarios.
    fn name(&self) -> &'static str;

    /// Reads a scenario's table of one framework.
    ///
    /// # Errors
    /// Returns the first field that breaks a rule; its path starts at the framework: `options.policy`, `jobs.0.time`.
    fn read(&self, config: FrameworkConfig<'_>) -> Result<Box<dyn ConfiguredFramework>, InvalidField>;

    /// Returns why the framework cannot take part in runs on real clusters, and what to do instead; `None` if it can.
    fn not_live(&self) -> Option<&'static str> {
        None
    }
}

/// A scenario's description of a bundled framework.
#[derive(Clone, Copy, Debug)]
pub struct FrameworkConfig<'a> {
    /// The framework's `options`.
    pub options: &'a Table,
    /// The framework's jobs. Their fields are valid, but the needs and the duration of a task may be missing.
    pub jobs: &'a [JobKind],
    /// Directory to which relative file names are resolved.
    pub(crate) directory: &'a Path,
    /// Files that the framework has asked for. Results of a run depend on their content, too.
    pub(crate) files: &'a RefCell<BTreeSet<PathBuf>>,
}

impl FrameworkConfig<'_> {
    /// Returns the path of a file or directory that a scenario names, and records that the scenario reads it.
    pub fn file(&self, name: &str) -> PathBuf {
        let file = self.directory.join(name);
        self.files.borrow_mut().insert(file.clone());
        file
    }
}

/// A bundled framework whose part of a scenario is valid.
pub trait ConfiguredFramework {
    /// Returns the kinds of the framework's jobs. One kind of the scenario can become several kinds that arrive at the
    /// same times, such as the jobs of a file.
    fn kinds(&self) -> Vec<Kind>;

    /// Returns the measures that the framework writes into its [`EventLog`], beside those that are measured of every
    /// framework.
    fn measures(&self) -> &'static [Measure] {
        &[]
    }

    /// Returns the framework's scheduler, which takes its jobs from the context at `Event::Wake`.
    fn scheduler(&self, context: SchedulerContext) -> Box<dyn Scheduler>;
}

/// Jobs of one kind of a bundled framework.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Index of the scenario's kind that this kind belongs to.
    pub of: usize,
    /// Arrivals of the jobs, with the needs and the duration of a task, which are present.
    pub jobs: JobKind,
}

impl Kind {
    /// Returns one kind for each kind of the scenario, for a framework that at most fills missing fields in.
    pub fn each<'a>(jobs: impl Iterator<Item = &'a JobKind>) -> Vec<Kind> {
        jobs.cloned().enumerate().map(|(of, jobs)| Kind { of, jobs }).collect()
    }
}

/// The environment of a scheduler in a laboratory: its jobs, its events and its seed.
#[derive(Clone, Debug)]
pub struct SchedulerContext {
    /// Receives the scheduler's jobs. A job's `kind` is the index of its kind in [`ConfiguredFramework::kinds`].
    pub inbox: Inbox,
    /// Receives events that only the scheduler knows.
    pub event_log: EventLog,
    /// Seed of the scheduler's random draws.
    pub seed: Seed,
}

/// A quantity that is measured of one framework alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Name of the measure in results, below the framework's.
    pub name: &'static str,
    /// Title of the measure, with its unit.
    pub title: &'static str,
    /// How the values are summed up.
    pub of: Sum,
}

/// How the values of a measure are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// The value changes in steps: the mean over the time in which it has a value, and a picture.
    Time,
    /// Each job or query has a value: the mean over these.
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
    /// Returns the bundled framework of this name.
    ///
    /// # Errors
    /// Returns an error if the name is unknown; the rule lists the known ones.
    pub fn find(self, name: &str) -> Result<&'static dyn Bundled, InvalidField> {
        let unknown = || {
            let known: Vec<&str> = self.0.iter().map(|one| one.name()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            InvalidField::new("bundled", format!("'{name}' is not a bundled framework: must be one of {known}"))
        };
        self.0.iter().copied().find(|one| one.name() == name).ok_or_else(unknown)
    }
}

/// Reads a table of options as a type that has a default for each.
///
/// # Errors
/// Returns an error for an unknown option or an invalid value; its path starts with `path`.
pub fn options<T: serde::de::DeserializeOwned>(path: &str, table: &Table) -> Result<T, InvalidField> {
    let broken = |at: String, why: &toml::de::Error| InvalidField::new(at, why.message().trim().replace('\n', ", "));
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
