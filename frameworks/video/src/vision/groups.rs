//! Splits boxes that contain several objects: by the tracks that are expected there, or by the size of a person at that
//! place. Performs no I/O.

use crate::frame::Rect;

/// Least fraction of a track's expected box that is in a box when the track is.
const INSIDE: f32 = 0.55;
/// Least ratio of a box to its largest track for a split; a smaller box is that track alone.
const LARGER: f32 = 1.3;
/// Number of bands of the picture in which sizes are learnt, by the lower end of boxes.
const BANDS: usize = 10;
/// Rates at which learnt sizes grow and fall. Groups that are taken for one person make them too large, so small boxes
/// count more.
const RATES: (f32, f32) = (0.012, 0.05);
/// Number of sizes after which a band is used.
const SAMPLES_MIN: u32 = 25;
/// Range of the height of a group's box relative to a person's; the maximum number of people that are told apart in one
/// box follows.
const TALL: (f32, f32) = (0.75, 1.45);
const PEOPLE_MAX: usize = 4;
/// Factor of the learnt width, since a person's box is often a little wider.
const WIDER: f32 = 1.1;
/// Distance to an edge of the picture within which a box may be incomplete.
const EDGE: f32 = 0.012;

/// Learnt size of a person, by place.
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    bands: [(f32, f32, u32); BANDS],
}

fn band(place: &Rect) -> usize {
    (((place.y + place.h).clamp(0.0, 0.999)) * BANDS as f32) as usize
}

impl Sizes {
    /// Learns from the complete box of a person.
    pub(super) fn learn(&mut self, place: &Rect) {
        let (w, h, samples) = &mut self.bands[band(place)];
        if *samples == 0 {
            (*w, *h) = (place.w, place.h);
        }
        let follow = |mean: &mut f32, now: f32| *mean += (now - *mean) * if now > *mean { RATES.0 } else { RATES.1 };
        follow(w, place.w);
        follow(h, place.h);
        *samples = samples.saturating_add(1);
    }

    /// Returns the width and height of a person whose box ends where this one does; `None` if it is not known there or
    /// nearby.
    pub(super) fn at(&self, place: &Rect) -> Option<(f32, f32)> {
        let here = band(place);
        let near = [Some(here), here.checked_sub(1), Some(here + 1)];
        let known = near.into_iter().flatten().filter_map(|band| self.bands.get(band));
        known.into_iter().find(|(_, _, samples)| *samples >= SAMPLES_MIN).map(|(w, h, _)| (*w, *h))
    }

    /// Returns the number of people in a box, by its size alone.
    fn people(&self, place: &Rect) -> usize {
        let inside = |from: f32, size: f32| from > EDGE && from + size < 1.0 - EDGE;
        let whole = inside(place.x, place.w) && inside(place.y, place.h);
        let Some((w, h)) = self.at(place).filter(|_| whole) else { return 1 };
        let tall = place.h / h;
        let count = (place.w / (w * WIDER)).round() as usize;
        if (TALL.0..=TALL.1).contains(&tall) && (2..=PEOPLE_MAX).contains(&count) { count } else { 1 }
    }
}

/// Returns the fraction of a box that is in another, 0 to 1.
pub(super) fn share(of: &Rect, within: &Rect) -> f32 {
    let w = (of.x + of.w).min(within.x + within.w) - of.x.max(within.x);
    let h = (of.y + of.h).min(within.y + within.h) - of.y.max(within.y);
    if w <= 0.0 || h <= 0.0 { 0.0 } else { w * h / (of.w * of.h).max(f32::MIN_POSITIVE) }
}

/// Returns the boxes of single objects, and whether each was split off. `expected` are the boxes of confirmed tracks.
pub(super) fn split(boxes: &[Rect], expected: &[Rect], sizes: &Sizes) -> Vec<(Rect, bool)> {
    let mut out = Vec::with_capacity(boxes.len());
    // A track belongs to the box that contains most of it.
    let home = |track: &Rect| {
        let shares = boxes.iter().map(|place| share(track, place)).enumerate();
        shares.filter(|(_, s)| *s >= INSIDE).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number)
    };
    let homes: Vec<Option<usize>> = expected.iter().map(home).collect();
    for (number, place) in boxes.iter().enumerate() {
        let mut inside: Vec<Rect> =
            expected.iter().zip(&homes).filter(|(_, home)| **home == Some(number)).map(|(rect, _)| *rect).collect();
        // Two tracks of one object count as one.
        inside.dedup_by(|a, b| a.iou(b) > 0.7);
        let largest = inside.iter().map(|r| r.w * r.h).fold(0.0, f32::max);
        if inside.len() >= 2 && place.w * place.h > largest * LARGER {
            out.extend(fitted(place, inside).into_iter().map(|piece| (piece, true)));
            continue;
        }
        let count = sizes.people(place);
        let w = place.w / count as f32;
        out.extend((0..count).map(|n| (Rect { x: place.x + w * n as f32, w, ..*place }, count > 1)));
    }
    out
}

/// Moves expected boxes into the box that contains them; the outer ones reach its sides.
fn fitted(place: &Rect, mut inside: Vec<Rect>) -> Vec<Rect> {
    inside.sort_by(|a, b| a.centre().0.total_cmp(&b.centre().0));
    let last = inside.len() - 1;
    let lowest = inside.iter().map(|r| r.y + r.h).fold(f32::MIN, f32::max);
    let highest = inside.iter().map(|r| r.y).fold(f32::MAX, f32::min);
    for (number, piece) in inside.iter_mut().enumerate() {
        let (is_lowest, is_highest) = (piece.y + piece.h >= lowest, piece.y <= highest);
        piece.w = piece.w.min(place.w);
        piece.h = piece.h.min(place.h);
        let right = (place.x + place.w - piece.w).max(place.x);
        piece.x = match number {
            0 => place.x,
            n if n == last => right,
            _ => piece.x.clamp(place.x, right),
        };
        let low = (place.y + place.h - piece.h).max(place.y);
        piece.y = match (is_lowest, is_highest) {
            (true, false) => low,
            (false, true) => place.y,
            _ => piece.y.clamp(place.y, low),
        };
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(x: f32) -> Rect {
        Rect { x, y: 0.5, w: 0.04, h: 0.2 }
    }

    #[test]
    fn two_tracks_in_one_box_are_two() {
        let both = Rect { x: 0.40, y: 0.5, w: 0.07, h: 0.21 };
        let pieces = split(&[both, person(0.8)], &[person(0.41), person(0.44), person(0.8)], &Sizes::default());
        assert_eq!(pieces.len(), 3);
        assert!(pieces[0].1 && pieces[1].1 && !pieces[2].1);
        assert!((pieces[0].0.x - 0.40).abs() < 1e-6 && (pieces[1].0.x - 0.43).abs() < 1e-6, "{pieces:?}");
        // A single track is not split, even if its box has grown.
        assert_eq!(split(&[both], &[person(0.41)], &Sizes::default()).len(), 1);
    }

    proptest::proptest! {
        // For any expected boxes: no panic, all pieces are in their boxes, and each box has at least one.
        #[test]
        fn pieces_are_in_their_boxes(
            sides in proptest::collection::vec(proptest::array::uniform4(0.001_f32..1.0), 0..24),
            count in 0_usize..6,
        ) {
            let rects: Vec<Rect> =
                sides.iter().map(|[x, y, w, h]| Rect { x: *x, y: *y, w: w * (1.0 - x), h: h * (1.0 - y) }).collect();
            let (boxes, expected) = rects.split_at(count.min(rects.len()));
            let mut sizes = Sizes::default();
            expected.iter().for_each(|rect| (0..9).for_each(|_| sizes.learn(rect)));
            let pieces = split(boxes, expected, &sizes);
            proptest::prop_assert!(pieces.len() >= boxes.len());
            for (piece, _) in &pieces {
                proptest::prop_assert!(boxes.iter().any(|place| share(piece, place) > 0.99), "{piece:?}");
            }
        }
    }

    #[test]
    fn people_that_come_together_are_told_apart_by_size() {
        let mut sizes = Sizes::default();
        let three = Rect { x: 0.3, y: 0.5, w: 0.13, h: 0.2 };
        assert_eq!(split(&[three], &[], &sizes).len(), 1, "nothing is known yet");
        (0..40).for_each(|_| sizes.learn(&person(0.5)));
        assert_eq!(split(&[three], &[], &sizes).len(), 3);
        let lorry = Rect { x: 0.3, y: 0.3, w: 0.13, h: 0.4 };
        assert_eq!(split(&[lorry, person(0.1)], &[], &sizes).len(), 2, "too tall for people");
    }
}
