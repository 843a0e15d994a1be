//! Stages that tolerate dropped tasks (DiAS), and their field in a job file.

use jobs::file::{Fields, Value};
use serde::{Deserialize, Serialize};

use super::stage::file_name;

/// Name of the field.
const FIELD: &str = "approximate";
/// Default of the largest fraction of a stage's tasks that is dropped.
const DROP: f64 = 0.2;
/// Default of the relative error that a job accepts.
const ERROR: f64 = 0.1;
/// Default confidence of a bound.
const CONFIDENCE: f64 = 0.95;

/// The statistic that is estimated from the values of the tasks that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Sum of the values of all tasks.
    #[default]
    Sum,
    /// Sum of values that are counts.
    Count,
    /// Mean of the values of all tasks.
    Mean,
}

/// The limits of the approximation of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approximate {
    /// Largest fraction of the stage's tasks that may be dropped, below 1.
    pub drop: f64,
    /// Relative error that the job accepts: half of the interval divided by the estimate.
    pub error: f64,
    /// Confidence of the interval, between 0 and 1.
    pub confidence: f64,
    /// File in each task's output directory that contains its value; without one there is no estimate.
    pub value: Option<String>,
    /// Statistic that is estimated.
    pub estimate: Statistic,
}

impl Default for Approximate {
    fn default() -> Approximate {
        Approximate { drop: DROP, error: ERROR, confidence: CONFIDENCE, value: None, estimate: Statistic::Sum }
    }
}

/// Reads the field of a stage: `true`, or a table.
pub(super) fn read(stage: &mut Fields<'_, '_>) -> Option<Approximate> {
    let node = stage.take(FIELD)?;
    match node.value {
        Value::Flag(true) => return Some(Approximate::default()),
        Value::Flag(false) => return None,
        Value::Table(_) => {}
        _ => {
            stage.faults.add(node.at, format!("{FIELD} must be true or a table, and this is {}", node.value.what()));
            return None;
        }
    }
    let default = Approximate::default();
    let mut fields = Fields::of(FIELD, node, stage.faults)?;
    let value = fields.text("value").map(|(value, at)| {
        if let Some(rule) = file_name(value) {
            fields.faults.add(at, format!("value: {rule}"));
        }
        value.to_owned()
    });
    let estimate = match fields.text("estimate") {
        None | Some(("sum", _)) => Statistic::Sum,
        Some(("count", _)) => Statistic::Count,
        Some(("mean", _)) => Statistic::Mean,
        Some((text, at)) => {
            fields.faults.add(at, format!("estimate must be sum, count or mean, and this is \"{text}\""));
            Statistic::Sum
        }
    };
    let approximate = Approximate {
        drop: fields.number_within("drop", 0.0, 0.99).unwrap_or(default.drop),
        error: fields.number_within("error", 0.0, 1.0).unwrap_or(default.error),
        confidence: fields.number_within("confidence", 0.5, 0.999).unwrap_or(default.confidence),
        value,
        estimate,
    };
    fields.finish(|_| None);
    Some(approximate)
}
