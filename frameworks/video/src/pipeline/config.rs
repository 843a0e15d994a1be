//! Configurations: what of a query can be turned down when there are too few cores, and which values each knob has.

use serde::{Deserialize, Serialize};

use crate::vision::Detector;

/// One setting of all knobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Frame rate: every this many frames of the video are examined.
    pub every: u32,
    /// Resolution: the sides of the picture are divided by this.
    pub shrink: u32,
    /// Window: in how many pictures an object must be seen before it counts; how many readings of a plate or a kind are
    /// voted on.
    pub window: u32,
    /// How changes are seen.
    pub detector: Detector,
}

impl Config {
    /// The dearest and best: everything that the video has.
    pub const GOLDEN: Config = Config { every: 1, shrink: 1, window: 3, detector: Detector::Colour };

    /// In words, for a video of this rate and width.
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

/// The values that each knob can have, from dear to cheap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Knobs {
    /// See [`Config::every`].
    pub every: Vec<u32>,
    /// See [`Config::shrink`].
    pub shrink: Vec<u32>,
    /// See [`Config::window`].
    pub window: Vec<u32>,
    /// See [`Config::detector`].
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
    /// The same with this detector for the best one, in front of the others.
    #[must_use]
    pub fn with_detector(mut self, detector: Detector) -> Knobs {
        self.detector.retain(|other| *other < detector);
        self.detector.insert(0, detector);
        self
    }

    /// The first value of each knob: what quality is measured against.
    pub fn golden(&self) -> Config {
        let Config { every, shrink, window, detector } = Config::GOLDEN;
        Config {
            every: self.every.first().copied().unwrap_or(every),
            shrink: self.shrink.first().copied().unwrap_or(shrink),
            window: self.window.first().copied().unwrap_or(window),
            detector: self.detector.first().copied().unwrap_or(detector),
        }
    }

    /// Every combination, the first value of each knob first.
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

    /// The configuration with one knob on its next or previous value, for each knob and direction.
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
