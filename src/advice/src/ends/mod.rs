//! How tasks and jobs will end: a classifier that learns while it predicts.
//!
//! [`Ends`] is the classifier, with what it knows of jobs, users, machines and kinds of work; [`Network`] is the part
//! of it that learns. After "Failure analysis and prediction for big-data systems" (IEEE TSC 2017), which puts tasks
//! and jobs into the same four classes with neural networks.

mod features;
mod known;
mod network;
mod score;

use serde::{Deserialize, Serialize};

pub use features::{EVENT_FEATURES, JOB_FEATURES, JobStart, Launch};
pub use known::Ends;
pub use network::Network;
pub use score::{ClassScore, Score};

/// How a task or a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// It did its work.
    Finish,
    /// It ended with an error of its own.
    Fail,
    /// Its user, or what it depends on, ended it.
    Kill,
    /// The cluster took its machine away.
    Evict,
}

impl End {
    /// All of them, in their order.
    pub const ALL: [End; 4] = [End::Finish, End::Fail, End::Kill, End::Evict];

    /// Its place in [`End::ALL`].
    pub fn place(self) -> usize {
        self as usize
    }

    /// The name, as tables have it.
    pub fn name(self) -> &'static str {
        match self {
            End::Finish => "finish",
            End::Fail => "fail",
            End::Kill => "kill",
            End::Evict => "evict",
        }
    }

    /// The most probable one.
    pub fn likeliest(shares: &[f64; 4]) -> End {
        let best = |best: End, end: End| if shares[end.place()] > shares[best.place()] { end } else { best };
        End::ALL.into_iter().fold(End::Finish, best)
    }
}

#[cfg(test)]
mod tests;
