//! The appearance of an object: a histogram of its colours, by which it is recognized after it was hidden. Performs no
//! I/O.

use crate::frame::{Frame, Rect};

/// Number of bins of brightness, and of each chroma.
const BINS: (usize, usize) = (8, 6);
/// Number of points that are sampled in each direction.
const POINTS: usize = 12;
/// Fraction of a box that is sampled, since its edges often show the ground.
const INNER: f32 = 0.7;

/// A colour histogram whose bins sum to 1 for each of the three planes.
#[derive(Clone, Debug, PartialEq)]
pub struct Appearance([f32; BINS.0 + 2 * BINS.1]);

impl Appearance {
    /// Returns the histogram of the object in a box.
    pub fn of(frame: &Frame, place: &Rect) -> Appearance {
        let (w, h) = (frame.width(), frame.height());
        let mut bins = [0.0; BINS.0 + 2 * BINS.1];
        let one = 1.0 / (POINTS * POINTS) as f32;
        let at = |from: f32, size: f32, point: usize, side: usize| {
            let part = (1.0 - INNER) / 2.0 + INNER * (point as f32 + 0.5) / POINTS as f32;
            (((from + size * part) * side as f32).max(0.0) as usize).min(side - 1)
        };
        // Most chroma values are near grey: bins have a width of 8 there, and the outer ones take all values beyond.
        let chroma = |value: u8| (((i32::from(value) - 128).clamp(-24, 23) + 24) / 8) as usize;
        for row in 0..POINTS {
            let y = at(place.y, place.h, row, h);
            for column in 0..POINTS {
                let x = at(place.x, place.w, column, w);
                let pair = y / 2 * (w / 2) + x / 2;
                bins[usize::from(frame.y[y * w + x]) * BINS.0 / 256] += one;
                bins[BINS.0 + chroma(frame.u[pair])] += one;
                bins[BINS.0 + BINS.1 + chroma(frame.v[pair])] += one;
            }
        }
        Appearance(bins)
    }

    /// Returns the distance of two histograms, 0 to 1 (one minus the Bhattacharyya coefficient).
    pub fn distance(&self, other: &Appearance) -> f32 {
        let alike: f32 = self.0.iter().zip(&other.0).map(|(a, b)| (a * b).sqrt()).sum();
        (1.0 - alike / 3.0).max(0.0)
    }

    /// Moves the histogram towards a newer one.
    pub(super) fn follow(&mut self, newer: &Appearance, rate: f32) {
        for (bin, new) in self.0.iter_mut().zip(&newer.0) {
            *bin += rate * (new - *bin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Colour;

    #[test]
    fn colours_that_differ_are_far_apart() {
        let whole = Rect { x: 0.0, y: 0.0, w: 1.0, h: 1.0 };
        let of = |r, g, b| Appearance::of(&Frame::filled(32, 32, Colour::rgb(r, g, b)), &whole);
        assert!(of(200, 20, 20).distance(&of(200, 20, 20)) < 1e-5);
        assert!(of(200, 20, 20).distance(&of(20, 20, 200)) > 0.6);
        assert!(of(200, 20, 20).distance(&of(196, 22, 24)) < of(200, 20, 20).distance(&of(20, 200, 20)));
    }
}
