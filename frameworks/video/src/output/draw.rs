//! Draws into frames: boxes, text, lines and grids.

use crate::frame::{Colour, Frame, Rect};
use crate::glyphs;
use crate::scope::{Point, Scope};
use crate::vision::Track;

/// Fills the part of a rectangle of pixels that is inside the frame.
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

/// Draws text on a dark background; a dot of a letter is `scale` pixels wide.
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

/// Draws a straight line between two points, two pixels wide.
pub fn segment(frame: &mut Frame, from: Point, to: Point, colour: Colour) {
    let (w, h) = (frame.width() as f32, frame.height() as f32);
    let (dx, dy) = ((to[0] - from[0]) * w, (to[1] - from[1]) * h);
    let steps = dx.abs().max(dy.abs()).ceil().max(1.0) as i64;
    for step in 0..=steps {
        let part = step as f32 / steps as f32;
        let (x, y) = (from[0] * w + dx * part, from[1] * h + dy * part);
        fill(frame, [x as i64 - 1, y as i64 - 1, 2, 2], colour);
    }
}

/// Draws the lines of a scope with their names, and its region. The name stands on the side of the forward direction.
pub fn draw_scope(frame: &mut Frame, scope: &Scope) {
    let scale = (frame.width() as i64 / 320).max(1);
    let (w, h) = (frame.width() as f32, frame.height() as f32);
    for (a, b) in scope.region.iter().zip(scope.region.iter().cycle().skip(1)) {
        segment(frame, *a, *b, Colour::rgb(70, 160, 255));
    }
    for line in scope.all_lines() {
        let red = Colour::rgb(230, 60, 60);
        segment(frame, line.from, line.to, red);
        let (dx, dy) = ((line.to[0] - line.from[0]) * w, (line.to[1] - line.from[1]) * h);
        let length = dx.hypot(dy).max(1.0);
        let (x, y) = ((line.from[0] + line.to[0]) / 2.0 * w, (line.from[1] + line.to[1]) / 2.0 * h);
        let tip = [(x - dy / length * 0.06 * h) / w, (y + dx / length * 0.06 * h) / h];
        segment(frame, [x / w, y / h], tip, red);
        let words = format!("{} {}", line.name, line.forward);
        text(frame, (tip[0] * w) as i64 + 3 * scale, (tip[1] * h) as i64, words.trim(), scale, red);
    }
}

/// Draws lines at each tenth of the picture, with their coordinates.
pub fn grid(frame: &mut Frame) {
    let scale = (frame.width() as i64 / 320).max(1);
    let (w, h) = (frame.width() as i64, frame.height() as i64);
    let pale = Colour::grey(225);
    for tenth in 1..10 {
        let (x, y) = (w * tenth / 10, h * tenth / 10);
        fill(frame, [x, 0, 1, h], pale);
        fill(frame, [0, y, w, 1], pale);
        text(frame, x + 2, 2, &format!(".{tenth}"), scale, pale);
        text(frame, 2, y + 2, &format!(".{tenth}"), scale, pale);
    }
}

/// Draws the state of a query into its picture: a box and a name for each object, and a line of text below.
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
    let bottom = frame.height() as i64 - 10 * scale;
    text(frame, 4, bottom, below, scale, Colour::grey(235));
}
