//! The live view as a stream of chunks of one second: which size, sharpness and rate of pictures a viewer gets. It
//! sends nothing and reads no clock.
//!
//! What a viewer's connection does not take stays in a queue; its age is what the buffer lacks of [`LATENCY`]. So the
//! buffer is full for a viewer that is up to date, and a chunk that takes longer than the buffer lasts is late:
//! pictures are left out meanwhile, which viewers see as standing.

use std::sync::{Arc, LazyLock};

use super::{Kind, Measured, Setting, View, Weights};
use crate::bitrate::{BitrateError, Movie, Network, Quality};

/// What pictures are like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Pixels in a row at most.
    pub width: usize,
    /// The quality of JPEG, 1 to 100.
    pub quality: u8,
    /// Pictures a second at most; a query that looks at fewer has no more.
    pub rate: f64,
    /// About how many kbit/s that is, before anything was measured.
    pub kilobits: u32,
}

/// From the smallest to the largest.
pub const RUNGS: [Rung; 6] = [
    Rung { width: 160, quality: 35, rate: 2.0, kilobits: 60 },
    Rung { width: 240, quality: 45, rate: 3.0, kilobits: 180 },
    Rung { width: 320, quality: 55, rate: 5.0, kilobits: 500 },
    Rung { width: 480, quality: 60, rate: 6.0, kilobits: 1200 },
    Rung { width: 640, quality: 70, rate: 8.0, kilobits: 3000 },
    Rung { width: 960, quality: 75, rate: 10.0, kilobits: 7500 },
];

/// By how many seconds pictures may be late.
pub const LATENCY: f64 = 3.0;

/// Seconds for which a choice holds.
pub const PERIOD: f64 = 1.0;

/// Where nothing waits, the connection may carry more than was sent: twice as much is tried as was last believed, or a
/// little more for some periods after the connection was busy and has shown what it carries.
const PROBE: f64 = 2.0;
const PROBE_KNOWN: f64 = 1.15;
/// This many periods.
const KNOWN: u32 = 10;

/// The part that a new size counts in the mean.
const NEW: f64 = 0.2;

/// The weights that the live view uses, trained with [`setting`].
static WEIGHTS: LazyLock<Option<Weights>> = LazyLock::new(|| Weights::read(include_str!("weights/live.toml")).ok());

/// The policy of the live view.
pub fn policy() -> Kind {
    // The file is read by a test; without it the rate would be as good.
    WEIGHTS.clone().map_or(Kind::Rate, Kind::Linear)
}

/// The live view as a setting for training: chunks of a second that cannot be sent before they are there. Standing for
/// a second is as bad as the highest bitrate is good.
///
/// # Errors
/// None, as long as the rungs rise.
pub fn setting(seconds: usize, seed: u64) -> Result<Setting, BitrateError> {
    let ladder = RUNGS.map(|rung| rung.kilobits);
    Ok(Setting {
        movie: Arc::new(Movie::made(&ladder, PERIOD, seconds, seed)?),
        network: Network { round_trip: 0.0, payload: 0.97, noise: 0.1, buffer: LATENCY, pause: 0.01 },
        quality: Quality { rebuffer: f64::from(RUNGS[RUNGS.len() - 1].kilobits) / 1e3, change: 0.3 },
    })
}

/// What is known of a viewer.
#[derive(Clone, Debug)]
pub struct Viewer {
    policy: Kind,
    measured: Measured,
    /// Mean bytes of a picture of each rung.
    bytes: [f64; RUNGS.len()],
    rung: usize,
    /// Of this period: bytes that the connection took, the part of the time in which something waited.
    taken: f64,
    busy: f64,
    passed: f64,
    /// What the connection is believed to carry, in Mbit/s, and the periods since it was busy.
    believed: f64,
    since_busy: u32,
}

impl Viewer {
    /// A viewer that begins with the smallest pictures.
    pub fn new(policy: Kind) -> Viewer {
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
        }
    }

    /// What it gets now.
    pub fn rung(&self) -> usize {
        self.rung
    }

    /// A picture of this rung has so many bytes.
    pub fn picture(&mut self, rung: usize, bytes: usize) {
        if let Some(known) = self.bytes.get_mut(rung) {
            *known += NEW * (bytes as f64 - *known);
        }
    }

    /// Some time has passed, in seconds, in which the connection took this many bytes; whether something waited for it
    /// in that time, and how old what waits now is. After each period the rung is chosen anew: returns whether it was.
    pub fn pass(&mut self, seconds: f64, taken: usize, waited: bool, age: f64) -> bool {
        self.passed += seconds;
        self.taken += taken as f64;
        self.busy += if waited { seconds } else { 0.0 };
        if self.passed < PERIOD {
            return false;
        }
        let rate = self.taken * 8e-6 / self.passed;
        // Only a connection that was busy shows what it carries.
        let busy = self.busy / self.passed > 0.5;
        self.since_busy = if busy { 0 } else { self.since_busy.saturating_add(1) };
        let more = if self.since_busy < KNOWN { PROBE_KNOWN } else { PROBE };
        let sample = if busy { rate } else { rate.max(self.believed * more).max(self.sent()) };
        // What was never tried is not believed to be carried with ease.
        let most = 4.0 * f64::from(RUNGS[RUNGS.len() - 1].kilobits) / 1e3;
        self.believed = sample.min(most);
        self.measured.add(self.believed);
        (self.taken, self.busy, self.passed) = (0.0, 0.0, 0.0);
        self.rung = self.choose(age);
        true
    }

    /// Mbit/s of the present rung.
    fn sent(&self) -> f64 {
        self.bytes[self.rung] * RUNGS[self.rung].rate * 8e-6
    }

    fn choose(&self, age: f64) -> usize {
        let mut ladder: Vec<f64> = (0..RUNGS.len()).map(|rung| self.bytes[rung] * RUNGS[rung].rate * 8e-6).collect();
        // Pictures of a small camera are no larger on a higher rung; policies expect a ladder that rises.
        for rung in 1..ladder.len() {
            ladder[rung] = ladder[rung].max(ladder[rung - 1] * 1.01);
        }
        let sizes: Vec<f64> = ladder.iter().map(|rate| rate * 125_000.0 * PERIOD).collect();
        let ahead = [sizes.as_slice(); super::AHEAD];
        self.policy.choose(&View {
            ladder: &ladder,
            sizes: &ahead,
            chunk_seconds: PERIOD,
            buffer: (LATENCY - age).max(0.0),
            buffer_limit: LATENCY,
            last_rung: self.rung,
            measured: &self.measured,
            quality: Quality { rebuffer: ladder[ladder.len() - 1], change: 0.3 },
        })
    }
}
