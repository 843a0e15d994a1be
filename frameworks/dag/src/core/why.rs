//! Explains in words why tasks of a job wait.

use std::collections::BTreeSet;

use base::Time;
use jobs::NAMES;

use super::Core;
use super::record::{Goal, Phase, Record, StagePhase};

/// Limit of the number of reasons.
const REASONS_MAX: usize = 20;
/// Limit of the number of an order's choices that are shown for a job.
const CHOICES_MAX: usize = 3;

impl Core {
    /// Returns one line for each stage that does not run although it should.
    pub(super) fn why(&self, record: &Record, now: Time) -> Vec<String> {
        if record.is_over() || record.goal != Goal::Run {
            return Vec::new();
        }
        let mut why = Vec::new();
        if !self.offer_state.subscribed {
            why.push("there is no connection to a master".to_owned());
        }
        for stage in 0..record.stages.len() {
            why.extend(self.why_stage(record, stage, now));
        }
        why.truncate(REASONS_MAX);
        why.extend(self.order_says(record));
        why
    }

    /// Returns the explanation of a learned order for a job: lines that begin with `order:`.
    fn order_says(&self, record: &Record) -> Vec<String> {
        let Some(said) = self.order.explain() else { return Vec::new() };
        let name = |stage: u32| record.job.stages.get(stage as usize).map_or("?", |stage| stage.name.as_str());
        let mut lines = Vec::new();
        if !said.why.is_empty() {
            lines.push(format!("order: using {} instead of the model: {}", said.by, said.why));
        }
        if said.overdue.contains(&record.serial) {
            lines.push("order: it has waited for too long, and is scheduled first".to_owned());
        }
        for choice in said.choices.iter().filter(|choice| choice.job == record.serial).take(CHOICES_MAX) {
            let seen: Vec<String> = choice.features.iter().map(|(name, value)| format!("{name} {value:.2}")).collect();
            let (stage, limit, probability) = (name(choice.stage), choice.limit, choice.probability);
            let seen = seen.join(", ");
            lines.push(format!(
                "order: the model gives {stage} up to {limit} tasks, with probability {probability:.2}; features: \
                 {seen}"
            ));
        }
        for action in said.instead.iter().filter(|action| action.job == record.serial).take(CHOICES_MAX) {
            let by = if said.by == "model" { "the heuristic would give" } else { "the heuristic gives" };
            lines.push(format!("order: {by} {} up to {} tasks", name(action.stage), action.limit));
        }
        lines
    }

    fn why_stage(&self, record: &Record, stage: usize, now: Time) -> Option<String> {
        let (run, name) = (&record.stages[stage], &record.stage(stage).name);
        match run.head.phase {
            StagePhase::Done => return None,
            StagePhase::Planning => return Some(format!("{name}: its input files are being scanned")),
            _ if !record.is_unblocked(stage) => {
                let open = |&&before: &&usize| record.stages[before].head.phase != StagePhase::Done;
                let before: Vec<&str> =
                    record.stage(stage).after.iter().filter(open).map(|&b| record.stage(b).name.as_str()).collect();
                return Some(format!("{name}: waits for {}", before.join(", ")));
            }
            _ => {}
        }
        let later = run.tasks().values().filter(|t| matches!(t.phase, Phase::Waiting(at) if at > now)).count();
        if later > 0 {
            return Some(format!("{name}: {later} tasks have failed or were lost, and wait for their next attempt"));
        }
        let waiting = run.ready.len() + run.fresh() as usize;
        if waiting == 0 {
            return None;
        }
        let (need, checker) = (record.stage(stage).need, &run.checker);
        if self.known_agents.agents().next().is_none() {
            return Some(format!("{name}: no offers have arrived so far"));
        }
        let allowed = || self.known_agents.agents().filter(|agent| checker.broken_by_agent(*agent).is_none());
        if allowed().next().is_none() {
            let broken: BTreeSet<String> = self
                .known_agents
                .agents()
                .filter_map(|agent| checker.broken_by_agent(agent))
                .map(|r| r.to_string())
                .collect();
            let broken = Vec::from_iter(broken).join("', '");
            return Some(format!("warning: {name}: no agent that has offered so far satisfies '{broken}'"));
        }
        let most = allowed().fold(jobs::Need::default(), |most, agent| most.upper(&agent.most));
        if let Some(kind) = need.lacks(&most) {
            let (kind_name, needed, largest) = (NAMES[kind], need.amount(kind), most.amount(kind));
            return Some(format!(
                "warning: {name}: a task needs {kind_name} {needed}, and no agent has offered more than {largest} so far"
            ));
        }
        let fits = allowed().filter(|agent| need.fits(&agent.left)).count();
        Some(match fits {
            0 => format!("{name}: {waiting} tasks wait for room; no agent has {need} left"),
            _ => format!(
                "{name}: {waiting} tasks wait for offers, or for other jobs: the order is {}",
                self.order.name()
            ),
        })
    }
}
