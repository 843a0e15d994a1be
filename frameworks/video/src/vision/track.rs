//! Following objects from picture to picture: predicted boxes are matched with those found, all at once and as cheaply
//! as possible, by overlap, distance and size.
//!
//! Boxes are fractions of the picture, so tracks outlive a change of resolution or rate.

use super::assign::assign;
use crate::frame::Rect;
use crate::scope::Line;

/// Width of a picture over its height, for distances: near enough for all.
const ASPECT: f32 = 16.0 / 9.0;
/// The fastest that something whose speed is not known yet can move, in picture heights a second.
const FASTEST: f32 = 0.7;
/// How wrong a known speed can be, in picture heights a second.
const DOUBT: f32 = 0.15;
/// How long an object may be hidden, in seconds.
const HIDDEN: f64 = 0.5;
/// Boxes at least this wide are vehicles, as a fraction of the picture's width.
const VEHICLE_WIDTH: f32 = 0.06;
/// Closer to an edge than this, a box may extend outside.
const EDGE: f32 = 0.012;
/// Tracks at a time; what comes on top is not followed.
const TRACKS_MAX: usize = 512;

/// An object that is followed.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Its number, from 1, never used again.
    pub id: u64,
    /// Where it was last.
    pub place: Rect,
    /// When that was, in seconds of the stream.
    pub seen: f64,
    /// When it was first seen.
    pub since: f64,
    /// In how many pictures it was found.
    pub hits: u32,
    /// Its speed to the right and down, in widths and heights a second; `None` before it was seen twice.
    pub speed: Option<(f32, f32)>,
    /// In how many pictures it was as wide as a vehicle.
    wide: u32,
    /// Where its middle has crossed lines, at most once for each.
    pub crossings: Vec<Crossing>,
}

/// An object's way over a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The number of the line.
    pub line: usize,
    /// When, in seconds of the stream.
    pub at: f64,
    /// Whether it went forward.
    pub forward: bool,
}

impl Track {
    /// Where it should be at a time.
    pub fn expected(&self, seconds: f64) -> Rect {
        let (dx, dy) = self.speed.unwrap_or((0.0, 0.0));
        let after = (seconds - self.seen) as f32;
        self.place.moved(dx * after, dy * after)
    }

    /// Whether it is a vehicle, by most of the pictures so far.
    pub fn is_vehicle(&self) -> bool {
        self.wide * 2 > self.hits
    }
}

/// What one picture did.
#[derive(Debug, Default)]
pub struct Step {
    /// Numbers of the tracks that were found in it.
    pub found: Vec<u64>,
    /// Tracks that ended: not found for too long.
    pub ended: Vec<Track>,
}

/// All objects that are followed.
#[derive(Clone, Debug)]
pub struct Tracker {
    tracks: Vec<Track>,
    lines: Vec<Line>,
    next: u64,
    last: Option<f64>,
}

impl Tracker {
    /// Follows from now on; crossings of these lines are noted.
    pub fn new(lines: Vec<Line>) -> Tracker {
        Tracker { tracks: Vec::new(), lines, next: 1, last: None }
    }

    /// The objects that are followed now.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// The track with this number.
    pub fn get(&self, id: u64) -> Option<&Track> {
        self.tracks.iter().find(|t| t.id == id)
    }

    /// Number of objects that were followed so far.
    pub fn distinct(&self) -> u64 {
        self.next - 1
    }

    /// Takes in the boxes of a picture. Times must not go back.
    pub fn step(&mut self, seconds: f64, boxes: &[Rect]) -> Step {
        let pause = self.last.map_or(0.0, |last| seconds - last);
        self.last = Some(seconds);
        let expected: Vec<Rect> = self.tracks.iter().map(|t| t.expected(seconds)).collect();
        let cost: Vec<Vec<f64>> = self
            .tracks
            .iter()
            .zip(&expected)
            .map(|(track, expected)| boxes.iter().map(|b| cost(track, expected, b, seconds)).collect())
            .collect();
        let given = assign(&cost);
        let mut taken = vec![false; boxes.len()];
        let mut step = Step::default();
        for (track, column) in self.tracks.iter_mut().zip(&given) {
            let Some(column) = column else { continue };
            taken[*column] = true;
            follow(track, seconds, boxes[*column], &self.lines);
            step.found.push(track.id);
        }
        let patience = HIDDEN.max(pause * 1.5);
        step.ended = self.tracks.extract_if(.., |t| seconds - t.seen > patience || gone(t, seconds)).collect();
        for place in boxes.iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(b, _)| *b) {
            if self.tracks.len() < TRACKS_MAX {
                step.found.push(self.next);
                self.tracks.push(new_track(self.next, seconds, place));
                self.next += 1;
            }
        }
        step
    }
}

/// Not found, and expected outside the picture.
fn gone(track: &Track, seconds: f64) -> bool {
    track.seen < seconds && track.expected(seconds).clipped().is_none()
}

fn new_track(id: u64, seconds: f64, place: Rect) -> Track {
    let wide = u32::from(place.w >= VEHICLE_WIDTH);
    Track { id, place, seen: seconds, since: seconds, hits: 1, speed: None, wide, crossings: Vec::new() }
}

/// What it costs to take `found` for the track: infinite if it cannot be.
fn cost(track: &Track, expected: &Rect, found: &Rect, seconds: f64) -> f64 {
    let (ex, ey) = expected.centre();
    let (fx, fy) = found.centre();
    let distance = ((ex - fx) * ASPECT).hypot(ey - fy);
    let after = (seconds - track.seen) as f32;
    let reach =
        0.5 * (expected.h.max(expected.w * ASPECT)) + after * if track.speed.is_some() { DOUBT } else { FASTEST };
    let size = (found.w / expected.w).ln().abs();
    if distance > reach || size > 1.1 {
        return f64::INFINITY;
    }
    let overlap = expected.iou(found);
    f64::from(1.0 - 0.6 * overlap + 0.6 * distance / reach + 0.4 * size)
}

fn follow(track: &mut Track, seconds: f64, found: Rect, lines: &[Line]) {
    let after = (seconds - track.seen) as f32;
    let before = track.place;
    if after > 0.0 {
        let (dx, dy) = moved(&before, &found);
        let now = (dx / after, dy / after);
        // The longer the pause, the less there is to smooth.
        let keep = if after > 0.3 { 0.0 } else { 0.6 };
        track.speed = Some(match track.speed {
            Some((x, y)) if track.hits > 2 => (x * keep + now.0 * (1.0 - keep), y * keep + now.1 * (1.0 - keep)),
            _ => now,
        });
    }
    for (number, line) in lines.iter().enumerate() {
        let crossed = line.crossed(before.centre(), found.centre());
        let Some((part, forward)) = crossed.filter(|_| track.crossings.iter().all(|c| c.line != number)) else {
            continue;
        };
        let at = track.seen + f64::from(part) * (seconds - track.seen);
        track.crossings.push(Crossing { line: number, at, forward });
    }
    track.place = found;
    track.seen = seconds;
    track.hits += 1;
    track.wide += u32::from(found.w >= VEHICLE_WIDTH);
}

/// How far something moved, by sides that are inside the picture: one that enters or leaves grows or shrinks too.
fn moved(before: &Rect, found: &Rect) -> (f32, f32) {
    let side = |low_a: f32, size_a: f32, low_b: f32, size_b: f32| {
        let low_out = low_a < EDGE || low_b < EDGE;
        let high_out = low_a + size_a > 1.0 - EDGE || low_b + size_b > 1.0 - EDGE;
        match (low_out, high_out) {
            (true, false) => low_b + size_b - low_a - size_a,
            (false, true) => low_b - low_a,
            _ => low_b + size_b / 2.0 - low_a - size_a / 2.0,
        }
    };
    (side(before.x, before.w, found.x, found.w), side(before.y, before.h, found.y, found.h))
}
