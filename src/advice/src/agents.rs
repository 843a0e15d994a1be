//! Finds agents whose tasks fail while the same work succeeds elsewhere.
//!
//! An agent is avoided when at least [`FAILURES_MIN`] of its tasks failed lately, half of those that ended, and
//! [`TIMES`] as many as the failures of the same jobs on other agents make likely. So a job that fails everywhere
//! counts against no agent. Avoidance ends by itself, first after [`FIRST`], and after twice the time each time; the
//! next tasks of the agent are a test, and one failure is enough then.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use base::Time;

/// Number of failures that are needed to avoid an agent that was not avoided before.
pub const FAILURES_MIN: usize = 3;
/// Ratio of an agent's failures to the expected ones from which the agent is avoided.
pub const TIMES: f64 = 3.0;
/// Durations for which an agent is avoided: at first, and at most.
pub const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3_600);
/// Age beyond which the end of a task is no evidence.
const RECENT: Duration = Duration::from_secs(600);
/// Interval at which the ends of all agents are examined for their age.
const SWEEP: Duration = Duration::from_secs(60);
/// Number of ends that are kept for an agent.
const ENDS_MAX: usize = 64;
/// Number of agents and of jobs that are kept.
const AGENTS_MAX: usize = 50_000;
const JOBS_MAX: usize = 50_000;
/// Number of ends of a job on other agents from which they are evidence of the job's own failure rate.
const EVIDENCE: f64 = 2.0;

/// The end of a task on an agent.
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
    /// Number of times in a row that the agent was avoided.
    times: u32,
}

/// Number of ends, and of failures among them.
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

    /// Returns the fraction of failures, biased towards a half while there are few ends.
    fn rate(self) -> f64 {
        (self.failed + 0.5) / (self.ended + 1.0)
    }
}

/// Ends of the agents' tasks that are kept, by job and together.
#[derive(Clone, Debug, Default)]
struct Tallies {
    jobs: BTreeMap<u64, Tally>,
    all: Tally,
}

impl Tallies {
    fn add(&mut self, end: End) {
        self.all.add(end.failed);
        if self.jobs.len() < JOBS_MAX || self.jobs.contains_key(&end.job) {
            self.jobs.entry(end.job).or_default().add(end.failed);
        }
    }

    fn remove(&mut self, end: End) {
        let mut one = Tally::default();
        one.add(end.failed);
        self.all = self.all.without(one);
        if let Some(tally) = self.jobs.get_mut(&end.job) {
            *tally = tally.without(one);
            if tally.ended == 0.0 {
                self.jobs.remove(&end.job);
            }
        }
    }
}

/// The standing of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is no evidence against the agent.
    Good,
    /// The agent was avoided, and no task has succeeded on it since. It should receive one task at a time.
    OnTrial,
    /// The agent should receive no tasks.
    Avoided,
}

/// Ends of tasks by agent and by job.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    agents: BTreeMap<String, Agent>,
    /// Sums of the ends in `agents`: agents are compared by the same number of ends, and by ends of the same time.
    tallies: Tallies,
    swept: Option<Time>,
}

impl Agents {
    /// Records the end of a task that was not killed, and returns whether its agent is avoided now.
    ///
    /// `well_elsewhere` is the number of its job's tasks that run well on other agents.
    pub fn ended(&mut self, agent: &str, job: u64, failed: bool, well_elsewhere: u32, now: Time) -> bool {
        if failed && self.is_avoided(agent) {
            return true;
        }
        if self.swept.is_none_or(|swept| swept + SWEEP <= now) {
            self.swept = Some(now);
            self.remove_old(now);
        }
        if !self.agents.contains_key(agent) && self.agents.len() >= AGENTS_MAX && !self.make_room() {
            return false;
        }
        let (entry, end) = (self.agents.entry(agent.to_owned()).or_default(), End { at: now, job, failed });
        entry.ends.push_back(end);
        self.tallies.add(end);
        if entry.ends.len() > ENDS_MAX
            && let Some(old) = entry.ends.pop_front()
        {
            self.tallies.remove(old);
        }
        if !failed {
            // The success of a task that was launched before the avoidance is no evidence.
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
        // These ends are attributed to the agent, so they do not count for the jobs.
        for end in entry.ends.drain(..) {
            self.tallies.remove(end);
        }
    }

    /// Removes ends that are no longer evidence.
    fn remove_old(&mut self, now: Time) {
        for entry in self.agents.values_mut() {
            while let Some(old) = entry.ends.pop_front_if(|end| end.at + RECENT <= now) {
                self.tallies.remove(old);
            }
        }
    }

    /// Removes the agents that are not avoided. Returns whether there were any.
    fn make_room(&mut self) -> bool {
        let tallies = &mut self.tallies;
        self.agents.retain(|_, agent| {
            let stays = agent.avoided_until.is_some();
            if !stays {
                agent.ends.drain(..).for_each(|end| tallies.remove(end));
            }
            stays
        });
        self.agents.len() < AGENTS_MAX
    }

    /// Returns whether an agent's tasks fail more than the same jobs do elsewhere.
    fn is_failing(&self, agent: &str, job: u64, well_elsewhere: u32) -> bool {
        let Some(entry) = self.agents.get(agent) else { return false };
        let (mut here, mut own) = (BTreeMap::<u64, Tally>::new(), Tally::default());
        for end in &entry.ends {
            here.entry(end.job).or_default().add(end.failed);
            own.add(end.failed);
        }
        let others = self.tallies.all.without(own).rate();
        let (mut seen, mut expected) = (Tally::default(), 0.0);
        for (number, tally) in here {
            let mut elsewhere = self.tallies.jobs.get(&number).copied().unwrap_or_default().without(tally);
            if number == job {
                elsewhere.ended += f64::from(well_elsewhere);
            }
            if elsewhere.ended >= EVIDENCE {
                seen.ended += tally.ended;
                seen.failed += tally.failed;
                expected += tally.ended * elsewhere.rate();
            } else {
                // The job itself may fail: all its ends on this agent together count as one.
                seen.add(tally.failed > 0.0);
                expected += others;
            }
        }
        let least = if entry.times > 0 { 1.0 } else { FAILURES_MIN as f64 };
        seen.failed >= least && 2.0 * seen.failed >= seen.ended && seen.failed >= TIMES * expected
    }

    /// Returns the standing of an agent.
    pub fn standing(&self, agent: &str) -> Standing {
        match self.agents.get(agent) {
            Some(agent) if agent.avoided_until.is_some() => Standing::Avoided,
            Some(agent) if agent.times > 0 => Standing::OnTrial,
            _ => Standing::Good,
        }
    }

    /// Returns whether an agent is avoided.
    pub fn is_avoided(&self, agent: &str) -> bool {
        self.agents.get(agent).is_some_and(|agent| agent.avoided_until.is_some())
    }

    /// Returns the ids of the avoided agents.
    pub fn avoided(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter(|(_, agent)| agent.avoided_until.is_some()).map(|(id, _)| id.as_str())
    }

    /// Ends the avoidances whose time has passed. Returns whether there were any.
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

    /// Returns the time at which the next avoidance ends.
    pub fn next(&self) -> Option<Time> {
        self.agents.values().filter_map(|agent| agent.avoided_until).min()
    }

    /// Forgets a job that has ended.
    pub fn forget_job(&mut self, job: u64) {
        self.tallies.jobs.remove(&job);
    }

    /// Forgets an agent that is gone.
    pub fn lost(&mut self, agent: &str) {
        if let Some(entry) = self.agents.remove(agent) {
            entry.ends.into_iter().for_each(|end| self.tallies.remove(end));
        }
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
        // After an avoidance the next task is a test.
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
        // Neither does a job that has run on one agent only, even beside other jobs that succeed.
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

    #[test]
    fn a_job_that_begins_to_fail_everywhere_counts_against_no_agent() {
        let mut agents = Agents::default();
        let names = ["a", "b", "c", "d"];
        for n in 0..20_000 {
            agents.ended(names[n as usize % 4], 1, false, 0, at(n / 100));
        }
        for n in 0..2_000 {
            assert!(!agents.ended(names[n as usize % 4], 1, true, 0, at(200 + n / 100)), "failure {n}");
        }
    }

    #[test]
    fn the_only_agent_is_not_compared_with_its_past() {
        let mut agents = Agents::default();
        for n in 0..500 {
            agents.ended("only", 1, false, 0, at(n));
        }
        for n in 0..200 {
            assert!(!agents.ended("only", 1, true, 0, at(2_000 + n)), "failure {n}");
        }
    }

    proptest! {
        // At any time the tallies are the sums of the ends that are kept, whatever ends or is lost.
        #[test]
        fn tallies_are_sums(steps in prop::collection::vec((0..5_u8, 0..4_u64, any::<bool>(), 0..200_u64), 0..400)) {
            let mut agents = Agents::default();
            let mut now = 0;
            for (agent, job, failed, after) in steps {
                now += after;
                let name = ["a", "b", "c", "d"].get(usize::from(agent)).copied();
                match name {
                    Some(name) => _ = agents.ended(name, job, failed, 0, at(now)),
                    None => agents.lost(["a", "b", "c", "d"][job as usize]),
                }
                agents.expire(at(now));
                let mut sums = Tallies::default();
                agents.agents.values().flat_map(|agent| &agent.ends).for_each(|end| sums.add(*end));
                prop_assert_eq!(format!("{:?}", agents.tallies), format!("{sums:?}"));
            }
        }

        #[test]
        fn alike_agents_are_not_avoided_for_their_share(ends in prop::collection::vec((0..3_usize, any::<bool>()), 0..200)) {
            // Each failure is accompanied by a success on each agent, so no agent fails more than half of its tasks.
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
