//! Reads the plate of a vehicle: locates the bright rectangle of the right shape, segments it into characters by the
//! gaps between them, and recognizes each.
//!
//! It uses one picture; the query votes over several.

use super::signs::{SignReader, sample_ink};
use crate::frame::{Frame, Rect};

/// Range of a plate's aspect ratio, width over height.
const ASPECT: (f32, f32) = (2.4, 4.8);
/// Least height of a legible plate, in pixels.
const HEIGHT_MIN: usize = 6;
/// Number of characters of a plate; the fraction of its width that they take if no gaps are visible follows.
const SIGNS: usize = 6;
const INNER: f32 = 0.94;
/// Least difference between bright and dark in the picture of a vehicle.
const CONTRAST: u8 = 60;
/// Least probability of the worst character.
const CONFIDENCE: f32 = 0.45;

/// Reads the plate of the vehicle in this box. Returns the text and the probability of its worst character; `None` if
/// there is no plate, or it is illegible.
pub fn read_plate(frame: &Frame, vehicle: &Rect) -> Option<(String, f32)> {
    let crop = Crop::of(frame, vehicle)?;
    let (dark, bright) = crop.contrast()?;
    let middle = ((u16::from(dark) + u16::from(bright)) / 2) as u8;
    let plate = locate(&crop, middle)?;
    let (ink, width, height) = plate_ink(&crop, &plate);
    let (top, bottom) = ink_rows(&ink, width, height)?;
    let columns = &ink[top * width..bottom * width];
    let by_gaps = segments(columns, width);
    let by_layout = layout(width);
    let read = |centres: &[f32], pitch: f32| {
        let mut worst = 1.0_f32;
        let mut text = String::new();
        for centre in centres {
            let w = pitch * 0.8;
            let window = [centre - w / 2.0, top as f32, w, (bottom - top) as f32];
            let (sign, probability) = SignReader::get().read(&sample_ink(&ink, width, window));
            worst = worst.min(probability);
            text.push(sign);
        }
        (text, worst)
    };
    let pitch = width as f32 * INNER / SIGNS as f32;
    let mut best = read(&by_layout, pitch);
    if by_gaps.len() == SIGNS {
        let other = read(&by_gaps, pitch);
        if other.1 > best.1 {
            best = other;
        }
    }
    (best.1 >= CONFIDENCE).then_some(best)
}

/// The brightness of a rectangle of a frame.
struct Crop {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Crop {
    fn of(frame: &Frame, place: &Rect) -> Option<Crop> {
        let place = place.clipped()?;
        let (w, h) = (frame.width() as f32, frame.height() as f32);
        let (left, top) = ((place.x * w) as usize, (place.y * h) as usize);
        let right = (((place.x + place.w) * w).ceil() as usize).min(frame.width());
        let bottom = (((place.y + place.h) * h).ceil() as usize).min(frame.height());
        let (width, height) = (right.checked_sub(left)?, bottom.checked_sub(top)?);
        if width < 12 || height < 2 * HEIGHT_MIN {
            return None;
        }
        let rows = (top..bottom).map(|y| &frame.y[y * frame.width() + left..][..width]);
        Some(Crop { width, height, pixels: rows.flatten().copied().collect() })
    }

    /// Returns the 5th and the 95th percentile of the brightness; `None` if they differ by less than [`CONTRAST`].
    fn contrast(&self) -> Option<(u8, u8)> {
        let mut sorted = self.pixels.clone();
        sorted.sort_unstable();
        let (dark, bright) = (sorted[sorted.len() / 20], sorted[sorted.len() - 1 - sorted.len() / 20]);
        (bright.saturating_sub(dark) >= CONTRAST).then_some((dark, bright))
    }
}

/// A rectangle in a crop.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

/// Returns the largest bright area with the shape of a plate.
fn locate(crop: &Crop, middle: u8) -> Option<Area> {
    let (w, h) = (crop.width, crop.height);
    let mut seen = vec![false; w * h];
    let mut stack = Vec::new();
    let mut best: Option<(usize, Area)> = None;
    for start in 0..w * h {
        if seen[start] || crop.pixels[start] <= middle {
            continue;
        }
        seen[start] = true;
        stack.push(start);
        let (mut left, mut right, mut top, mut bottom, mut count) = (w, 0, h, 0, 0);
        while let Some(at) = stack.pop() {
            let (x, y) = (at % w, at / w);
            (left, right, top, bottom, count) = (left.min(x), right.max(x), top.min(y), bottom.max(y), count + 1);
            let near =
                [(x > 0, at.wrapping_sub(1)), (x + 1 < w, at + 1), (y > 0, at.wrapping_sub(w)), (y + 1 < h, at + w)];
            for (_, next) in near.into_iter().filter(|(inside, _)| *inside) {
                if !seen[next] && crop.pixels[next] > middle {
                    seen[next] = true;
                    stack.push(next);
                }
            }
        }
        let area = Area { left, top, width: right + 1 - left, height: bottom + 1 - top };
        let aspect = area.width as f32 / area.height as f32;
        let fits = aspect >= ASPECT.0 && aspect <= ASPECT.1 && area.height >= HEIGHT_MIN && area.width * 2 >= w;
        let filled = count * 100 / (area.width * area.height);
        if fits && (30..=95).contains(&filled) && best.is_none_or(|(most, _)| count > most) {
            best = Some((count, area));
        }
    }
    best.map(|(_, area)| area)
}

/// Returns the ink of each pixel of the plate, 0 to 1, relative to its bright and dark, with width and height.
fn plate_ink(crop: &Crop, plate: &Area) -> (Vec<f32>, usize, usize) {
    let rows =
        (plate.top..plate.top + plate.height).map(|y| &crop.pixels[y * crop.width + plate.left..][..plate.width]);
    let pixels: Vec<u8> = rows.flatten().copied().collect();
    let mut sorted = pixels.clone();
    sorted.sort_unstable();
    let (dark, bright) = (f32::from(sorted[sorted.len() / 40]), f32::from(sorted[sorted.len() * 9 / 10]));
    let range = (bright - dark).max(1.0);
    let ink = pixels.into_iter().map(|p| ((bright - f32::from(p)) / range).clamp(0.0, 1.0)).collect();
    (ink, plate.width, plate.height)
}

/// Returns the rows with characters: from the middle to the nearest rows almost without ink.
fn ink_rows(ink: &[f32], width: usize, height: usize) -> Option<(usize, usize)> {
    let inner = width / 12..width - width / 12;
    let sums: Vec<f32> = ink.chunks_exact(width).map(|row| row[inner.clone()].iter().sum::<f32>()).collect();
    let most = sums.iter().copied().fold(0.0, f32::max);
    let empty = |row: usize| sums[row] < 0.2 * most;
    let middle = height / 2;
    let top = (0..middle).rev().find(|r| empty(*r)).map_or(0, |r| r + 1);
    let bottom = (middle..height).find(|r| empty(*r)).unwrap_or(height);
    (bottom > top + 3).then_some((top, bottom))
}

/// Returns the centres of the characters, by the columns without ink between them.
fn segments(rows: &[f32], width: usize) -> Vec<f32> {
    let mut most = vec![0.0_f32; width];
    for row in rows.chunks_exact(width) {
        most.iter_mut().zip(row).for_each(|(m, ink)| *m = m.max(*ink));
    }
    let inked: Vec<bool> = most.iter().map(|m| *m > 0.42).collect();
    let mut found = Vec::new();
    let mut start = None;
    for (column, ink) in inked.iter().chain([&false]).enumerate() {
        match (ink, start) {
            (true, None) => start = Some(column),
            (false, Some(from)) => {
                // A stroke at the very edge is the rim.
                if column - from >= 2 && from > 0 && column < width {
                    found.push((from + column) as f32 / 2.0);
                }
                start = None;
            }
            _ => {}
        }
    }
    found
}

/// Returns the centres of evenly spaced characters.
fn layout(width: usize) -> Vec<f32> {
    let inner = width as f32 * INNER;
    let left = (width as f32 - inner) / 2.0;
    (0..SIGNS).map(|n| left + (n as f32 + 0.5) * inner / SIGNS as f32).collect()
}
