//! Predicts how tasks and jobs will end, with a classifier that learns while it predicts.
//!
//! [`EndClassifier`] is the classifier, with statistics of jobs, users, machines and kinds of work; [`Network`] is the
//! part of it that learns. After "Failure analysis and prediction for big-data systems" (IEEE TSC 2017), which
//! classifies tasks and jobs into the same four classes with neural networks.

mod classifier;
mod features;
mod network;
mod score;

use serde::{Deserialize, Serialize};

pub use classifier::EndClassifier;
pub use features::{EVENT_FEATURES, JOB_FEATURES, JobStart, Launch};
pub use network::Network;
pub use score::{ClassScore, Score};

/// The end of a task or a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The task or job finished its work.
    Finish,
    /// The task or job ended with an error of its own.
    Fail,
    /// The user, or a task or job that it depends on, ended it.
    Kill,
    /// The cluster withdrew the machine.
    Evict,
}

impl End {
    /// All ends, in their order.
    pub const ALL: [End; 4] = [End::Finish, End::Fail, End::Kill, End::Evict];

    /// Returns the index in [`End::ALL`].
    pub fn place(self) -> usize {
        self as usize
    }

    /// Returns the name that tables use.
    pub fn name(self) -> &'static str {
        match self {
            End::Finish => "finish",
            End::Fail => "fail",
            End::Kill => "kill",
            End::Evict => "evict",
        }
    }

    /// Returns the end with the largest share.
    pub fn likeliest(shares: &[f64; 4]) -> End {
        let best = |best: End, end: End| if shares[end.place()] > shares[best.place()] { end } else { best };
        End::ALL.into_iter().fold(End::Finish, best)
    }
}

#[cfg(test)]
mod tests;
