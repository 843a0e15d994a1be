//! The second-level settings: the decisions of a framework after resources are offered to it.
//!
//! They are the variables of Saha, Beltre and Govindaraju, "Exploring the Fairness and Resource Distribution in an
//! Apache Mesos Environment" (CLOUD 2018): the placement policy, how long an offer is held, how long it is refused, and
//! how fast tasks arrive. They decide nothing by themselves.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use advice::Risk;
use serde::{Deserialize, Serialize};

use crate::job::seconds;
use crate::place::Policy;

/// Settings of a scheduler's behaviour towards the cluster. In JSON or TOML times are seconds, and a missing setting
/// has its default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Knobs {
    /// Policy that selects one of the offers on which a task fits.
    pub policy: Policy,
    /// Time for which an offer without a placed task is held, in case work arrives. Zero: not at all.
    #[serde(with = "seconds")]
    pub hold: Duration,
    /// Maximum of a random addition to `hold`, which differs for each offer.
    #[serde(with = "seconds")]
    pub hold_jitter: Duration,
    /// Whether held offers are declined as soon as nothing waits, before their holding time is over.
    pub decline_fast: bool,
    /// Filter time of offers that waiting tasks could not use.
    #[serde(with = "seconds")]
    pub refuse: Duration,
    /// Filter time of offers that arrive while nothing waits.
    #[serde(with = "seconds")]
    pub refuse_idle: Duration,
    /// Filter time of the unused rest of an accepted offer.
    #[serde(with = "seconds")]
    pub refuse_rest: Duration,
    /// Whether offers are suppressed while nothing waits.
    pub suppress_idle: bool,
    /// Shortest interval between revives when work arrives. `None`: no revives; filters expire.
    #[serde(with = "seconds::optional")]
    pub revive_every: Option<Duration>,
    /// Rate at which waiting tasks may use offers; `None` for no limit.
    pub pace: Option<Pace>,
    /// Maximum number of tasks that are launched on one agent's offers at once.
    pub tasks_per_offer: Option<u32>,
    /// Seed of the additions by `hold_jitter`.
    pub seed: u64,
    /// Accepted risk of a shortage when launches request what the job's tasks were measured to use. `None`: launches
    /// request what the job file says.
    pub active_sizing: Option<Risk>,
    /// Whether agents are avoided whose tasks failed recently while the same jobs succeed elsewhere.
    pub avoid_failing_agents: bool,
}

/// Arrival smoothing: at most this many tasks in each interval.
///
/// Many tasks in a long interval make batches; one task in a short interval makes a steady stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Number of tasks in each interval.
    pub tasks: u32,
    /// Length of the interval.
    #[serde(with = "seconds")]
    pub every: Duration,
}

impl Default for Knobs {
    /// Returns the default behaviour: best fit, no held offers, and suppressed offers while no task waits.
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
    /// Returns the settings for holding offers.
    pub(crate) fn holding(&self) -> jobs::offers::Hold {
        jobs::offers::Hold { least: self.hold, jitter: self.hold_jitter, seed: self.seed }
    }
}

/// Behaviour of another framework towards offers, by its documented times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Behaviour {
    /// The behaviour of [`Knobs::default`].
    Tepui,
    /// Marathon: answers at once, first fit, refuses what it declines for 120 s (`--decline_offer_duration`) and the
    /// rest of what it uses not at all, revives when an app arrives but at most every 5 s
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
    /// All behaviours.
    pub const ALL: [Behaviour; 4] = [Behaviour::Tepui, Behaviour::Marathon, Behaviour::Aurora, Behaviour::Spark];

    /// Returns the settings of this behaviour.
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

    /// Returns the name of the behaviour in flags.
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

/// An error of parsing the name of a behaviour.
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
