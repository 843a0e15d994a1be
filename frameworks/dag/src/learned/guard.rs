//! Guards a learned order: a heuristic decides where the model cannot be trusted, and no job starves.
//!
//! The model decides as long as all of these conditions hold:
//!
//! - Every feature of a decision is in the range that training has seen.
//! - A decision takes no more multiplications than [`Guard::work`]. The scheduler reads no clock, and a count is the
//!   same on every machine.
//! - In a replay of the last minutes ([`Guard::every`]) it is not slower than fair shares or the heuristic by more than
//!   [`Guard::margin`].
//!
//! When a condition is violated, the heuristic makes this decision and all following ones, until no condition has been
//! violated for [`Guard::quiet`]. A job that has waited for [`Guard::times`] times what equal shares would have taken
//! comes first, under the model as under the heuristic.

use std::sync::Arc;

use super::fair_time::FairTimes;
use super::feature_ranges::UnseenFeature;
use super::policy::{Decima, Mode, RecordedChoice};
use super::shadow::{Shadow, Verdict};
use super::state::{JOB_NAMES, NODE_NAMES};
use super::weights::Model;
use crate::order::{Action, ChoiceView, Explanation, Heuristic, Observation, Policy, first};

/// Limit of the number of choices and of actions in an explanation.
const SHOWN: usize = 20;
/// Number of notes that are queued until they are taken; further ones are dropped.
const NOTES: usize = 100;

/// The limits of a guard. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guard {
    /// Heuristic that decides in place of the model.
    pub fallback: Heuristic,
    /// Limit of the multiplications of a decision; 40 million take about 15 ms.
    pub work: u64,
    /// Time without violations before the model decides again.
    pub quiet: u64,
    /// Interval between replays of the last minutes.
    pub every: u64,
    /// Time span of a replay.
    pub window: u64,
    /// Least number of jobs of a replay.
    pub least_jobs: usize,
    /// Fraction by which the model may be slower in a replay.
    pub margin: f64,
    /// Multiple of its fair time for which a job may wait.
    pub times: f64,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            fallback: Heuristic::ShortestRemaining,
            work: 40_000_000,
            quiet: 300_000,
            every: 120_000,
            window: 600_000,
            least_jobs: 6,
            margin: 0.1,
            times: 5.0,
        }
    }
}

/// The reason why the heuristic decides, and the time until which it does.
#[derive(Clone, Debug, PartialEq)]
struct Fallback {
    why: String,
    until: u64,
}

/// The learned order with its guard.
#[derive(Debug)]
pub struct GuardedOrder {
    model: Arc<Model>,
    network: Arc<super::Network>,
    decima: Decima,
    guard: Guard,
    active_fallback: Option<Fallback>,
    shadow: Shadow,
    judged: Option<u64>,
    times: FairTimes,
    last: LastDecision,
    notes: Vec<String>,
}

/// Returns the text that reports an unseen feature.
fn unseen_text(unseen: &UnseenFeature) -> String {
    let UnseenFeature { feature, value, bound } = unseen;
    let (side, bound_is) = if value > bound { ("above", "largest") } else { ("below", "smallest") };
    format!("the feature '{feature}' is {value:.2}, {side} the {bound_is} value in training, {bound:.2}")
}

/// The last decision, for an explanation.
#[derive(Debug, Default)]
struct LastDecision {
    observation: Arc<Observation>,
    chosen: Vec<RecordedChoice>,
    overdue: Vec<u64>,
    by_model: bool,
}

impl GuardedOrder {
    /// Creates a guarded order of this model with these limits.
    pub fn new(model: Arc<Model>, guard: Guard) -> GuardedOrder {
        let network = Arc::new(model.network.clone());
        GuardedOrder {
            decima: Decima::recording(network.clone(), Mode::Greedy),
            model,
            network,
            guard,
            active_fallback: None,
            shadow: Shadow::default(),
            judged: None,
            times: FairTimes::default(),
            last: LastDecision::default(),
            notes: Vec::new(),
        }
    }

    /// Returns the reason why the heuristic decides; `None` while the model does.
    pub fn fallback_reason(&self) -> Option<&str> {
        self.active_fallback.as_ref().map(|fallback| fallback.why.as_str())
    }

    fn fall_back(&mut self, why: String, now: u64) {
        if self.active_fallback.is_none() {
            let (name, quiet) = (self.guard.fallback, self.guard.quiet / 1000);
            self.note(format!("using {name} instead of the model for at least {quiet} s: {why}"));
        }
        self.active_fallback = Some(Fallback { why, until: now.saturating_add(self.guard.quiet) });
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES {
            self.notes.push(note);
        }
    }

    /// Replays the last minutes when it is time.
    fn judge(&mut self, now: u64) {
        let judged = *self.judged.get_or_insert(now);
        if now < judged.saturating_add(self.guard.every) {
            return;
        }
        self.judged = Some(now);
        let Some(verdict) = self.shadow.judge(&self.network, self.guard.fallback, self.guard.least_jobs) else {
            return;
        };
        if let Some(why) = self.reason_to_fall_back(verdict) {
            self.fall_back(why, now);
        }
    }

    fn reason_to_fall_back(&self, verdict: Verdict) -> Option<String> {
        let Verdict { model, fair, fallback, jobs } = verdict;
        let (name, best) =
            if fair < fallback { ("fair".to_owned(), fair) } else { (self.guard.fallback.to_string(), fallback) };
        let minutes = self.guard.window / 60_000;
        (model > best * (1.0 + self.guard.margin)).then(|| {
            format!(
                "replayed, the {jobs} jobs of the last {minutes} minutes take {model:.1} s each under the model and {best:.1} s \
                 under {name}"
            )
        })
    }

    /// Returns the model's actions, or the reason why the guard does not accept them.
    fn ask(&mut self, observation: &Observation) -> Result<Vec<Action>, String> {
        let (seen, most) = (&self.model.seen, self.guard.work);
        let mut spent = 0_u64;
        let mut is_first = true;
        self.decima.decide_if(observation, &mut |situation, cost| {
            spent = spent.saturating_add(cost);
            if spent > most {
                return Err(format!("a decision would take {spent} multiplications, more than {most}"));
            }
            // Within a decision only free resources and remaining tasks change, and they shrink: only the first
            // situation is checked.
            match std::mem::take(&mut is_first).then(|| seen.unseen(situation)).flatten() {
                Some(unseen) => Err(unseen_text(&unseen)),
                None => Ok(()),
            }
        })
    }

    fn by_model(&mut self, observation: &Observation) -> Option<Vec<Action>> {
        let now = observation.now;
        if self.active_fallback.as_ref().is_some_and(|fallback| now < fallback.until) {
            // A situation that training has not seen prolongs the time of the heuristic.
            let situation = self.decima.situation(observation);
            if let Some(unseen) = situation.and_then(|situation| self.model.seen.unseen(&situation)) {
                self.fall_back(unseen_text(&unseen), now);
            }
            return None;
        }
        match self.ask(observation) {
            Ok(actions) => {
                if self.active_fallback.take().is_some() {
                    self.note("the model decides again".to_owned());
                }
                Some(actions)
            }
            Err(why) => {
                self.fall_back(why, now);
                None
            }
        }
    }
}

impl Policy for GuardedOrder {
    fn decide(&mut self, observation: &Observation) -> Vec<Action> {
        self.decide_shared(Arc::new(observation.clone()))
    }

    fn decide_shared(&mut self, shared: Arc<Observation>) -> Vec<Action> {
        let observation = &*shared;
        self.shadow.observe(observation, self.guard.window);
        self.times.observe(observation);
        self.judge(observation.now);
        let overdue = self.times.overdue(observation, self.guard.times);
        let by_model = self.by_model(observation);
        self.last = LastDecision {
            observation: shared.clone(),
            chosen: self.decima.take_choices(),
            overdue: overdue.iter().map(|place| observation.jobs[*place].id).collect(),
            by_model: by_model.is_some(),
        };
        let mut actions = if overdue.is_empty() { Vec::new() } else { first(observation, &overdue) };
        // Overdue jobs have taken resources first. Actions for which no resources are left are ignored.
        actions.extend(by_model.unwrap_or_else(|| self.guard.fallback.decide(observation)));
        actions
    }

    fn name(&self) -> String {
        match &self.active_fallback {
            None => "decima".to_owned(),
            Some(_) => format!("decima ({})", self.guard.fallback),
        }
    }

    fn explain(&self) -> Option<Explanation> {
        let LastDecision { observation, chosen, overdue, by_model } = &self.last;
        let view = |chosen: &RecordedChoice| {
            let situation = &chosen.situation;
            let candidate = situation.candidates[chosen.choice.candidate];
            let state = &situation.jobs[candidate.job as usize];
            let open = observation.jobs.iter().filter(|job| job.stages.iter().any(|stage| !stage.is_done()));
            let features = NODE_NAMES.into_iter().zip(state.node(candidate.node as usize).iter().copied());
            let of_job = JOB_NAMES.into_iter().zip(situation.features(candidate.job));
            ChoiceView {
                job: open.map(|job| job.id).nth(candidate.job as usize).unwrap_or_default(),
                stage: state.stages[candidate.node as usize],
                limit: situation.limits(chosen.choice.candidate).at(chosen.choice.limit),
                probability: chosen.log.exp(),
                features: features.chain(of_job.skip(1)).collect(),
            }
        };
        let mut instead = self.guard.fallback.clone().decide(observation);
        instead.truncate(SHOWN);
        Some(Explanation {
            at: observation.now,
            by: if *by_model { "model".to_owned() } else { self.guard.fallback.to_string() },
            why: self.fallback_reason().unwrap_or_default().to_owned(),
            choices: chosen.iter().take(SHOWN).map(view).collect(),
            instead,
            overdue: overdue.clone(),
        })
    }

    fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}
