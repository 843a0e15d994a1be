//! The second-level settings: what a framework decides for itself once resources are offered to it.
//!
//! They are the variables of Saha, Beltre and Govindaraju, "Exploring the Fairness and Resource Distribution in an
//! Apache Mesos Environment" (CLOUD 2018): the placement policy, how long an offer is held, how long it is refused,
//! and how fast tasks arrive. They decide nothing by themselves.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use advice::Risk;
use serde::{Deserialize, Serialize};

use crate::job::seconds;
use crate::place::Policy;

/// How a scheduler behaves towards the cluster. In JSON or TOML times are seconds, and what is missing is the default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// Where a task goes among the offers that have room for it.
    pub policy: Policy,
    /// How long an offer that nothing was placed on is kept, in case work comes for it. Zero: not at all.
    #[serde(with = "seconds")]
    pub hold: Duration,
    /// Up to this much is added to `hold`, differently for each offer.
    #[serde(with = "seconds")]
    pub hold_jitter: Duration,
    /// Whether held offers are given back as soon as nothing waits, before their holding time is over.
    pub decline_fast: bool,
    /// Time for which offers that waiting tasks could not use are refused.
    #[serde(with = "seconds")]
    pub refuse: Duration,
    /// For how long resources are refused that come while nothing waits.
    #[serde(with = "seconds")]
    pub refuse_idle: Duration,
    /// For how long what tasks leave over of an offer that is used is refused.
    #[serde(with = "seconds")]
    pub refuse_rest: Duration,
    /// Whether to ask for no offers while nothing waits.
    pub suppress_idle: bool,
    /// Shortest interval between revives when work arrives. `None`: never, refusals expire.
    #[serde(with = "seconds::optional")]
    pub revive_every: Option<Duration>,
    /// Rate at which waiting tasks may use offers; `None` for no limit.
    pub pace: Option<Pace>,
    /// The most tasks that are launched on one agent's offers at once.
    pub tasks_per_offer: Option<u32>,
    /// Decides which offer gets how much of `hold_jitter`.
    pub seed: u64,
    /// The risk of a shortage that launches keep to, which ask for what the job's tasks were measured to use. `None`:
    /// they ask for what the job file says.
    pub active_sizing: Option<Risk>,
    /// Whether agents are avoided whose tasks failed lately while the same jobs succeed elsewhere.
    pub avoid_failing_agents: bool,
}

/// Arrival smoothing: at most this many tasks in each such time.
///
/// Many tasks in a long time make batches, one task in a short time makes a steady trickle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Number of tasks.
    pub tasks: u32,
    /// In which time.
    #[serde(with = "seconds")]
    pub every: Duration,
}

impl Default for Knobs {
    /// This framework's own way: tasks are packed, nothing is held, and the cluster is left alone while nothing waits.
    fn default() -> Knobs {
        Knobs {
            policy: Policy::BestFit,
            hold: Duration::ZERO,
            hold_jitter: Duration::ZERO,
            decline_fast: true,
            refuse: Duration::from_secs(5),
            refuse_idle: Duration::from_secs(5),
            refuse_rest: Duration::from_secs(5),
            suppress_idle: true,
            revive_every: Some(Duration::from_millis(500)),
            pace: None,
            tasks_per_offer: None,
            seed: 0,
            active_sizing: None,
            avoid_failing_agents: false,
        }
    }
}

impl Knobs {
    /// How long offers are held.
    pub(crate) fn holding(&self) -> jobs::offers::Hold {
        jobs::offers::Hold { least: self.hold, jitter: self.hold_jitter, seed: self.seed }
    }
}

/// Another framework's way with offers, by its documented timings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// [`Knobs::default`].
    Tepui,
    /// Marathon: answers at once, first fit, refuses what it declines for 120 s (`--decline_offer_duration`) and the
    /// rest of what it uses not at all, revives when an app comes but at most every 5 s
    /// (`--min_revive_offers_interval`), 100 tasks on an offer (`--max_instances_per_offer` as DC/OS sets it).
    Marathon,
    /// Aurora: holds for 5 min (`-min_offer_hold_time`) and up to 1 min more (`-offer_hold_jitter_window`), refuses
    /// for 5 s (`-offer_filter_duration`), 40 attempts a second with 5 tasks each, first fit, no revive.
    Aurora,
    /// Spark, coarse-grained: spreads its executors, answers at once, refuses for 5 s while it needs more and for 120 s
    /// when it has all it needs (SPARK-13001), no suppress, no revive.
    Spark,
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Behaviour; 4] = [Behaviour::Tepui, Behaviour::Marathon, Behaviour::Aurora, Behaviour::Spark];

    /// The settings that make up this behaviour.
    pub fn knobs(self) -> Knobs {
        let seconds = Duration::from_secs;
        let own = Knobs::default();
        match self {
            Behaviour::Tepui => own,
            Behaviour::Marathon => Knobs {
                policy: Policy::FirstFit,
                refuse: seconds(120),
                refuse_idle: seconds(120),
                refuse_rest: Duration::ZERO,
                revive_every: Some(seconds(5)),
                tasks_per_offer: Some(100),
                ..own
            },
            Behaviour::Aurora => Knobs {
                policy: Policy::FirstFit,
                hold: seconds(300),
                hold_jitter: seconds(60),
                decline_fast: false,
                suppress_idle: false,
                revive_every: None,
                pace: Some(Pace { tasks: 5, every: Duration::from_millis(25) }),
                ..own
            },
            Behaviour::Spark => Knobs {
                policy: Policy::WorstFit,
                refuse_idle: seconds(120),
                suppress_idle: false,
                revive_every: None,
                ..own
            },
        }
    }

    /// The name, as flags have it.
    pub fn name(self) -> &'static str {
        match self {
            Behaviour::Tepui => "tepui",
            Behaviour::Marathon => "marathon",
            Behaviour::Aurora => "aurora",
            Behaviour::Spark => "spark",
        }
    }
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No behaviour has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a behaviour; take tepui, marathon, aurora or spark")]
pub struct UnknownBehaviour(String);

impl FromStr for Behaviour {
    type Err = UnknownBehaviour;

    fn from_str(text: &str) -> Result<Behaviour, UnknownBehaviour> {
        Behaviour::ALL.into_iter().find(|b| b.name() == text).ok_or_else(|| UnknownBehaviour(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for behaviour in Behaviour::ALL {
            assert_eq!(behaviour.name().parse(), Ok(behaviour));
        }
        assert!("mesos".parse::<Behaviour>().is_err());
    }

    #[test]
    fn settings_are_written_and_read() {
        for behaviour in Behaviour::ALL {
            let json = serde_json::to_string(&behaviour.knobs()).unwrap();
            assert_eq!(serde_json::from_str::<Knobs>(&json).unwrap(), behaviour.knobs(), "{json}");
        }
        let some: Knobs =
            toml::from_str("policy = 'worst-fit'\nhold = 1.5\npace = { tasks = 2, every = 0.5 }").unwrap();
        let pace = Some(Pace { tasks: 2, every: Duration::from_millis(500) });
        let hold = Duration::from_millis(1_500);
        assert_eq!(some, Knobs { policy: Policy::WorstFit, hold, pace, ..Knobs::default() });
    }

    #[test]
    fn the_documented_timings() {
        assert_eq!(Behaviour::Marathon.knobs().refuse, Duration::from_secs(120));
        let aurora = Behaviour::Aurora.knobs();
        let seconds = |time: Duration| time.as_secs();
        assert_eq!([aurora.hold, aurora.hold_jitter, aurora.refuse].map(seconds), [300, 60, 5]);
        assert_eq!(Behaviour::Spark.knobs().refuse_idle, Duration::from_secs(120));
    }
}
