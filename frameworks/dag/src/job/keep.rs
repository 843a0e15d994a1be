//! Which outputs stay in a job's shared directory after its end, and this field of a job file.

use jobs::file::Fields;
use serde::{Deserialize, Serialize};

/// Name of the field.
const FIELD: &str = "keep";

/// The outputs that stay in a shared directory once their job has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Everything, including files of attempts that did not finish.
    All,
    /// Published outputs of stages that no stage reads: the job's results.
    #[default]
    Outputs,
    /// No files at all.
    None,
}

/// Reads the field of a job.
pub(super) fn read(job: &mut Fields<'_, '_>) -> Keep {
    match job.text(FIELD) {
        None | Some(("outputs", _)) => Keep::Outputs,
        Some(("all", _)) => Keep::All,
        Some(("none", _)) => Keep::None,
        Some((text, at)) => {
            job.faults.add(at, format!("{FIELD} must be all, outputs or none, and this is \"{text}\""));
            Keep::Outputs
        }
    }
}
