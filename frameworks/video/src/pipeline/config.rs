//! Configurations: the knobs of a query that can be turned down when there are too few cores, and their values.

use serde::{Deserialize, Serialize};

use crate::vision::Detector;

/// A configuration of a query: a value for each knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Sampling interval: one of this many frames is examined.
    pub every: u32,
    /// Divisor of the picture's width and height.
    pub shrink: u32,
    /// Number of pictures in which an object must be seen before it counts, and of readings of a plate or a kind that
    /// vote.
    pub window: u32,
    /// Detector of changes.
    pub detector: Detector,
}

impl Config {
    /// The most expensive and best configuration: every frame at full resolution.
    pub const GOLDEN: Config = Config { every: 1, shrink: 1, window: 3, detector: Detector::Colour };

    /// Describes the configuration in words, for a video of this rate and width.
    pub fn describe(&self, fps: f64, width: usize) -> String {
        let rate = fps / f64::from(self.every.max(1));
        let pixels = width / self.shrink.max(1) as usize;
        format!("{rate:.3}/s {pixels}px w{} {}", self.window, self.detector.name()).replacen(".000", "", 1)
    }
}

impl std::fmt::Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "1/{} frames, 1/{} size, window {}, {}", self.every, self.shrink, self.window, self.detector.name())
    }
}

/// The values that each knob can have, from expensive to cheap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knobs {
    /// Values of [`Config::every`].
    pub every: Vec<u32>,
    /// Values of [`Config::shrink`].
    pub shrink: Vec<u32>,
    /// Values of [`Config::window`].
    pub window: Vec<u32>,
    /// Values of [`Config::detector`].
    pub detector: Vec<Detector>,
}

impl Default for Knobs {
    fn default() -> Knobs {
        Knobs {
            every: vec![1, 2, 4, 8, 25],
            shrink: vec![1, 2, 4, 8],
            window: vec![3, 2, 1],
            detector: vec![Detector::Colour, Detector::Gaussian, Detector::Difference],
        }
    }
}

impl Knobs {
    /// Puts this detector in front of the others, as the best one.
    #[must_use]
    pub fn with_detector(mut self, detector: Detector) -> Knobs {
        self.detector.retain(|other| *other < detector);
        self.detector.insert(0, detector);
        self
    }

    /// Returns the configuration with the first value of each knob, against which quality is measured.
    pub fn golden(&self) -> Config {
        let Config { every, shrink, window, detector } = Config::GOLDEN;
        Config {
            every: self.every.first().copied().unwrap_or(every),
            shrink: self.shrink.first().copied().unwrap_or(shrink),
            window: self.window.first().copied().unwrap_or(window),
            detector: self.detector.first().copied().unwrap_or(detector),
        }
    }

    /// Returns all combinations, the first value of each knob first.
    pub fn all(&self) -> Vec<Config> {
        let mut all = Vec::new();
        for every in &self.every {
            for shrink in &self.shrink {
                for window in &self.window {
                    for detector in &self.detector {
                        all.push(Config { every: *every, shrink: *shrink, window: *window, detector: *detector });
                    }
                }
            }
        }
        all
    }

    /// Returns the configurations that differ by one step of one knob, in each direction.
    pub fn neighbours(&self, config: &Config) -> Vec<Config> {
        fn near<T: PartialEq + Copy>(values: &[T], value: T) -> Vec<T> {
            let Some(at) = values.iter().position(|v| *v == value) else { return Vec::new() };
            let places = [at.checked_sub(1), at.checked_add(1)];
            places.into_iter().flatten().filter_map(|i| values.get(i).copied()).collect()
        }
        let mut out = Vec::new();
        out.extend(near(&self.every, config.every).into_iter().map(|every| Config { every, ..*config }));
        out.extend(near(&self.shrink, config.shrink).into_iter().map(|shrink| Config { shrink, ..*config }));
        out.extend(near(&self.window, config.window).into_iter().map(|window| Config { window, ..*config }));
        out.extend(near(&self.detector, config.detector).into_iter().map(|detector| Config { detector, ..*config }));
        out
    }
}
