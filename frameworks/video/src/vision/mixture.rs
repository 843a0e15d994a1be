//! A mixture of Gaussians for each square of four pixels, with shadows told apart: sees past leaves in the wind, learns
//! what stays, and leaves out the shade of what moves.
//!
//! The update is that of Zivkovic (ICPR 2004), after Stauffer and Grimson: each square has up to three components; the
//! one that explains a value is drawn towards it, the weight of the others fades, and a prior removes those without
//! support. A value is background if components explain it that together have most of the weight. Shadows are those of
//! KaewTraKulPong and Bowden (2001): darker than a component of the background within limits, and of its colour.

use super::blobs::Mask;
use crate::frame::Frame;

/// Components of a square.
const COMPONENTS: usize = 3;
/// Seconds over which values are averaged.
const MEMORY: f32 = 30.0;
/// A new model averages over what it has seen, and over at least this many seconds.
const MEMORY_MIN: f32 = 4.0;
/// Weight that may belong to what is not background: what stays becomes background after about a third of the memory.
const FOREGROUND: f32 = 0.3;
/// Least weight that a component must have to live, against the rate of learning.
const PRIOR: f32 = 0.05;
/// Squared distance in deviations at which a component explains a value, and at which it is drawn towards it.
const EXPLAINS: f32 = 16.0;
const DRAWN: f32 = 9.0;
/// Variance of a new component, and its limits.
const VARIANCE: (f32, f32, f32) = (60.0, 16.0, 400.0);
/// How much of the light a shadow leaves, and how far its colour may be off, in steps.
const SHADE: (f32, f32) = (0.5, 0.96);
const SHADE_CHROMA: f32 = 7.0;
/// How much chroma counts beside brightness, of which there are four times as many values.
const CHROMA_WEIGHT: f32 = 2.0;

/// One component: its weight, its variance, and the mean of brightness and both chromas.
#[derive(Clone, Copy, Debug, Default)]
struct Component {
    weight: f32,
    variance: f32,
    mean: [f32; 3],
}

/// The model of a picture: components by falling weight for each square.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    squares: Vec<[Component; COMPONENTS]>,
    /// Seconds that it has seen.
    seen: f32,
}

/// The mean brightness of a square's four pixels, and its chromas.
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

    /// Squared distance, in deviations.
    fn distance(&self, off: [f32; 3]) -> f32 {
        (off[0] * off[0] + CHROMA_WEIGHT * (off[1] * off[1] + off[2] * off[2])) / self.variance
    }

    /// Whether a value is this component in the shade.
    fn shades(&self, value: [f32; 3]) -> bool {
        let left = value[0] / self.mean[0].max(1.0);
        let chroma = |i: usize| (value[i] - 128.0 - left * (self.mean[i] - 128.0)).abs();
        (SHADE.0..SHADE.1).contains(&left) && chroma(1) <= SHADE_CHROMA && chroma(2) <= SHADE_CHROMA
    }
}

impl Mixture {
    /// A model from a still picture.
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

    /// Makes all of it brighter or darker.
    pub(super) fn relight(&mut self, gain: f32) {
        self.squares.iter_mut().flatten().for_each(|component| component.mean[0] *= gain);
    }

    /// Marks what is neither background nor its shade, and learns. `seconds` is the time since the last picture.
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

/// Whether a value is foreground; the components follow it.
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
