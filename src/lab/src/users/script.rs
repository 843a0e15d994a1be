//! Actions of a modelled framework that its scenario lists, with times after its start.

use std::collections::VecDeque;
use std::time::Duration;

use base::Time;

use super::Behaviour;

/// Something that a framework does once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    /// Suppresses offers until it revives, regardless of its work.
    Suppress,
    /// Wants offers again, and forgets its refusals.
    Revive,
    /// Declines all offers that it holds.
    GiveBack,
    /// Tears itself down: its tasks end, and it does not come back.
    Leave,
}

/// A line of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When, after the framework's start.
    pub at: Duration,
    /// How it behaves from then on.
    pub conduct: Behaviour,
    /// What it does then.
    pub deed: Option<Deed>,
}

/// A script: its steps in the order of time.
#[derive(Debug, Default)]
pub struct Script {
    steps: VecDeque<Step>,
    /// Time of the framework's first event.
    born: Option<Time>,
}

impl Script {
    /// A script of these steps.
    pub fn new(mut steps: Vec<Step>) -> Script {
        steps.sort_by_key(|step| step.at);
        Script { steps: steps.into(), born: None }
    }

    /// The next step that is due.
    pub(super) fn due(&mut self, now: Time) -> Option<Step> {
        let born = *self.born.get_or_insert(now);
        self.steps.pop_front_if(|step| born + step.at <= now)
    }

    /// When the next step is due.
    pub(super) fn next_at(&self) -> Option<Time> {
        Some(self.born? + self.steps.front()?.at)
    }
}
