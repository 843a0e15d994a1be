//! What stays in a job's shared directory after its end, and this part of a job file.

use jobs::file::Fields;
use serde::{Deserialize, Serialize};

/// The field's name.
const FIELD: &str = "keep";

/// What stays of a job's outputs in a shared directory once the job has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keep {
    /// Everything, also what attempts left that did not finish.
    All,
    /// What finished tasks left of stages that no stage reads: the job's results.
    #[default]
    Outputs,
    /// Nothing.
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
