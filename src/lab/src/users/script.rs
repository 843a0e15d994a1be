//! Actions of a modelled framework that its scenario lists, with times after its start.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;

use super::Behaviour;

/// An action of a framework in a step of its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptAction {
    /// Suppresses offers until it revives them, regardless of its work.
    Suppress,
    /// Revives offers, which removes the offer filters.
    Revive,
    /// Declines all offers that it holds.
    GiveBack,
    /// Tears the framework down: its tasks end, and it does not subscribe again.
    Leave,
}

/// A step of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Time of the step, after the framework's start.
    pub at: Duration,
    /// Behaviour of the framework from this step on.
    pub conduct: Behaviour,
    /// Action in this step; `None` if only the behaviour changes.
    pub action: Option<ScriptAction>,
}

/// A script: steps in the order of time.
#[derive(Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    /// Time of the framework's first event.
    born: Option<Time>,
}

impl Script {
    /// Creates a script of these steps.
    pub fn new(mut steps: Vec<Step>) -> Script {
        steps.sort_by_key(|step| step.at);
        Script { steps: steps.into(), born: None }
    }

    /// Removes and returns the next step that is due.
    pub(super) fn due(&mut self, now: Time) -> Option<Step> {
        let born = *self.born.get_or_insert(now);
        self.steps.pop_front_if(|step| born + step.at <= now)
    }

    /// Returns when the next step is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        Some(self.born? + self.steps.front()?.at)
    }
}
