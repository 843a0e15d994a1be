//! A run of a cluster one decision at a time, for learners and for whatever else decides outside. It decides nothing.

use super::run::{Question, Run};
use super::{EXECUTORS, Outcome, Setup};
use crate::order::{Action, History, Observation, grants};
use crate::study::StudyError;
use crate::study::job::Arrival;
use crate::study::random::Random;

/// A run that waits for the next decision.
///
/// [`Episode::observation`] lets time pass until there is something to decide, [`Episode::act`] decides it. The same
/// seed and the same actions lead to the same run.
pub struct Episode {
    run: Run,
    history: History,
    asked: Option<Question>,
}

impl Episode {
    /// A run of these jobs. The seed decides durations; `history` has the durations of earlier runs, which count only
    /// if the setup says that policies do not know them.
    ///
    /// # Errors
    /// A setting without sense, no jobs, or a stage without durations.
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
        let asked = Some(run.first_question()).filter(|_| !run.active.is_empty());
        Ok(Episode { run, history, asked })
    }

    /// What the next decision is about, after all that happens before it; none when nothing happens any more. Without
    /// an action in between it is the same again.
    pub fn observation(&mut self) -> Option<Observation> {
        if self.asked.is_none() {
            self.asked = self.run.next_question(&mut self.history);
        }
        let asked = self.asked.as_ref()?;
        Some(self.run.observe(asked.source, asked.count, &self.history))
    }

    /// Carries out the actions for the last observation, with the limits of [`grants`]. Executors that get nothing
    /// rest. Without a decision that waits, nothing happens.
    pub fn act(&mut self, observation: &Observation, actions: &[Action]) {
        let Some(asked) = self.asked.take() else { return };
        self.run.answer(asked, &grants(observation, actions));
    }

    /// The time, in milliseconds.
    pub fn now(&self) -> u64 {
        self.run.now
    }

    /// Milliseconds that jobs have spent in the cluster until now, all together: the sum whose mean over the jobs is
    /// their mean completion time when all have ended.
    pub fn waited(&self) -> u64 {
        self.run.waited
    }

    /// Jobs that have arrived and have not ended.
    pub fn active(&self) -> usize {
        self.run.active.len()
    }

    /// Jobs that have arrived or will arrive.
    pub fn jobs(&self) -> usize {
        self.run.arrivals.len()
    }

    /// What has come out, and the history with the durations of this run. Jobs that have not ended have the
    /// completion time NaN.
    pub fn finish(self) -> (Outcome, History) {
        (self.run.outcome, self.history)
    }
}
