//! Scenarios: the description of a laboratory run, read from TOML.
//!
//! `schema.rs` is the form of the file, `check.rs` has its rules, `warnings.rs` reports what is valid but probably not
//! intended, `jobs.rs` generates jobs, `sweep.rs` varies fields. An invalid scenario is rejected with file, line and
//! rule before anything runs.

mod check;
mod error;
mod faults;
mod jobs;
mod schema;
mod setup;
mod sweep;
mod trace;
mod warnings;

pub(crate) use check::MOST_REPETITIONS;
pub use error::{InvalidField, ScenarioError};
pub(crate) use faults::Target;
pub use faults::{FaultPart, FaultType};
pub use jobs::{Arrival, Arrivals, Traces, work};
pub use schema::{AgentGroup, Framework, JobKind, ManagerPart, MasterPart, RolePart, Scenario, Window};
pub use setup::{Prepared, PreparedFramework, PreparedJobs, check_bundled, prepare, quotas};
pub(crate) use setup::{all_kinds, kinds_of};
pub use sweep::{MOST_POINTS, Point, points};
pub use trace::{GoogleEvent, Row, TaskEvent, google_events, of_text as trace_of_text};

use std::path::Path;

use crate::bundled::Catalog;

impl Scenario {
    /// Reads a scenario and checks it. `file` is named in errors, and traces are resolved relative to its directory.
    ///
    /// # Errors
    /// Returns the first error, with file, line and rule.
    pub fn read(text: &str, file: &Path) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario = toml::from_str(text).map_err(|why| ScenarioError::of_toml(file, text, &why))?;
        check::check(&scenario).map_err(|broken| broken.at(file, text))?;
        Ok(scenario)
    }

    /// Returns warnings with file, line and reason: what can be run but is probably not intended, such as tasks that
    /// fit on no agent. `traces` are those that the scenario names.
    #[must_use]
    pub fn warnings(&self, text: &str, file: &Path, traces: &Traces) -> Vec<ScenarioError> {
        let directory = file.parent().unwrap_or(Path::new("."));
        warnings::warnings(self, directory, traces).into_iter().map(|doubt| doubt.at(file, text)).collect()
    }

    /// Returns the scenario with a catalog of bundled frameworks. Whether their tables are valid is checked by
    /// [`check_bundled`].
    #[must_use]
    pub fn with(self, catalog: Catalog) -> Scenario {
        Scenario { catalog, ..self }
    }
}
