//! Models of the still background, by which pixels of moving objects are told from those of the street; more expensive
//! models detect more.

use serde::{Deserialize, Serialize};

use super::blobs::Mask;
use super::mixture::Mixture;
use super::resize::shrink;
use crate::frame::Frame;

/// The detector of changes: a knob of every query, from cheap to expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detector {
    /// A fixed difference in brightness to a background that follows the picture in single steps.
    Difference,
    /// A difference in brightness relative to each pixel's own mean and deviation.
    Gaussian,
    /// As `Gaussian`, and a difference in colour: detects a green car on a road of the same brightness.
    Colour,
    /// A mixture of Gaussians in brightness and colour for each square of four pixels, without shadows.
    Mixture,
    /// A neural network: see [`super::Network`]. Changes to the background only show that the view has changed.
    Network,
}

impl Detector {
    /// All detectors that need no model, from cheap to expensive.
    pub const ALL: [Detector; 4] = [Detector::Difference, Detector::Gaussian, Detector::Colour, Detector::Mixture];

    /// Returns the name of the detector.
    pub fn name(self) -> &'static str {
        match self {
            Detector::Difference => "difference",
            Detector::Gaussian => "gaussian",
            Detector::Colour => "colour",
            Detector::Mixture => "mixture",
            Detector::Network => "network",
        }
    }
}

/// Least difference in brightness that [`Detector::Difference`] takes for a change.
const STEP: u8 = 26;
/// Squared number of deviations that [`Detector::Gaussian`] takes for a change; the least variance follows.
const DEVIATIONS: f32 = 16.0;
const VARIANCE_MIN: f32 = 9.0;
/// Least sum of both differences in chroma that [`Detector::Colour`] takes for a change.
const CHROMA: u8 = 14;
/// Rate a second at which means follow the picture; behind an object it is multiplied by `SLOWER`.
const FOLLOW: f32 = 0.6;
const SLOWER: f32 = 0.02;

/// Returns the median of each pixel over several pictures: the background without moving objects, if each pixel is free
/// more than half the time. Returns `None` without pictures, or if their sizes differ.
pub fn still_of(frames: &[Frame]) -> Option<Frame> {
    let mut still = frames.first()?.clone();
    if frames.iter().any(|f| (f.width(), f.height()) != (still.width(), still.height())) {
        return None;
    }
    let planes: Vec<[&[u8]; 3]> = frames.iter().map(|f| [&*f.y, &*f.u, &*f.v]).collect();
    for (number, plane) in [&mut still.y, &mut still.u, &mut still.v].into_iter().enumerate() {
        let mut values = vec![0; planes.len()];
        for (at, out) in plane.iter_mut().enumerate() {
            for (value, planes) in values.iter_mut().zip(&planes) {
                *value = planes[number][at];
            }
            let middle = values.len() / 2;
            *out = *values.select_nth_unstable(middle).1;
        }
    }
    Some(still)
}

/// A model of the background at one resolution.
#[derive(Clone, Debug)]
pub struct Background {
    detector: Detector,
    still: Frame,
    mean: Vec<f32>,
    variance: Vec<f32>,
    mixture: Option<Mixture>,
    seen: u64,
}

impl Background {
    /// Creates a model from a still picture (see [`still_of`]) with its sides divided by `divisor`.
    pub fn new(still: &Frame, divisor: u32, detector: Detector) -> Background {
        let still = shrink(still, divisor).into_owned();
        let (mean, variance) = match detector {
            Detector::Difference | Detector::Mixture | Detector::Network => (Vec::new(), Vec::new()),
            _ => (still.y.iter().map(|y| f32::from(*y)).collect(), vec![VARIANCE_MIN; still.y.len()]),
        };
        let mixture = (detector == Detector::Mixture).then(|| Mixture::new(&still));
        Background { detector, still, mean, variance, mixture, seen: 0 }
    }

    /// Returns the pixels of the picture that are not background, and updates the model with the others. `seconds` is
    /// the time since the last picture. The picture must have the model's size; otherwise nothing is detected.
    pub fn detect(&mut self, frame: &Frame, seconds: f32) -> Mask {
        let (w, h) = (frame.width(), frame.height());
        let mut mask = Mask::new(w, h);
        if (w, h) != (self.still.width(), self.still.height()) {
            return mask;
        }
        if self.seen == 0 {
            self.relight(frame);
        }
        self.seen += 1;
        match self.detector {
            Detector::Difference | Detector::Network => self.difference(frame, seconds, &mut mask),
            Detector::Gaussian => self.gaussian(frame, seconds, &mut mask),
            Detector::Colour => {
                self.gaussian(frame, seconds, &mut mask);
                self.colour(frame, &mut mask);
            }
            Detector::Mixture => {
                if let Some(mixture) = &mut self.mixture {
                    mixture.detect(frame, seconds, &mut mask);
                }
            }
        }
        mask
    }

    /// Adapts the still picture to the light of the first one, by the median ratio of a sample of pixels.
    fn relight(&mut self, frame: &Frame) {
        let sample = frame.y.iter().zip(&self.still.y).step_by(61).filter(|(_, still)| **still > 20);
        let mut ratios: Vec<f32> = sample.map(|(now, still)| f32::from(*now) / f32::from(*still)).collect();
        if ratios.is_empty() {
            return;
        }
        let middle = ratios.len() / 2;
        let gain = ratios.select_nth_unstable_by(middle, f32::total_cmp).1.clamp(0.5, 2.0);
        self.mean.iter_mut().for_each(|m| *m *= gain);
        if let Some(mixture) = &mut self.mixture {
            mixture.relight(gain);
        }
        self.still.y.iter_mut().for_each(|y| *y = (f32::from(*y) * gain).min(255.0) as u8);
    }

    fn difference(&mut self, frame: &Frame, seconds: f32, mask: &mut Mask) {
        for ((out, now), still) in mask.bits.iter_mut().zip(&frame.y).zip(&self.still.y) {
            *out = u8::from(now.abs_diff(*still) > STEP);
        }
        // One step is the largest change of light in about a tenth of a second.
        let every = (0.1 / seconds.max(1e-3)).ceil() as u64;
        if self.seen.is_multiple_of(every.max(1)) {
            for ((still, now), changed) in self.still.y.iter_mut().zip(&frame.y).zip(&mask.bits) {
                let step = i8::from(*now > *still) - i8::from(*now < *still);
                *still = still.saturating_add_signed(if *changed == 0 { step } else { 0 });
            }
        }
    }

    fn gaussian(&mut self, frame: &Frame, seconds: f32, mask: &mut Mask) {
        let follow = 1.0 - (-FOLLOW * seconds.clamp(0.0, 5.0)).exp();
        let model = self.mean.iter_mut().zip(&mut self.variance);
        for ((out, now), (mean, variance)) in mask.bits.iter_mut().zip(&frame.y).zip(model) {
            let off = f32::from(*now) - *mean;
            let square = off * off;
            let changed = square > DEVIATIONS * *variance;
            *out = u8::from(changed);
            let rate = if changed { follow * SLOWER } else { follow };
            *mean += rate * off;
            let spread = if changed { 0.0 } else { square - *variance };
            *variance = (*variance + follow * 0.5 * spread).max(VARIANCE_MIN);
        }
    }

    /// Adds squares of four pixels whose colour differs to the mask.
    fn colour(&self, frame: &Frame, mask: &mut Mask) {
        let (w, half) = (frame.width(), frame.width() / 2);
        let chroma = frame.u.chunks_exact(half).zip(frame.v.chunks_exact(half));
        let still = self.still.u.chunks_exact(half).zip(self.still.v.chunks_exact(half));
        for ((rows, (u, v)), (su, sv)) in mask.bits.chunks_exact_mut(2 * w).zip(chroma).zip(still) {
            let (upper, lower) = rows.split_at_mut(w);
            let pairs = upper.as_chunks_mut::<2>().0.iter_mut().zip(lower.as_chunks_mut::<2>().0);
            for (i, (a, b)) in pairs.enumerate() {
                let differs = u8::from(u[i].abs_diff(su[i]).saturating_add(v[i].abs_diff(sv[i])) > CHROMA);
                *a = a.map(|bit| bit | differs);
                *b = b.map(|bit| bit | differs);
            }
        }
    }
}
