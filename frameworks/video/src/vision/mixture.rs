//! A mixture of Gaussians for each square of four pixels, with detection of shadows: ignores leaves in the wind, learns
//! objects that stay, and excludes the shadows of moving objects.
//!
//! The update is that of Zivkovic (ICPR 2004), after Stauffer and Grimson: each square has up to three components; the
//! one that explains a value is drawn towards it, the weight of the others fades, and a prior removes those without
//! support. A value is background if components explain it that together have most of the weight. Shadows are those of
//! KaewTraKulPong and Bowden (2001): darker than a component of the background within limits, and of its colour.

use super::blobs::Mask;
use crate::frame::Frame;

/// Maximum number of components of a square.
const COMPONENTS: usize = 3;
/// Time over which values are averaged, in seconds.
const MEMORY: f32 = 30.0;
/// Least averaging time of a new model, in seconds; otherwise it is the time that the model has seen.
const MEMORY_MIN: f32 = 4.0;
/// Largest weight of foreground components: an object that stays becomes background after about a third of `MEMORY`.
const FOREGROUND: f32 = 0.3;
/// Least weight of a component, relative to the learning rate.
const PRIOR: f32 = 0.05;
/// Squared distance in deviations at which a component explains a value; the one at which it is drawn towards the value
/// follows.
const EXPLAINS: f32 = 16.0;
const DRAWN: f32 = 9.0;
/// Variance of a new component, and the lower and upper limit.
const VARIANCE: (f32, f32, f32) = (60.0, 16.0, 400.0);
/// Range of the light in a shadow relative to the background; its largest difference in chroma, in steps, follows.
const SHADE: (f32, f32) = (0.5, 0.96);
const SHADE_CHROMA: f32 = 7.0;
/// Weight of chroma relative to brightness, of which there are four times as many values.
const CHROMA_WEIGHT: f32 = 2.0;

/// A component: its weight, its variance, and the mean of brightness and both chromas.
#[derive(Clone, Copy, Debug, Default)]
struct Component {
    weight: f32,
    variance: f32,
    mean: [f32; 3],
}

/// The model of a picture: the components of each square by falling weight.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    squares: Vec<[Component; COMPONENTS]>,
    /// Time that the model has seen, in seconds.
    seen: f32,
}

/// Returns the mean brightness of a square's four pixels, and its chromas.
fn value(frame: &Frame, column: usize, row: usize) -> [f32; 3] {
    let (w, half) = (frame.width(), frame.width() / 2);
    let top = 2 * row * w + 2 * column;
    let sum: u16 = [top, top + 1, top + w, top + w + 1].iter().map(|at| u16::from(frame.y[*at])).sum();
    let chroma = row * half + column;
    [f32::from(sum) / 4.0, f32::from(frame.u[chroma]), f32::from(frame.v[chroma])]
}

impl Component {
    fn off(&self, value: [f32; 3]) -> [f32; 3] {
        [0, 1, 2].map(|i| value[i] - self.mean[i])
    }

    /// Returns the squared distance in deviations.
    fn distance(&self, off: [f32; 3]) -> f32 {
        (off[0] * off[0] + CHROMA_WEIGHT * (off[1] * off[1] + off[2] * off[2])) / self.variance
    }

    /// Returns whether a value is this component in shadow.
    fn shades(&self, value: [f32; 3]) -> bool {
        let left = value[0] / self.mean[0].max(1.0);
        let chroma = |i: usize| (value[i] - 128.0 - left * (self.mean[i] - 128.0)).abs();
        (SHADE.0..SHADE.1).contains(&left) && chroma(1) <= SHADE_CHROMA && chroma(2) <= SHADE_CHROMA
    }
}

impl Mixture {
    /// Creates a model from a still picture.
    pub(super) fn new(still: &Frame) -> Mixture {
        let (columns, rows) = (still.width() / 2, still.height() / 2);
        let mut squares = Vec::with_capacity(columns * rows);
        for row in 0..rows {
            for column in 0..columns {
                let mut square = [Component::default(); COMPONENTS];
                square[0] = Component { weight: 1.0, variance: VARIANCE.0, mean: value(still, column, row) };
                squares.push(square);
            }
        }
        Mixture { squares, seen: 0.0 }
    }

    /// Scales the brightness of the whole model.
    pub(super) fn relight(&mut self, gain: f32) {
        self.squares.iter_mut().flatten().for_each(|component| component.mean[0] *= gain);
    }

    /// Marks pixels that are neither background nor its shadow, and updates the model. `seconds` is the time since the
    /// last picture.
    pub(super) fn detect(&mut self, frame: &Frame, seconds: f32, mask: &mut Mask) {
        let seconds = seconds.clamp(0.0, 5.0);
        self.seen = (self.seen + seconds).min(MEMORY);
        let rate = 1.0 - (-seconds / self.seen.max(MEMORY_MIN)).exp();
        let columns = frame.width() / 2;
        for (at, square) in self.squares.iter_mut().enumerate() {
            let (row, column) = (at / columns, at % columns);
            let value = value(frame, column, row);
            let changed = u8::from(learn(square, value, rate));
            let top = 2 * row * mask.width + 2 * column;
            for bit in [top, top + 1, top + mask.width, top + mask.width + 1] {
                mask.bits[bit] = changed;
            }
        }
    }
}

/// Returns whether a value is foreground, and updates the components with it.
fn learn(square: &mut [Component; COMPONENTS], value: [f32; 3], rate: f32) -> bool {
    let (mut background, mut shade, mut owner) = (false, false, None);
    let mut before = 0.0;
    for (number, component) in square.iter().enumerate() {
        if component.weight <= 0.0 {
            break;
        }
        let distance = component.distance(component.off(value));
        if before < 1.0 - FOREGROUND {
            background |= distance < EXPLAINS;
            shade |= component.shades(value);
        }
        if owner.is_none() && distance < DRAWN {
            owner = Some(number);
        }
        before += component.weight;
    }
    for (number, component) in square.iter_mut().enumerate() {
        let owned = f32::from(u8::from(owner == Some(number)));
        component.weight += rate * (owned - component.weight) - rate * PRIOR;
        if owned > 0.0 {
            let part = (rate / component.weight.max(rate)).min(1.0);
            let off = component.off(value);
            let square = component.distance(off) * component.variance;
            [0, 1, 2].iter().for_each(|i| component.mean[*i] += part * off[*i]);
            component.variance += part * (square - component.variance);
            component.variance = component.variance.clamp(VARIANCE.1, VARIANCE.2);
        }
        component.weight = component.weight.max(0.0);
    }
    if owner.is_none() {
        square[COMPONENTS - 1] = Component { weight: rate, variance: VARIANCE.0, mean: value };
    }
    let all: f32 = square.iter().map(|c| c.weight).sum();
    square.iter_mut().for_each(|c| c.weight /= all.max(f32::MIN_POSITIVE));
    square.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    !background && !shade
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Colour;

    fn changed(model: &mut Mixture, colour: Colour, seconds: f32) -> bool {
        let mut mask = Mask::new(4, 4);
        model.detect(&Frame::filled(4, 4, colour), seconds, &mut mask);
        mask.filled() > 0.5
    }

    #[test]
    fn a_shade_is_no_object_and_a_dark_coat_is() {
        let ground = Colour { y: 120, u: 118, v: 136 };
        let mut model = Mixture::new(&Frame::filled(4, 4, ground));
        assert!(!changed(&mut model, ground, 0.04));
        assert!(!changed(&mut model, Colour { y: 75, u: 122, v: 133 }, 0.04), "the same ground, darker");
        assert!(changed(&mut model, Colour { y: 75, u: 145, v: 110 }, 0.04), "darker and blue");
        assert!(changed(&mut model, Colour::grey(20), 0.04), "too dark for a shadow");
        assert!(changed(&mut model, Colour::grey(200), 0.04));
    }

    #[test]
    fn leaves_in_the_wind_are_learnt_and_what_stays_becomes_background() {
        let (one, other) = (Colour::grey(110), Colour::grey(60));
        let mut model = Mixture::new(&Frame::filled(4, 4, one));
        let mut last = (true, true);
        for _ in 0..400 {
            last = (changed(&mut model, one, 0.1), changed(&mut model, other, 0.1));
        }
        assert_eq!(last, (false, false));
        let parked = Colour { y: 180, u: 90, v: 160 };
        let seen: Vec<bool> = (0..300).map(|_| changed(&mut model, parked, 0.1)).collect();
        assert!(seen[..50].iter().all(|seen| *seen), "not within five seconds");
        assert!(!seen[299], "within half a minute");
    }
}
