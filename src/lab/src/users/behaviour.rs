//! How a framework treats offers: placement, think time, holding and refusal.
//!
//! The presets have the documented timings of real frameworks (docs/papers/saha.md).

use std::time::Duration;

use crate::dist::Dist;

/// The rule by which a task is placed on one of the offers that fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The first offer that fits.
    #[default]
    First,
    /// The offer that is left with least: bin-packing.
    Pack,
    /// The offer that is left with most: spreading.
    Spread,
}

/// The behaviour of a modelled framework.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Placement of tasks on offers.
    pub place: Place,
    /// Time for which an offer that no task can use is held before it is declined.
    pub hold: Dist,
    /// Duration of offer filters: `refuse_seconds`.
    pub refuse: Duration,
    /// Duration of offer filters while there is nothing to launch.
    pub refuse_idle: Duration,
    /// Decision time from the arrival of an offer on.
    pub think: Duration,
    /// Additional decision time for each task that is considered.
    pub think_per_task: Duration,
    /// Whether each decision is about one job only, as with the schedulers of Omega's simulator.
    pub job_at_a_time: bool,
    /// Whether the next task is one of the job with the fewest running tasks, as with Hadoop's fair scheduler.
    pub fair_jobs: bool,
    /// The most tasks that are launched at once. The others wait until the next decision.
    pub attempt: usize,
    /// The most tasks that are launched on one offer.
    pub tasks_per_offer: usize,
    /// Whether offers are suppressed when there is nothing to launch.
    pub suppress: bool,
    /// Whether offers are revived, which removes the offer filters, when work arrives.
    pub revive: bool,
    /// Whether all offers are held forever, used or not.
    pub hoard: bool,
}

impl Default for Behaviour {
    /// Returns the behaviour that accepts at once what tasks can use, and declines everything else for Mesos's default
    /// of five seconds.
    fn default() -> Behaviour {
        Behaviour {
            place: Place::First,
            hold: Dist::ZERO,
            refuse: Duration::from_secs(5),
            refuse_idle: Duration::from_secs(5),
            think: Duration::ZERO,
            think_per_task: Duration::ZERO,
            job_at_a_time: false,
            fair_jobs: false,
            attempt: usize::MAX,
            tasks_per_offer: usize::MAX,
            suppress: false,
            revive: false,
            hoard: false,
        }
    }
}

/// The behaviour of a known framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Behaves as [`Behaviour::default`].
    #[default]
    Plain,
    /// Answers within 20 ms, filters offers for two minutes, revives offers when an app arrives.
    Marathon,
    /// Holds offers for five to six minutes, filters them for five seconds, launches five tasks at a time.
    Aurora,
    /// Filters offers for two minutes once it has what it needs, and for five seconds before.
    Spark,
    /// Packs tasks, answers at once, filters offers for a second: the bin-packing policy of Scylla.
    Scylla,
    /// Holds every offer forever.
    Hoarder,
    /// Accepts what it can use, and filters the rest for a second: with endless work it takes all that other frameworks
    /// leave.
    Greedy,
    /// Decides on one job at a time, in ten seconds and ten milliseconds for each task: a service scheduler of Omega's
    /// simulator.
    Slow,
}

impl Preset {
    /// All presets.
    pub const ALL: [Preset; 8] = [
        Preset::Plain,
        Preset::Marathon,
        Preset::Aurora,
        Preset::Spark,
        Preset::Scylla,
        Preset::Hoarder,
        Preset::Greedy,
        Preset::Slow,
    ];

    /// Returns the preset's name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Plain => "plain",
            Preset::Marathon => "marathon",
            Preset::Aurora => "aurora",
            Preset::Spark => "spark",
            Preset::Scylla => "scylla",
            Preset::Hoarder => "hoarder",
            Preset::Greedy => "greedy",
            Preset::Slow => "slow",
        }
    }

    /// Returns the behaviour of the preset.
    pub fn conduct(self) -> Behaviour {
        let plain = Behaviour::default();
        match self {
            Preset::Plain => plain,
            Preset::Marathon => Behaviour {
                refuse: Duration::from_secs(120),
                refuse_idle: Duration::from_secs(120),
                think: Duration::from_millis(20),
                tasks_per_offer: 100,
                revive: true,
                ..plain
            },
            Preset::Aurora => Behaviour {
                hold: Dist::Uniform(Duration::from_secs(300), Duration::from_secs(360)),
                attempt: 5,
                think: Duration::from_millis(25),
                ..plain
            },
            Preset::Spark => Behaviour { refuse_idle: Duration::from_secs(120), ..plain },
            Preset::Scylla => Behaviour {
                place: Place::Pack,
                refuse: Duration::from_secs(1),
                refuse_idle: Duration::from_secs(1),
                ..plain
            },
            Preset::Hoarder => Behaviour { hoard: true, ..plain },
            Preset::Greedy => {
                Behaviour { refuse: Duration::from_secs(1), refuse_idle: Duration::from_secs(1), ..plain }
            }
            Preset::Slow => Behaviour {
                think: Duration::from_secs(10),
                think_per_task: Duration::from_millis(10),
                job_at_a_time: true,
                suppress: true,
                ..plain
            },
        }
    }
}
