//! Recognizes one character of a plate with a small classifier, trained on drawn characters when it is first needed.
//!
//! Training draws each character many times, slightly displaced, scaled, blurred and noisy, as a camera and a codec
//! would show it. It takes a fraction of a second, and its seed is fixed: all workers have the same classifier.

use std::sync::OnceLock;

use super::softmax::{Classify, Softmax};
use crate::glyphs::{self, PLATE_SIGNS};
use crate::random::SplitMix64;

/// Columns and rows of the grid to which a character is sampled.
pub(super) const GRID: (usize, usize) = (8, 12);
/// Number of drawn examples of each character.
const EXAMPLES: usize = 90;
const ROUNDS: usize = 14;

/// A classifier of single characters.
#[derive(Debug)]
pub struct SignReader {
    model: Softmax,
}

impl SignReader {
    /// Returns the process-wide reader, which is trained at the first call.
    pub fn get() -> &'static SignReader {
        static READER: OnceLock<SignReader> = OnceLock::new();
        READER.get_or_init(|| SignReader::train(11))
    }

    fn train(seed: u64) -> SignReader {
        let mut rng = SplitMix64::new(seed);
        let mut examples = Vec::new();
        for (class, sign) in PLATE_SIGNS.chars().enumerate() {
            for _ in 0..EXAMPLES {
                examples.push((drawn(sign, &mut rng), class));
            }
        }
        SignReader { model: Softmax::train(&examples, PLATE_SIGNS.len(), ROUNDS, seed) }
    }

    /// Returns the most probable character for the features of a picture (see [`sample_ink`]), and its probability.
    pub fn read(&self, features: &[f32]) -> (char, f32) {
        let (class, probability) = self.model.best(features);
        (char::from(PLATE_SIGNS.as_bytes().get(class).copied().unwrap_or(b'?')), probability)
    }
}

/// Samples the ink (0 to 1) in a window of a picture to a grid. `window` is left, top, width and height in pixels.
pub(super) fn sample_ink(ink: &[f32], stride: usize, window: [f32; 4]) -> Vec<f32> {
    let (columns, rows) = GRID;
    let height = ink.len() / stride.max(1);
    let get = |x: i64, y: i64| {
        let inside = x >= 0 && y >= 0 && x < stride as i64 && y < height as i64;
        if inside { ink[y as usize * stride + x as usize] } else { 0.0 }
    };
    let [left, top, w, h] = window;
    let mut out = Vec::with_capacity(columns * rows);
    for row in 0..rows {
        for column in 0..columns {
            let x = left + (column as f32 + 0.5) * w / columns as f32 - 0.5;
            let y = top + (row as f32 + 0.5) * h / rows as f32 - 0.5;
            let (x0, y0) = (x.floor(), y.floor());
            let (fx, fy) = (x - x0, y - y0);
            let (x0, y0) = (x0 as i64, y0 as i64);
            let upper = get(x0, y0) * (1.0 - fx) + get(x0 + 1, y0) * fx;
            let lower = get(x0, y0 + 1) * (1.0 - fx) + get(x0 + 1, y0 + 1) * fx;
            out.push(upper * (1.0 - fy) + lower * fy);
        }
    }
    out
}

/// Draws a character as it may appear in a video. Returns its features.
fn drawn(sign: char, rng: &mut SplitMix64) -> Vec<f32> {
    let Some(pattern) = glyphs::pattern(sign) else { return Vec::new() };
    let (w, h) = (rng.between(4.5, 12.0), 0.0);
    let h = h + w * rng.between(1.45, 1.9);
    let (stride, height) = (w as usize + 6, h as usize + 6);
    let (left, top) = (rng.between(2.0, 3.0), rng.between(2.0, 3.0));
    let inside = |x: f64, y: f64| {
        let (c, r) = ((x - left) / w * glyphs::WIDTH as f64, (y - top) / h * glyphs::HEIGHT as f64);
        let there = c >= 0.0 && r >= 0.0 && c < glyphs::WIDTH as f64 && r < glyphs::HEIGHT as f64;
        f64::from(u8::from(there && glyphs::dot(&pattern, c as usize, r as usize)))
    };
    let mut ink = vec![0.0_f32; stride * height];
    for (at, out) in ink.iter_mut().enumerate() {
        let (x, y) = ((at % stride) as f64, (at / stride) as f64);
        let parts = [0.17, 0.5, 0.83];
        let sum: f64 = parts.iter().flat_map(|dx| parts.map(|dy| inside(x + dx, y + dy))).sum();
        *out = (sum / 9.0) as f32;
    }
    blur(&mut ink, stride, rng.between(0.0, 0.3) as f32);
    let noise = rng.between(0.0, 0.12);
    ink.iter_mut().for_each(|p| *p = (*p + (rng.normal() * noise) as f32).clamp(0.0, 1.0));
    let mut off = |by: f64| rng.between(-by, by);
    let window = [left + off(0.07 * w), top + off(0.06 * h), w * (1.0 + off(0.1)), h * (1.0 + off(0.08))];
    sample_ink(&ink, stride, window.map(|v| v as f32))
}

/// Blurs a picture: mixes each pixel with its neighbours.
fn blur(ink: &mut [f32], stride: usize, by: f32) {
    let before = ink.to_vec();
    for (at, out) in ink.iter_mut().enumerate() {
        let near = [at.wrapping_sub(1), at + 1, at.wrapping_sub(stride), at + stride];
        let mean: f32 = near.iter().map(|i| before.get(*i).copied().unwrap_or(0.0)).sum::<f32>() / 4.0;
        *out = before[at] * (1.0 - by) + mean * by;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_that_were_not_trained_on_are_read() {
        let reader = SignReader::get();
        let mut rng = SplitMix64::new(99);
        let (mut right, mut all) = (0, 0);
        for sign in PLATE_SIGNS.chars() {
            for _ in 0..20 {
                all += 1;
                right += usize::from(reader.read(&drawn(sign, &mut rng)).0 == sign);
            }
        }
        assert!(right * 100 >= all * 95, "{right} of {all}");
    }
}
