//! Measures detection and tracking against true boxes: F1 at an overlap of one half, identity switches, crossings and
//! classes. Performs no I/O.

use std::collections::BTreeMap;

use super::mot::LabelledBox;
use crate::frame::Rect;
use crate::scope::Line;
use crate::vision::assign;

/// Least overlap (intersection over union) of matching boxes.
const OVERLAP: f32 = 0.5;
/// Visible fraction of a true box below which it need not be detected; a detection of it is not an error.
const VISIBLE: f32 = 0.4;
/// Largest difference of a reported crossing to a true one, in seconds, and as a fraction of each side of the picture.
const APART: (f64, f32) = (1.0, 0.08);

/// A detected box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DetectedBox {
    /// Number of the track.
    pub track: u64,
    /// Whether the object is classified as a vehicle.
    pub vehicle: bool,
    /// Position of the box.
    pub place: Rect,
}

/// Counts of a comparison with the ground truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DetectionCounts {
    /// Numbers of true positive, false positive and false negative boxes.
    pub boxes: (u64, u64, u64),
    /// Number of times that a true object is detected under another track than before.
    pub switches: u64,
    /// Number of true objects that should have been detected.
    pub objects: u64,
    /// Numbers of true positive, false positive and false negative crossings of the line.
    pub crossings: (u64, u64, u64),
    /// Number of detected objects with a known class, and of those whose last class was right.
    pub classes: (u64, u64),
}

fn f1((right, wrong, missed): (u64, u64, u64)) -> f64 {
    let all = 2 * right + wrong + missed;
    if all == 0 { 1.0 } else { 2.0 * right as f64 / all as f64 }
}

impl DetectionCounts {
    /// Returns the F1 score of boxes.
    pub fn boxes_f1(&self) -> f64 {
        f1(self.boxes)
    }

    /// Returns the F1 score of crossings.
    pub fn crossings_f1(&self) -> f64 {
        f1(self.crossings)
    }

    /// Returns the fraction of classes that are right.
    pub fn classes_right(&self) -> f64 {
        if self.classes.0 == 0 { 1.0 } else { self.classes.1 as f64 / self.classes.0 as f64 }
    }
}

/// A crossing: its time, its position, and whether it goes forward.
type Crossing = (f64, (f32, f32), bool);

/// Compares detections with the ground truth, picture by picture.
#[derive(Debug)]
pub struct Measure {
    line: Line,
    figures: DetectionCounts,
    /// Last track of each true object, and whether its class was right.
    last: BTreeMap<u64, (u64, Option<bool>)>,
    /// Last centre of each true object.
    wanted: BTreeMap<u64, (f32, f32)>,
    true_crossings: Vec<Crossing>,
    found_crossings: Vec<Crossing>,
}

impl Measure {
    /// Creates a comparison that includes crossings of this line.
    pub fn new(line: Line) -> Measure {
        Measure {
            line,
            figures: DetectionCounts::default(),
            last: BTreeMap::new(),
            wanted: BTreeMap::new(),
            true_crossings: Vec::new(),
            found_crossings: Vec::new(),
        }
    }

    /// Adds the true and the detected boxes of a picture.
    pub fn picture(&mut self, seconds: f64, truth: &[LabelledBox], seen: &[DetectedBox]) {
        let cost: Vec<Vec<f64>> = truth
            .iter()
            .map(|label| {
                let overlap = |s: &DetectedBox| label.place.iou(&s.place);
                let cost = |o: f32| if o >= OVERLAP { f64::from(1.0 - o) } else { f64::INFINITY };
                seen.iter().map(|s| cost(overlap(s))).collect()
            })
            .collect();
        let given = assign(&cost);
        let (mut right, mut excused) = (0, 0);
        for (label, given) in truth.iter().zip(&given) {
            let counts = label.visible >= VISIBLE;
            match given {
                Some(number) => {
                    let s = &seen[*number];
                    right += u64::from(counts);
                    excused += u64::from(!counts);
                    let class = label.vehicle.map(|vehicle| vehicle == s.vehicle);
                    if let Some((before, _)) = self.last.insert(label.id, (s.track, class)) {
                        self.figures.switches += u64::from(before != s.track);
                    }
                }
                None => self.figures.boxes.2 += u64::from(counts),
            }
            self.cross(seconds, label);
        }
        self.figures.boxes.0 += right;
        self.figures.boxes.1 += seen.len() as u64 - right - excused;
    }

    fn cross(&mut self, seconds: f64, label: &LabelledBox) {
        let now = label.place.centre();
        let before = self.wanted.insert(label.id, now).unwrap_or(now);
        if let Some((_, forward)) = self.line.crossed(before, now) {
            self.true_crossings.push((seconds, now, forward));
        }
    }

    /// Adds a reported crossing.
    pub fn crossing(&mut self, seconds: f64, place: &Rect, forward: bool) {
        self.found_crossings.push((seconds, place.centre(), forward));
    }

    /// Returns the counts so far.
    pub fn figures(&self) -> DetectionCounts {
        let near = |a: &Crossing, b: &Crossing| {
            let (x, y) = ((a.1.0 - b.1.0).abs(), (a.1.1 - b.1.1).abs());
            a.2 == b.2 && (a.0 - b.0).abs() <= APART.0 && x.max(y) <= APART.1
        };
        let cost = |a: &Crossing, b: &Crossing| if near(a, b) { (a.0 - b.0).abs() } else { f64::INFINITY };
        let table: Vec<Vec<f64>> =
            self.true_crossings.iter().map(|a| self.found_crossings.iter().map(|b| cost(a, b)).collect()).collect();
        let right = assign(&table).iter().flatten().count() as u64;
        let crossings = (right, self.found_crossings.len() as u64 - right, self.true_crossings.len() as u64 - right);
        let classes: Vec<bool> = self.last.values().filter_map(|(_, class)| *class).collect();
        let classes = (classes.len() as u64, classes.iter().filter(|right| **right).count() as u64);
        DetectionCounts { crossings, classes, objects: self.wanted.len() as u64, ..self.figures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(frame: u64, id: u64, y: f32) -> LabelledBox {
        let place = Rect { x: 0.4, y, w: 0.1, h: 0.2 };
        LabelledBox { frame, id, vehicle: Some(false), place, visible: 1.0 }
    }

    #[test]
    fn what_is_right_wrong_missed_and_switched() {
        let mut measure = Measure::new(Line::middle());
        for (number, y) in [0.2_f32, 0.35, 0.45, 0.6].into_iter().enumerate() {
            let truth = label(number as u64, 1, y);
            let track = if number < 2 { 7 } else { 8 };
            let mut seen = vec![DetectedBox { track, vehicle: number == 3, place: truth.place }];
            if number == 1 {
                seen[0].place = seen[0].place.moved(0.3, 0.0);
            }
            measure.picture(number as f64, &[truth], &seen);
        }
        measure.crossing(2.3, &Rect { x: 0.41, y: 0.4, w: 0.1, h: 0.2 }, true);
        measure.crossing(2.3, &Rect { x: 0.41, y: 0.4, w: 0.1, h: 0.2 }, false);
        let figures = measure.figures();
        assert_eq!((figures.boxes, figures.switches, figures.objects), ((3, 1, 1), 1, 1));
        assert_eq!((figures.crossings, figures.classes), ((1, 1, 0), (1, 0)));
        assert!((figures.boxes_f1() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn what_is_hidden_need_not_be_found_and_may_be() {
        let hidden = LabelledBox { visible: 0.1, ..label(0, 1, 0.3) };
        let mut measure = Measure::new(Line::middle());
        measure.picture(0.0, &[hidden], &[]);
        measure.picture(1.0, &[hidden], &[DetectedBox { track: 1, vehicle: false, place: hidden.place }]);
        assert_eq!(measure.figures().boxes, (0, 0, 0));
    }
}
