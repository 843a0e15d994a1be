//! Drawing into frames.

use crate::frame::{Colour, Frame, Rect};
use crate::glyphs;
use crate::vision::Track;

/// Fills a rectangle of pixels, as far as it is inside.
fn fill(frame: &mut Frame, [x, y, w, h]: [i64; 4], colour: Colour) {
    let (width, height) = (frame.width() as i64, frame.height() as i64);
    for row in y.max(0)..(y + h).min(height) {
        for column in x.max(0)..(x + w).min(width) {
            frame.y[(row * width + column) as usize] = colour.y;
            let at = (row / 2 * (width / 2) + column / 2) as usize;
            frame.u[at] = colour.u;
            frame.v[at] = colour.v;
        }
    }
}

/// Draws the outline of a box.
pub fn outline(frame: &mut Frame, place: &Rect, colour: Colour) {
    let (w, h) = (frame.width() as f32, frame.height() as f32);
    let (left, top) = ((place.x * w) as i64, (place.y * h) as i64);
    let (right, bottom) = (((place.x + place.w) * w) as i64, ((place.y + place.h) * h) as i64);
    fill(frame, [left, top, right - left, 2], colour);
    fill(frame, [left, bottom - 2, right - left, 2], colour);
    fill(frame, [left, top, 2, bottom - top], colour);
    fill(frame, [right - 2, top, 2, bottom - top], colour);
}

/// Writes signs on a dark ground, `scale` pixels a dot.
pub fn text(frame: &mut Frame, x: i64, y: i64, words: &str, scale: i64, colour: Colour) {
    let pitch = (glyphs::WIDTH as i64 + 1) * scale;
    let count = words.chars().count() as i64;
    let ground = [x - scale, y - scale, count * pitch + scale, (glyphs::HEIGHT as i64 + 2) * scale];
    fill(frame, ground, Colour::grey(20));
    for (number, sign) in (0..).zip(words.chars()) {
        let Some(pattern) = glyphs::pattern(sign) else { continue };
        for row in 0..glyphs::HEIGHT {
            for column in (0..glyphs::WIDTH).filter(|c| glyphs::dot(&pattern, *c, row)) {
                let at = [x + number * pitch + column as i64 * scale, y + row as i64 * scale, scale, scale];
                fill(frame, at, colour);
            }
        }
    }
}

/// Draws what a query knows into its picture: a box and a name for each object, and a line of text below.
pub fn annotate(frame: &mut Frame, tracks: &[Track], seconds: f64, names: impl Fn(u64) -> Option<String>, below: &str) {
    let scale = (frame.width() as i64 / 320).max(1);
    for track in tracks {
        let colour = if track.is_vehicle() { Colour::rgb(60, 230, 90) } else { Colour::rgb(255, 190, 40) };
        let place = track.expected(seconds);
        outline(frame, &place, colour);
        let name = names(track.id).unwrap_or_else(|| format!("#{}", track.id));
        let (x, y) = ((place.x * frame.width() as f32) as i64, (place.y * frame.height() as f32) as i64);
        text(frame, x + 3, (y - 9 * scale).max(2), &name, scale, colour);
    }
    let line = frame.height() as i64 / 2;
    let width = frame.width() as i64;
    fill(frame, [0, line - 1, width, 2], Colour::rgb(230, 60, 60));
    let bottom = frame.height() as i64 - 10 * scale;
    text(frame, 4, bottom, below, scale, Colour::grey(235));
}
