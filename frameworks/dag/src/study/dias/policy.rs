//! The policies of the study: what happens to jobs of low class when one of high class arrives, and how that one is
//! served. It runs nothing.

use std::fmt;

use crate::priority::{DropRatio, Sprint};

/// A policy for jobs of two classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policy {
    /// A job of high class evicts one of low class, which starts again from its beginning.
    Evicts,
    /// No job is evicted, and jobs of high class wait.
    Waits,
    /// No job is evicted, and jobs of low class drop tasks: differential approximation.
    Drops(DropRatio),
    /// No job is evicted, and jobs of high class sprint.
    Sprints(Sprint),
    /// Jobs of low class drop tasks, and jobs of high class sprint: DiAS.
    Both(DropRatio, Sprint),
    /// No task is evicted. A job of low class yields at the end of a wave, and continues later where it was; with drops
    /// and perhaps sprints. The framework does so with the order `fifo`.
    Yields(DropRatio, Option<Sprint>),
}

impl Policy {
    pub(super) fn drop(self) -> DropRatio {
        match self {
            Policy::Drops(drop) | Policy::Both(drop, _) | Policy::Yields(drop, _) => drop,
            _ => DropRatio::NONE,
        }
    }

    pub(super) fn sprint(self) -> Option<Sprint> {
        match self {
            Policy::Sprints(sprint) | Policy::Both(_, sprint) => Some(sprint),
            Policy::Yields(_, sprint) => sprint,
            _ => None,
        }
    }

    /// Returns whether the model covers the policy.
    pub(super) fn is_modelled(self) -> bool {
        !matches!(self, Policy::Evicts | Policy::Yields(..))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Evicts => f.write_str("P: evicts"),
            Policy::Waits => f.write_str("NP: waits"),
            Policy::Drops(drop) => write!(f, "DA: drops {drop}"),
            Policy::Sprints(sprint) => write!(f, "NPS: sprints {}", f64::from(sprint.speed) / 1000.0),
            Policy::Both(drop, sprint) => {
                write!(f, "DiAS: drops {drop}, sprints {}", f64::from(sprint.speed) / 1000.0)?;
                match sprint.timeout.as_secs_f64() {
                    0.0 => Ok(()),
                    timeout => write!(f, " after {timeout:.0} s"),
                }
            }
            Policy::Yields(DropRatio::NONE, None) => f.write_str("yields after a wave"),
            Policy::Yields(drop, sprint) => {
                write!(f, "yields, drops {drop}")?;
                sprint.map_or(Ok(()), |sprint| write!(f, ", sprints {}", f64::from(sprint.speed) / 1000.0))
            }
        }
    }
}
