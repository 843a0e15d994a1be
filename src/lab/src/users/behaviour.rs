//! How a framework treats offers: placement, think time, holding and refusal.
//!
//! The presets have the documented timings of real frameworks (docs/papers/saha.md).

use std::time::Duration;

use crate::dist::Dist;

/// On which of the offers that have room a task is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The first.
    #[default]
    First,
    /// The one that is left with least: bin-packing.
    Pack,
    /// The one that is left with most: spreading.
    Spread,
}

/// A framework's conduct.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Where tasks are placed.
    pub place: Place,
    /// For how long an offer that is of no use is kept before it is declined.
    pub hold: Dist,
    /// How long a refusal lasts: `refuse_seconds`.
    pub refuse: Duration,
    /// The same, while there is nothing to launch.
    pub refuse_idle: Duration,
    /// From an offer's coming until it is examined.
    pub think: Duration,
    /// And longer by this for each task that is examined with it.
    pub think_per_task: Duration,
    /// Looks at one job at a time, as the schedulers of Omega's simulator do.
    pub job_at_a_time: bool,
    /// Of all that waits, the task of the job with the fewest running ones is the next: Hadoop's fair scheduler.
    pub fair_jobs: bool,
    /// At most this many tasks are launched at once; the others wait until the next time.
    pub attempt: usize,
    /// At most this many tasks are put on one offer.
    pub tasks_per_offer: usize,
    /// Suppresses offers when it has nothing to launch.
    pub suppress: bool,
    /// Forgets its refusals when work comes.
    pub revive: bool,
    /// Keeps all offers forever, whether it has a use for them or not.
    pub hoard: bool,
}

impl Default for Behaviour {
    /// Takes what it can use at once, and gives everything else back for Mesos's five seconds.
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

/// The conduct of a known framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// [`Behaviour::default`].
    #[default]
    Plain,
    /// Answers at once, refuses for two minutes, forgets its refusals when an app comes.
    Marathon,
    /// Holds offers for five to six minutes, refuses for five seconds, five tasks at a time.
    Aurora,
    /// Refuses for two minutes once it has what it needs, and for five seconds before.
    Spark,
    /// Packs, answers at once, refuses for a second: the bin-packing policy of Scylla.
    Scylla,
    /// Keeps whatever it is offered.
    Hoarder,
    /// Accepts what it can use, and refuses the rest for a second: with endless work it takes all that other frameworks
    /// leave.
    Greedy,
    /// Thinks for ten seconds and ten milliseconds a task about one job at a time: a service scheduler of Omega's
    /// simulator.
    Slow,
}

impl Preset {
    /// All of them.
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

    /// Its name in a scenario.
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

    /// What it does.
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
