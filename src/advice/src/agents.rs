//! Agents whose tasks fail while the same work succeeds elsewhere.
//!
//! An agent is avoided when at least [`FAILURES_MIN`] of its tasks failed lately, half of those that ended, and
//! [`TIMES`] as many as the failures of the same jobs on other agents make likely. So a job that fails everywhere
//! counts against no agent. Avoidance ends by itself, first after [`FIRST`], and twice as late each time; the next
//! tasks of the agent are a test, and one failure is enough then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Time;

/// Failures that are needed to avoid an agent that was not avoided before.
pub const FAILURES_MIN: usize = 3;
/// How many times as many failures as elsewhere.
pub const TIMES: f64 = 3.0;
/// For how long an agent is avoided first, and at most.
pub const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_600);
/// Ends that are older say nothing about an agent.
const RECENT: Duration = Duration::from_secs(600);
/// Ends of an agent that are kept.
const ENDS_MAX: usize = 64;
/// Agents and jobs that are kept.
const AGENTS_MAX: usize = 50_000;
const JOBS_MAX: usize = 50_000;
/// This many ends of a job on other agents are evidence of how often it fails.
const EVIDENCE: f64 = 2.0;

/// The end of a task.
#[derive(Clone, Copy, Debug)]
struct End {
    at: Time,
    job: u64,
    failed: bool,
}

#[derive(Clone, Debug, Default)]
struct Agent {
    ends: VecDeque<End>,
    avoided_until: Option<Time>,
    /// How often in a row it was avoided.
    times: u32,
}

/// Ends, and failures among them.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    ended: f64,
    failed: f64,
}

impl Tally {
    fn add(&mut self, failed: bool) {
        self.ended += 1.0;
        self.failed += f64::from(u8::from(failed));
    }

    fn without(self, other: Tally) -> Tally {
        Tally { ended: (self.ended - other.ended).max(0.0), failed: (self.failed - other.failed).max(0.0) }
    }

    /// The share of failures, drawn towards a half while there are few ends.
    fn rate(self) -> f64 {
        (self.failed + 0.5) / (self.ended + 1.0)
    }
}

/// How an agent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is nothing against it.
    Good,
    /// It was avoided, and no task has succeeded on it since: one at a time.
    OnTrial,
    /// It is to be given no tasks.
    Avoided,
}

/// What is known of agents.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    agents: BTreeMap<String, Agent>,
    jobs: BTreeMap<u64, Tally>,
    all: Tally,
}

impl Agents {
    /// A task has ended, by itself. `well_elsewhere` is the number of its job's tasks that run well on other agents.
    /// Returns whether its agent is avoided now.
    pub fn ended(&mut self, agent: &str, job: u64, failed: bool, well_elsewhere: u32, now: Time) -> bool {
        if failed && self.is_avoided(agent) {
            return true;
        }
        if self.jobs.len() < JOBS_MAX || self.jobs.contains_key(&job) {
            self.jobs.entry(job).or_default().add(failed);
        }
        self.all.add(failed);
        if !self.agents.contains_key(agent) && self.agents.len() >= AGENTS_MAX {
            self.agents.retain(|_, agent| agent.avoided_until.is_some());
            if self.agents.len() >= AGENTS_MAX {
                return false;
            }
        }
        let entry = self.agents.entry(agent.to_owned()).or_default();
        entry.ends.retain(|end| end.at + RECENT > now);
        entry.ends.push_back(End { at: now, job, failed });
        if entry.ends.len() > ENDS_MAX {
            entry.ends.pop_front();
        }
        if !failed {
            // What was launched before it was avoided proves nothing about it.
            if entry.avoided_until.is_none() {
                entry.times = 0;
            }
        } else if entry.avoided_until.is_none() && self.is_failing(agent, job, well_elsewhere) {
            self.avoid(agent, now);
        }
        self.is_avoided(agent)
    }

    fn avoid(&mut self, agent: &str, now: Time) {
        let Some(entry) = self.agents.get_mut(agent) else { return };
        let time = FIRST.saturating_mul(1 << entry.times.min(10)).min(LONGEST);
        entry.avoided_until = Some(now + time);
        entry.times += 1;
        // These ends are the agent's, and say nothing of the jobs.
        for end in entry.ends.drain(..) {
            let mut one = Tally::default();
            one.add(end.failed);
            self.all = self.all.without(one);
            if let Some(tally) = self.jobs.get_mut(&end.job) {
                *tally = tally.without(one);
            }
        }
    }

    /// Whether an agent's tasks fail more than the same jobs do elsewhere.
    fn is_failing(&self, agent: &str, job: u64, well_elsewhere: u32) -> bool {
        let Some(entry) = self.agents.get(agent) else { return false };
        let (mut here, mut own) = (BTreeMap::<u64, Tally>::new(), Tally::default());
        for end in &entry.ends {
            here.entry(end.job).or_default().add(end.failed);
            own.add(end.failed);
        }
        let others = self.all.without(own).rate();
        let (mut seen, mut expected) = (Tally::default(), 0.0);
        for (number, tally) in here {
            let mut elsewhere = self.jobs.get(&number).copied().unwrap_or_default().without(tally);
            if number == job {
                elsewhere.ended += f64::from(well_elsewhere);
            }
            if elsewhere.ended >= EVIDENCE {
                seen.ended += tally.ended;
                seen.failed += tally.failed;
                expected += tally.ended * elsewhere.rate();
            } else {
                // It may be the job that fails: all its ends here together are one.
                seen.add(tally.failed > 0.0);
                expected += others;
            }
        }
        let least = if entry.times > 0 { 1.0 } else { FAILURES_MIN as f64 };
        seen.failed >= least && 2.0 * seen.failed >= seen.ended && seen.failed >= TIMES * expected
    }

    /// How an agent stands.
    pub fn standing(&self, agent: &str) -> Standing {
        match self.agents.get(agent) {
            Some(agent) if agent.avoided_until.is_some() => Standing::Avoided,
            Some(agent) if agent.times > 0 => Standing::OnTrial,
            _ => Standing::Good,
        }
    }

    /// Whether an agent is avoided.
    pub fn is_avoided(&self, agent: &str) -> bool {
        self.agents.get(agent).is_some_and(|agent| agent.avoided_until.is_some())
    }

    /// The agents that are avoided.
    pub fn avoided(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter(|(_, agent)| agent.avoided_until.is_some()).map(|(id, _)| id.as_str())
    }

    /// Ends avoidances whose time is over. Returns whether there were some.
    pub fn expire(&mut self, now: Time) -> bool {
        let mut changed = false;
        for agent in self.agents.values_mut() {
            if agent.avoided_until.is_some_and(|until| until <= now) {
                agent.avoided_until = None;
                changed = true;
            }
        }
        changed
    }

    /// When the next avoidance ends.
    pub fn next(&self) -> Option<Time> {
        self.agents.values().filter_map(|agent| agent.avoided_until).min()
    }

    /// A job is forgotten.
    pub fn forget_job(&mut self, job: u64) {
        self.jobs.remove(&job);
    }

    /// An agent is gone.
    pub fn lost(&mut self, agent: &str) {
        self.agents.remove(agent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn an_agent_that_fails_what_succeeds_elsewhere_is_avoided() {
        let mut agents = Agents::default();
        for n in 0..4 {
            assert!(!agents.ended("good", 1, false, 0, at(n)));
        }
        let avoided: Vec<bool> = (0..3).map(|n| agents.ended("bad", 1, true, 0, at(10 + n))).collect();
        assert_eq!(avoided, [false, false, true]);
        assert_eq!(agents.avoided().collect::<Vec<_>>(), ["bad"]);
        assert_eq!(agents.next(), Some(at(72)));
        assert!(!agents.expire(at(71)) && agents.expire(at(72)));
        assert_eq!((agents.standing("bad"), agents.standing("good")), (Standing::OnTrial, Standing::Good));
        // The next one is a test.
        assert!(agents.ended("bad", 1, true, 0, at(80)));
        assert_eq!(agents.next(), Some(at(200)), "twice as long");
        assert!(agents.expire(at(200)));
        assert!(!agents.ended("bad", 1, false, 0, at(210)));
        assert_eq!(agents.standing("bad"), Standing::Good);
        assert!(!agents.ended("bad", 1, true, 0, at(211)), "a success starts anew");
    }

    #[test]
    fn a_job_that_fails_everywhere_counts_against_no_agent() {
        let mut agents = Agents::default();
        for n in 0..50 {
            assert!(!agents.ended(["a", "b", "c"][n as usize % 3], 1, true, 0, at(n)));
        }
        // Nor does one that has run on one agent only, even beside others that succeed.
        for n in 0..50 {
            assert!(!agents.ended("b", 2, false, 0, at(n)) && !agents.ended("a", 3, true, 0, at(n)));
        }
    }

    #[test]
    fn failures_of_several_small_jobs_are_evidence() {
        let mut agents = Agents::default();
        for job in 0..10 {
            agents.ended("good", job, false, 0, at(1));
        }
        let avoided: Vec<bool> = (10..13).map(|job| agents.ended("bad", job, true, 0, at(2))).collect();
        assert_eq!(avoided, [false, false, true]);
    }

    #[test]
    fn a_service_that_runs_well_elsewhere_is_evidence() {
        let mut agents = Agents::default();
        let avoided: Vec<bool> = (0..3).map(|n| agents.ended("bad", 1, true, 4, at(n))).collect();
        assert_eq!(avoided, [false, false, true]);
    }

    #[test]
    fn what_is_long_ago_does_not_count() {
        let mut agents = Agents::default();
        assert!((0..9).all(|n| !agents.ended("good", 1, false, 0, at(n))));
        for n in 0..20 {
            assert!(!agents.ended("slow", 1, true, 0, at(1_000 * n)));
        }
    }

    proptest! {
        #[test]
        fn alike_agents_are_not_avoided_for_their_share(ends in prop::collection::vec((0..3_usize, any::<bool>()), 0..200)) {
            // A success on each agent with every failure: no agent is worse than a half.
            let mut agents = Agents::default();
            for (n, (agent, failed)) in ends.into_iter().enumerate() {
                let name = ["a", "b", "c"][agent];
                agents.ended(name, 1, false, 0, at(n as u64));
                agents.ended(name, 1, false, 0, at(n as u64));
                prop_assert!(!agents.ended(name, 1, failed, 0, at(n as u64)));
            }
        }
    }
}
