//! Tracks objects from picture to picture: predicted boxes are matched with detected ones by the cheapest assignment,
//! with costs by overlap, distance, size and colours. Each picture votes on whether a track is a person or a vehicle.
//!
//! Boxes are fractions of the picture, so tracks survive a change of resolution or rate.

use super::appearance::Appearance;
use super::assign::assign;
use super::crossings::Crossings;
use super::groups::{Sizes, split};
use super::network::Object;
use crate::frame::{Frame, Rect};
use crate::scope::Line;

/// Assumed aspect ratio before the first picture.
const ASPECT: f32 = 16.0 / 9.0;
/// Largest speed of an object whose speed is not known yet, in picture heights a second.
const FASTEST: f32 = 0.7;
/// Largest error of a known speed, in picture heights a second.
const DOUBT: f32 = 0.1;
/// Longest time for which an object may be hidden, in seconds.
const HIDDEN: f64 = 0.7;
/// Widths as a fraction of the picture's: narrower boxes than the first are people; if no size of people is known,
/// boxes at least as wide as the second are vehicles.
const VEHICLE_WIDTH: (f32, f32) = (0.06, 0.1);
/// Least ratio of width to height of a vehicle; the least ratio of its height to a person's at that place follows.
const VEHICLE_SHAPE: f32 = 1.75;
const VEHICLE_TALL: f32 = 2.0;
/// Weight of the vote of a box at the edge of the picture, which may be incomplete.
const EDGE_VOTE: f32 = 0.03;
/// Largest sum of votes: a track that another object has taken over changes its class after a few pictures.
const VOTES_MAX: f32 = 3.5;
/// Weight of appearance in matching; the rate at which a track's appearance is updated follows.
const APPEARANCE_WEIGHT: f32 = 1.0;
const APPEARANCE_RATE: f32 = 0.15;
/// Number of pictures in which a track must have been detected to be confirmed.
const SURE: u32 = 4;
/// Distance to an edge within which a box may extend outside of the picture.
const EDGE: f32 = 0.012;
/// Maximum number of concurrent tracks; further objects are not tracked.
const TRACKS_MAX: usize = 512;

/// An object that is tracked.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Number of the track, from 1, never reused.
    pub id: u64,
    /// Last box of the object.
    pub place: Rect,
    /// Time of the last detection, in seconds of the stream.
    pub seen: f64,
    /// Time of the first detection, in seconds of the stream.
    pub since: f64,
    /// Number of pictures in which the object was detected.
    pub hits: u32,
    /// Speed to the right and down, in widths and heights a second; `None` before the second detection.
    pub speed: Option<(f32, f32)>,
    /// Votes for a vehicle minus those for a person, at most [`VOTES_MAX`] of either.
    votes: f32,
    appearance: Option<Appearance>,
    /// Crossings of lines by the object.
    pub crossings: Crossings,
}

impl Track {
    /// Returns the predicted box at a time.
    pub fn expected(&self, seconds: f64) -> Rect {
        let (dx, dy) = self.speed.unwrap_or((0.0, 0.0));
        let after = (seconds - self.seen) as f32;
        self.place.moved(dx * after, dy * after)
    }

    /// Returns whether the object is a vehicle, by the majority of votes.
    pub fn is_vehicle(&self) -> bool {
        self.votes > 0.0
    }
}

/// Result of one picture.
#[derive(Debug, Default)]
pub struct Step {
    /// Numbers of the tracks that were detected in the picture.
    pub found: Vec<u64>,
    /// Tracks that ended, since they were not detected for too long.
    pub ended: Vec<Track>,
}

/// The tracker of all objects of a stream.
#[derive(Clone, Debug)]
pub struct Tracker {
    tracks: Vec<Track>,
    lines: Vec<Line>,
    next: u64,
    last: Option<f64>,
    aspect: f32,
    sizes: Sizes,
}

impl Tracker {
    /// Creates a tracker that records crossings of these lines.
    pub fn new(lines: Vec<Line>) -> Tracker {
        Tracker { tracks: Vec::new(), lines, next: 1, last: None, aspect: ASPECT, sizes: Sizes::default() }
    }

    /// Returns the objects that are tracked now.
    pub fn tracks(&self) -> &[Track] {
        &self.tracks
    }

    /// Returns the track with this number.
    pub fn get(&self, id: u64) -> Option<&Track> {
        self.tracks.iter().find(|t| t.id == id)
    }

    /// Returns the number of objects that were tracked so far.
    pub fn distinct(&self) -> u64 {
        self.next - 1
    }

    /// Processes the objects of a picture, and the picture itself for their colours. Times must not decrease. Boxes
    /// without a class may contain several objects, and are split.
    pub fn step(&mut self, seconds: f64, objects: &[Object], frame: Option<&Frame>) -> Step {
        let pause = self.last.map_or(0.0, |last| seconds - last);
        self.last = Some(seconds);
        if let Some(frame) = frame {
            self.aspect = frame.width() as f32 / frame.height() as f32;
        }
        let expected: Vec<Rect> = self.tracks.iter().map(|t| t.expected(seconds)).collect();
        let sure = self.tracks.iter().zip(&expected).filter(|(t, _)| t.hits >= SURE).map(|(_, e)| *e);
        let boxes: Vec<Rect> = objects.iter().filter(|one| one.vehicle.is_none()).map(|one| one.place).collect();
        let pieces = split(&boxes, &sure.collect::<Vec<_>>(), &self.sizes);
        let classified = objects.iter().filter(|one| one.vehicle.is_some()).map(|one| (*one, false));
        let pieces = pieces.into_iter().map(|(place, split)| (Object::from(place), split));
        let boxes: Vec<Found> = pieces
            .chain(classified)
            .map(|(Object { place, vehicle }, split)| Found {
                place,
                vehicle,
                split,
                appearance: frame.map(|frame| Appearance::of(frame, &place)),
            })
            .collect();
        let cost: Vec<Vec<f64>> = self
            .tracks
            .iter()
            .zip(&expected)
            .map(|(track, expected)| boxes.iter().map(|b| cost(track, expected, b, (seconds, self.aspect))).collect())
            .collect();
        let given = assign(&cost);
        let mut taken = vec![false; boxes.len()];
        let mut step = Step::default();
        for (track, column) in self.tracks.iter_mut().zip(&given) {
            let Some(column) = column else { continue };
            taken[*column] = true;
            let found = &boxes[*column];
            follow(track, seconds, found, &self.lines);
            let votes = track.votes + vote(found, self.aspect, &self.sizes);
            track.votes = votes.clamp(-VOTES_MAX, VOTES_MAX);
            if track.hits >= SURE && !found.split && !track.is_vehicle() && is_whole(&found.place) {
                self.sizes.learn(&found.place);
            }
            step.found.push(track.id);
        }
        let patience = HIDDEN.max(pause * 1.5);
        step.ended = self.tracks.extract_if(.., |t| seconds - t.seen > patience || gone(t, seconds)).collect();
        for track in step.ended.iter_mut().filter(|t| gone(t, seconds)) {
            track.crossings.finish(&self.lines);
        }
        for found in boxes.into_iter().zip(&taken).filter(|(_, taken)| !**taken).map(|(b, _)| b) {
            if self.tracks.len() < TRACKS_MAX {
                step.found.push(self.next);
                let votes = vote(&found, self.aspect, &self.sizes);
                self.tracks.push(new_track(self.next, seconds, found, votes));
                self.next += 1;
            }
        }
        step
    }
}

/// Returns whether a track that was not detected is expected outside of the picture.
fn gone(track: &Track, seconds: f64) -> bool {
    track.seen < seconds && track.expected(seconds).clipped().is_none()
}

/// A detected box and its appearance.
#[derive(Clone, Debug)]
struct Found {
    place: Rect,
    /// Whether the detector classified it as a vehicle; `None` if it does not classify.
    vehicle: Option<bool>,
    /// Whether the box is a part of a larger one.
    split: bool,
    appearance: Option<Appearance>,
}

/// Returns whether all sides are inside the picture.
fn is_whole(place: &Rect) -> bool {
    place.x > EDGE && place.y > EDGE && place.x + place.w < 1.0 - EDGE && place.y + place.h < 1.0 - EDGE
}

/// Returns the vote of a box, above 0 for a vehicle and below for a person: the class of the detector, or by size,
/// shape, and the height of people there.
fn vote(found: &Found, aspect: f32, sizes: &Sizes) -> f32 {
    let place = &found.place;
    if let Some(vehicle) = found.vehicle {
        return if vehicle { 1.0 } else { -1.0 };
    }
    let wide = place.w * aspect / place.h >= VEHICLE_SHAPE;
    let vehicle = place.w >= VEHICLE_WIDTH.0
        && match sizes.at(place) {
            Some((_, tall)) => wide || place.h > tall * VEHICLE_TALL,
            None => wide || place.w >= VEHICLE_WIDTH.1,
        };
    let weight = if is_whole(place) { 1.0 } else { EDGE_VOTE };
    if vehicle { weight } else { -weight }
}

fn new_track(id: u64, seconds: f64, found: Found, votes: f32) -> Track {
    let Found { place, appearance, .. } = found;
    Track {
        id,
        place,
        seen: seconds,
        since: seconds,
        hits: 1,
        speed: None,
        votes,
        appearance,
        crossings: Crossings::default(),
    }
}

/// Returns the cost of matching `given` with the track; infinite if it is impossible.
fn cost(track: &Track, expected: &Rect, given: &Found, (seconds, aspect): (f64, f32)) -> f64 {
    let found = &given.place;
    let (ex, ey) = expected.centre();
    let (fx, fy) = found.centre();
    let distance = ((ex - fx) * aspect).hypot(ey - fy);
    let after = (seconds - track.seen) as f32;
    let reach =
        0.5 * (expected.h.max(expected.w * aspect)) + after * if track.speed.is_some() { DOUBT } else { FASTEST };
    let size = (found.w / expected.w).ln().abs();
    if distance > reach || size > 1.1 {
        return f64::INFINITY;
    }
    let overlap = expected.iou(found);
    let appearance = track.appearance.as_ref().zip(given.appearance.as_ref()).map_or(0.0, |(a, b)| a.distance(b));
    f64::from(1.0 - 0.6 * overlap + 0.6 * distance / reach + 0.4 * size + APPEARANCE_WEIGHT * appearance)
}

fn follow(track: &mut Track, seconds: f64, given: &Found, lines: &[Line]) {
    let found = given.place;
    let after = (seconds - track.seen) as f32;
    let before = track.place;
    if after > 0.0 {
        let (dx, dy) = moved(&before, &found);
        let now = (dx / after, dy / after);
        // The longer the gap, the less the speed is smoothed.
        let keep = if after > 0.3 { 0.0 } else { 0.6 };
        track.speed = Some(match track.speed {
            Some((x, y)) if track.hits > 2 => (x * keep + now.0 * (1.0 - keep), y * keep + now.1 * (1.0 - keep)),
            _ => now,
        });
    }
    track.crossings.add(lines, (track.seen, &before), (seconds, &found));
    track.place = found;
    track.seen = seconds;
    track.hits += 1;
    // A partly hidden object has the appearance of the one that hides it.
    match (&mut track.appearance, &given.appearance) {
        (Some(appearance), Some(newer)) if !given.split => appearance.follow(newer, APPEARANCE_RATE),
        (appearance @ None, Some(newer)) => *appearance = Some(newer.clone()),
        _ => {}
    }
}

/// Returns the movement between two boxes, by sides that are inside the picture, since a box at the edge also grows or
/// shrinks.
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
