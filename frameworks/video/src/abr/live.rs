//! The live view and the uplink of a camera as streams of chunks of one second: chooses the size, quality and rate of
//! the pictures that a viewer gets. It sends nothing and reads no clock.
//!
//! Bytes that a viewer's connection does not accept stay in a queue; the buffer is [`LATENCY`] less the age of that
//! queue. The buffer is therefore full for a viewer that is up to date, and a chunk that takes longer than the buffer
//! lasts is late. Pictures are skipped meanwhile, which viewers see as a stall.

use std::sync::{Arc, LazyLock};

use super::steady::Steady;
use super::{BitratePolicy, Measured, Observation, Setting, Weights};
use crate::bitrate::{BitrateError, Movie, Network, ScoreWeights};

/// Size, quality and rate of the pictures of a rung.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Maximum width in pixels.
    pub width: usize,
    /// JPEG quality, 1 to 100.
    pub quality: u8,
    /// Maximum number of pictures a second; a query that examines fewer frames does not have more.
    pub rate: f64,
    /// Estimate of the bitrate in kbit/s before the first measurement.
    pub kilobits: u32,
}

/// Rungs of the live view, from the smallest to the largest.
pub const RUNGS: [Rung; 6] = [
    Rung { width: 160, quality: 35, rate: 2.0, kilobits: 60 },
    Rung { width: 240, quality: 45, rate: 3.0, kilobits: 180 },
    Rung { width: 320, quality: 55, rate: 5.0, kilobits: 500 },
    Rung { width: 480, quality: 60, rate: 6.0, kilobits: 1200 },
    Rung { width: 640, quality: 70, rate: 8.0, kilobits: 3000 },
    Rung { width: 960, quality: 75, rate: 10.0, kilobits: 7500 },
];

/// Largest delay of a picture, in seconds.
pub const LATENCY: f64 = 3.0;

/// Time for which a chosen rung is kept, in seconds.
pub const PERIOD: f64 = 1.0;

/// Factor by which the estimated bandwidth grows in a period in which nothing waits, since the connection may carry
/// more than was sent. For `KNOWN` periods after the connection was busy, and so has shown its bandwidth, `PROBE_KNOWN`
/// is used.
const PROBE: f64 = 2.0;
const PROBE_KNOWN: f64 = 1.15;
/// Number of periods for which a measurement of a busy connection is taken as current.
const KNOWN: u32 = 10;

/// Weight of a new picture size in the moving mean.
const NEW: f64 = 0.2;

/// Weights of the live view, trained with [`setting`].
static WEIGHTS: LazyLock<Option<Weights>> = LazyLock::new(|| Weights::read(include_str!("weights/live.toml")).ok());

/// Returns the policy of the live view.
pub fn policy() -> BitratePolicy {
    // A test reads the file, so this does not fail. The rate-based policy is a fair substitute.
    WEIGHTS.clone().map_or(BitratePolicy::Rate, BitratePolicy::Linear)
}

/// Names of policies that [`policy_named`] accepts, for messages.
pub const POLICY_NAMES: &str = "linear, predictive, rate, buffer, or a rung from 0 to 5";

/// Returns the policy with this name; `None` for any other text.
pub fn policy_named(name: &str) -> Option<BitratePolicy> {
    match name {
        "linear" => Some(policy()),
        "predictive" => Some(BitratePolicy::Predictive),
        "rate" => Some(BitratePolicy::Rate),
        "buffer" => Some(BitratePolicy::Buffer),
        rung => rung.parse().ok().filter(|rung| *rung < RUNGS.len()).map(BitratePolicy::Fixed),
    }
}

/// Returns the live view as a setting for training: chunks of one second that are not sent before they exist. A stall
/// of one second costs as much as the highest bitrate earns.
///
/// # Errors
/// Returns no error as long as the rungs rise.
pub fn setting(seconds: usize, seed: u64) -> Result<Setting, BitrateError> {
    let ladder = RUNGS.map(|rung| rung.kilobits);
    Ok(Setting {
        movie: Arc::new(Movie::made(&ladder, PERIOD, seconds, seed)?),
        network: Network { round_trip: 0.0, payload: 0.97, noise: 0.1, buffer: LATENCY, pause: 0.01 },
        quality: ScoreWeights { rebuffer: f64::from(RUNGS[RUNGS.len() - 1].kilobits) / 1e3, change: 0.3 },
    })
}

/// Measured state of the connection to one viewer.
#[derive(Clone, Debug)]
pub struct Viewer {
    policy: BitratePolicy,
    measured: Measured,
    /// Mean size of a picture in bytes, by rung.
    bytes: [f64; RUNGS.len()],
    rung: usize,
    /// Bytes that the connection accepted in this period, then the seconds in which bytes waited, and the length of the
    /// period so far.
    taken: f64,
    busy: f64,
    passed: f64,
    /// Estimated bandwidth of the connection in Mbit/s, and the periods since it was busy.
    believed: f64,
    since_busy: u32,
    /// Limits changes of the rung; `None` for people.
    steady: Option<Steady>,
    /// Highest rung that the viewer has a use for.
    most: usize,
}

impl Viewer {
    /// Creates a viewer that starts with the smallest pictures.
    pub fn new(policy: BitratePolicy) -> Viewer {
        let bytes = RUNGS.map(|rung| f64::from(rung.kilobits) * 125.0 / rung.rate);
        Viewer {
            policy,
            measured: Measured::default(),
            bytes,
            rung: 0,
            taken: 0.0,
            busy: 0.0,
            passed: 0.0,
            believed: 0.0,
            since_busy: KNOWN,
            steady: None,
            most: RUNGS.len() - 1,
        }
    }

    /// Sets the highest rung that the viewer has a use for.
    #[must_use]
    pub fn at_most(self, rung: usize) -> Viewer {
        Viewer { most: rung.min(RUNGS.len() - 1), ..self }
    }

    /// Limits changes of the rung, for a viewer that is a query. A fixed rung is not limited.
    #[must_use]
    pub fn steady(self) -> Viewer {
        let steady = (!matches!(self.policy, BitratePolicy::Fixed(_))).then(Steady::default);
        Viewer { steady, ..self }
    }

    /// Returns the current rung of the viewer.
    pub fn rung(&self) -> usize {
        self.rung
    }

    /// Records that a picture of this rung has `bytes` bytes.
    pub fn picture(&mut self, rung: usize, bytes: usize) {
        if let Some(known) = self.bytes.get_mut(rung) {
            *known += NEW * (bytes as f64 - *known);
        }
    }

    /// Records that `seconds` have passed, in which the connection accepted `taken` bytes. `waited` says whether bytes
    /// waited in that time, and `age` is the age of the oldest bytes that wait now, in seconds. At the end of each
    /// period it chooses the rung again and returns `true`.
    pub fn pass(&mut self, seconds: f64, taken: usize, waited: bool, age: f64) -> bool {
        self.passed += seconds;
        self.taken += taken as f64;
        self.busy += if waited { seconds } else { 0.0 };
        if self.passed < PERIOD {
            return false;
        }
        let rate = self.taken * 8e-6 / self.passed;
        // Only a busy connection shows its bandwidth.
        let busy = self.busy / self.passed > 0.5;
        self.since_busy = if busy { 0 } else { self.since_busy.saturating_add(1) };
        let more = if self.since_busy < KNOWN { PROBE_KNOWN } else { PROBE };
        let sample = if busy { rate } else { rate.max(self.believed * more).max(self.sent()) };
        // The estimate is bounded, since it is not based on a measurement above what was sent.
        let most = 4.0 * f64::from(RUNGS[RUNGS.len() - 1].kilobits) / 1e3;
        self.believed = sample.min(most);
        self.measured.add(self.believed);
        (self.taken, self.busy, self.passed) = (0.0, 0.0, 0.0);
        let chosen = self.choose(age).min(self.most);
        self.rung = match &mut self.steady {
            Some(steady) => steady.next(self.rung, chosen),
            None => chosen,
        };
        true
    }

    /// Returns the bitrate of the current rung in Mbit/s.
    fn sent(&self) -> f64 {
        self.bytes[self.rung] * RUNGS[self.rung].rate * 8e-6
    }

    fn choose(&self, age: f64) -> usize {
        let mut ladder: Vec<f64> = (0..RUNGS.len()).map(|rung| self.bytes[rung] * RUNGS[rung].rate * 8e-6).collect();
        // Pictures of a small camera are no larger on a higher rung, but policies expect a rising ladder.
        for rung in 1..ladder.len() {
            ladder[rung] = ladder[rung].max(ladder[rung - 1] * 1.01);
        }
        let sizes: Vec<f64> = ladder.iter().map(|rate| rate * 125_000.0 * PERIOD).collect();
        let ahead = [sizes.as_slice(); super::AHEAD];
        self.policy.choose(&Observation {
            ladder: &ladder,
            sizes: &ahead,
            chunk_seconds: PERIOD,
            buffer: (LATENCY - age).max(0.0),
            buffer_limit: LATENCY,
            last_rung: self.rung,
            measured: &self.measured,
            quality: ScoreWeights { rebuffer: ladder[ladder.len() - 1], change: 0.3 },
        })
    }
}
