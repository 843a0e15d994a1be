//! Runs a cluster one decision at a time, for learners and other external deciders. It decides nothing.

use super::run::{PendingDecision, Run};
use super::{EXECUTORS, Outcome, Setup};
use crate::order::{Action, History, Observation, grants};
use crate::study::StudyError;
use crate::study::job::Arrival;
use crate::study::random::Random;

/// A run that waits for the next decision.
///
/// [`Episode::observation`] advances the time until there is something to decide, [`Episode::act`] decides it. The same
/// seed and the same actions lead to the same run.
pub struct Episode {
    run: Run,
    history: History,
    pending: Option<PendingDecision>,
}

impl Episode {
    /// Creates a run of these jobs. The seed decides durations. `history` has the durations of earlier runs, which are
    /// used only if the setup says that policies do not know them.
    ///
    /// # Errors
    /// A setting is invalid, there are no jobs, or a stage has no durations.
    pub fn new(setup: Setup, arrivals: Vec<Arrival>, history: History, seed: u64) -> Result<Episode, StudyError> {
        if setup.executors == 0 || setup.executors > EXECUTORS {
            return Err(StudyError::Setting { setting: "executors", rule: "must be 1 or more, and not above 100,000" });
        }
        let incomplete = |arrival: &Arrival| arrival.job.stages.iter().any(|stage| stage.durations.is_empty());
        if arrivals.is_empty() || arrivals.iter().any(incomplete) {
            return Err(StudyError::Setting {
                setting: "jobs",
                rule: "must be one or more, with durations for each stage",
            });
        }
        let run = Run::new(setup, arrivals, Random::new(seed, "durations"));
        let pending = Some(run.first_decision()).filter(|_| !run.active.is_empty());
        Ok(Episode { run, history, pending })
    }

    /// Returns the observation for the next decision, after all events before it; `None` when there are no more events.
    /// Without an action in between it returns the same observation again.
    pub fn observation(&mut self) -> Option<Observation> {
        if self.pending.is_none() {
            self.pending = self.run.next_decision(&mut self.history);
        }
        let pending = self.pending.as_ref()?;
        Some(self.run.observe(pending.source, pending.count, &self.history))
    }

    /// Applies the actions to the last observation, within the limits of [`grants`]. Executors that get nothing stay
    /// idle. Without a pending decision it does nothing.
    pub fn act(&mut self, observation: &Observation, actions: &[Action]) {
        let Some(pending) = self.pending.take() else { return };
        self.run.answer(pending, &grants(observation, actions));
    }

    /// Returns the time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.run.now
    }

    /// Returns the milliseconds that jobs have spent in the cluster so far, summed over the jobs. When all have ended,
    /// this sum divided by the number of jobs is the mean completion time.
    pub fn waited(&self) -> u64 {
        self.run.waited
    }

    /// Returns the number of jobs that have arrived and have not ended.
    pub fn active(&self) -> usize {
        self.run.active.len()
    }

    /// Returns the number of all jobs, including those that have not arrived.
    pub fn jobs(&self) -> usize {
        self.run.arrivals.len()
    }

    /// Returns the outcome, and the history with the durations of this run. Jobs that have not ended have the
    /// completion time NaN.
    pub fn finish(self) -> (Outcome, History) {
        (self.run.outcome, self.history)
    }
}
