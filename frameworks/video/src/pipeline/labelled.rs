//! Compares a pipeline with pictures whose true boxes are known, and labels the pictures of the generated square.

use super::events::Finding;
use super::run::Pipeline;
use crate::scene::{SQUARE_FPS, Square};
use crate::scope::Line;
use crate::truth::{DetectedBox, LabelledBox, Measure};

/// Time in seconds after which a track that is not seen counts as not detected.
const UNSEEN: f64 = 0.3;

/// Returns the true boxes of a frame of the square.
pub fn labels(square: &Square, number: u64) -> Vec<LabelledBox> {
    let boxes = square.boxes(number as f64 / SQUARE_FPS).into_iter();
    boxes
        .map(|one| LabelledBox {
            frame: number,
            id: u64::from(one.id),
            vehicle: Some(one.vehicle),
            place: one.place,
            visible: one.visible,
        })
        .collect()
}

/// Returns a vertical line in the middle of the picture.
pub fn vertical_line() -> Line {
    Line { name: "middle".to_owned(), from: [0.5, 0.0], to: [0.5, 1.0], ..Line::middle() }
}

/// Adds a picture at this time to a measure: its true boxes, the boxes of the pipeline's tracks after it has processed
/// the picture, and the findings that this has returned, as crossings.
pub fn compare(measure: &mut Measure, pipeline: &Pipeline, at: f64, findings: &[Finding], truth: &[LabelledBox]) {
    for finding in findings {
        measure.crossing(finding.at, &finding.place, finding.direction == "down");
    }
    let window = pipeline.config().window;
    let tracks = pipeline.tracks().iter().filter(|track| track.hits >= window && at - track.seen < UNSEEN);
    let seen: Vec<DetectedBox> = tracks
        .filter_map(|track| {
            let place = track.expected(at).clipped()?;
            Some(DetectedBox { track: track.id, vehicle: track.is_vehicle(), place })
        })
        .collect();
    measure.picture(at, truth, &seen);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::pipeline::{Config, QueryKind};
    use crate::scope::Scope;
    use crate::vision::{Detector, still_of};

    /// Length of the square, in seconds.
    const SECONDS: f64 = 40.0;

    /// The bounds are below the means of the benchmark `truth` (six seeds of 90 s): 0.795, 0.902 and 0.958.
    #[test]
    fn the_mixture_finds_boxes_crossings_and_classes_of_the_square() {
        let square = Square::new(1, SECONDS);
        let count = (SECONDS * SQUARE_FPS) as u64;
        let few: Vec<Frame> = (0..count).step_by(33).map(|number| square.frame(number)).collect();
        let still = still_of(&few).expect("pictures of one size");
        let scope = Scope { lines: vec![vertical_line()], region: Vec::new() };
        let config = Config { detector: Detector::Mixture, ..Config::GOLDEN };
        let mut pipeline = Pipeline::new(QueryKind::Kinds, config, still).within(&scope);
        let mut measure = Measure::new(vertical_line());
        for number in 0..count {
            let at = number as f64 / SQUARE_FPS;
            let findings = pipeline.process(at, &square.frame(number));
            compare(&mut measure, &pipeline, at, &findings, &labels(&square, number));
        }
        let figures = measure.figures();
        let (boxes, crossings, classes) = (figures.boxes_f1(), figures.crossings_f1(), figures.classes_right());
        let said = format!("boxes F1 {boxes:.3}, crossings F1 {crossings:.3}, classes {classes:.3}: {figures:?}");
        println!("{said}");
        assert!(
            figures.crossings.0 + figures.crossings.2 >= 10 && figures.classes.0 >= 10,
            "too little to see: {said}"
        );
        assert!(boxes >= 0.70, "{said}");
        assert!(crossings >= 0.80, "{said}");
        assert!(classes >= 0.90, "{said}");
    }
}
