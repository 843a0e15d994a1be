//! The heuristics by name. The other files of this directory implement them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::observation::Observation;
use super::{Policy, deadline, fair, packing, shortest};

/// A policy without state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Heuristic {
    /// Serves jobs in the order of their arrival.
    Fifo,
    /// Gives each job the same number of executors.
    Fair,
    /// Gives executors by the power of a job's work: `weighted -0.5`.
    Weighted(f64),
    /// Serves the job with the least work first, and in a job the stages on the longest path.
    ShortestJob,
    /// Serves the job with the least remaining work first, with shares by the power -0.3 of the remaining work.
    ShortestRemaining,
    /// Serves the stage whose demand matches the free resources best, and prefers short jobs.
    Tetris,
    /// Serves short jobs first, and in a job its troublesome stages.
    Graphene,
    /// Serves the earliest deadline that can still be met first, and jobs without one last.
    Deadline,
}

impl Policy for Heuristic {
    fn decide(&mut self, observation: &Observation) -> Vec<Action> {
        match *self {
            Heuristic::Fifo => fair::fifo(observation),
            Heuristic::Fair => fair::fair(observation),
            Heuristic::Weighted(alpha) => fair::weighted(observation, alpha),
            Heuristic::ShortestJob => shortest::critical_path(observation),
            Heuristic::ShortestRemaining => fair::remaining(observation),
            Heuristic::Tetris => packing::tetris(observation, 1.0),
            Heuristic::Graphene => packing::graphene(observation),
            Heuristic::Deadline => deadline::earliest(observation),
        }
    }

    fn name(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Heuristic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Heuristic::Fifo => f.write_str("fifo"),
            Heuristic::Fair => f.write_str("fair"),
            Heuristic::Weighted(alpha) => write!(f, "weighted {alpha}"),
            Heuristic::ShortestJob => f.write_str("sjf-cp"),
            Heuristic::ShortestRemaining => f.write_str("remaining"),
            Heuristic::Tetris => f.write_str("tetris"),
            Heuristic::Graphene => f.write_str("graphene"),
            Heuristic::Deadline => f.write_str("deadline"),
        }
    }
}

/// The error for a text that names no heuristic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an order: must be fifo, fair, 'weighted ALPHA' with -5 to 5, sjf-cp, remaining, tetris, graphene or deadline"
)]
pub struct UnknownHeuristic(String);

impl FromStr for Heuristic {
    type Err = UnknownHeuristic;

    fn from_str(text: &str) -> Result<Heuristic, UnknownHeuristic> {
        let alpha = |text: &str| text.trim().parse().ok().filter(|alpha: &f64| alpha.abs() <= 5.0);
        Ok(match text {
            "fifo" => Heuristic::Fifo,
            "fair" => Heuristic::Fair,
            "sjf-cp" => Heuristic::ShortestJob,
            "remaining" => Heuristic::ShortestRemaining,
            "tetris" => Heuristic::Tetris,
            "graphene" => Heuristic::Graphene,
            "deadline" => Heuristic::Deadline,
            other => match other.strip_prefix("weighted ").and_then(alpha) {
                Some(alpha) => Heuristic::Weighted(alpha),
                None => return Err(UnknownHeuristic(text.to_owned())),
            },
        })
    }
}

impl TryFrom<String> for Heuristic {
    type Error = UnknownHeuristic;

    fn try_from(text: String) -> Result<Heuristic, UnknownHeuristic> {
        text.parse()
    }
}

impl From<Heuristic> for String {
    fn from(heuristic: Heuristic) -> String {
        heuristic.to_string()
    }
}
