//! The names of the placement policies. The table in [`crate::place`] describes each.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A placement policy: chooses among the agents on which a task fits. See [`crate::place`] for sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The agent that was offered first.
    FirstFit,
    /// The agent with the least free amounts.
    #[default]
    BestFit,
    /// The agent with the largest free amounts.
    WorstFit,
    /// The agent whose free amounts have the proportions of the task's need (Tetris).
    DotProduct,
    /// The agent with the least sum of squares of what would be left (L2).
    LeastResidual,
    /// As `FirstFit`, with the largest tasks of the queue placed first.
    FirstFitDecreasing,
}

impl Policy {
    /// All policies.
    pub const ALL: [Policy; 6] = [
        Policy::FirstFit,
        Policy::BestFit,
        Policy::WorstFit,
        Policy::DotProduct,
        Policy::LeastResidual,
        Policy::FirstFitDecreasing,
    ];

    /// Returns the name of the policy in flags and job files.
    pub fn name(self) -> &'static str {
        match self {
            Policy::FirstFit => "first-fit",
            Policy::BestFit => "best-fit",
            Policy::WorstFit => "worst-fit",
            Policy::DotProduct => "dot-product",
            Policy::LeastResidual => "least-residual",
            Policy::FirstFitDecreasing => "first-fit-decreasing",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error of a text that is not the name of a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a policy; take first-fit, best-fit, worst-fit (or spread), dot-product (or tetris), least-residual \
     (or l2), or first-fit-decreasing (or ffd)"
)]
pub struct UnknownPolicy(pub String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Policy, UnknownPolicy> {
        Ok(match text {
            "spread" => Policy::WorstFit,
            "tetris" => Policy::DotProduct,
            "l2" => Policy::LeastResidual,
            "ffd" => Policy::FirstFitDecreasing,
            "bin-pack" => Policy::BestFit,
            name => {
                let named = Policy::ALL.into_iter().find(|p| p.name() == name);
                return named.ok_or_else(|| UnknownPolicy(name.to_owned()));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for policy in Policy::ALL {
            assert_eq!(policy.name().parse(), Ok(policy));
            assert_eq!(serde_json::to_string(&policy).unwrap(), format!("\"{policy}\""));
        }
        assert_eq!("tetris".parse(), Ok(Policy::DotProduct));
        assert!("random".parse::<Policy>().unwrap_err().to_string().starts_with("'random' is not a policy"));
    }
}
