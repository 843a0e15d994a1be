//! Tests of backgrounds, boxes and tracks on small pictures, and of plates on drawn vehicles.

use super::*;
use crate::frame::{Colour, Frame, Rect};
use crate::scene::{Renderer, SceneOptions, Truth};

fn with_box(colour: Colour) -> (Frame, Frame) {
    let still = Frame::filled(320, 180, Colour::grey(90));
    let mut frame = still.clone();
    for y in 60..120 {
        for x in 100..140 {
            frame.y[y * 320 + x] = colour.y;
            frame.u[y / 2 * 160 + x / 2] = colour.u;
            frame.v[y / 2 * 160 + x / 2] = colour.v;
        }
    }
    (still, frame)
}

#[test]
fn dearer_detectors_see_more() {
    let green = Colour { y: 92, u: 110, v: 100 };
    for (colour, seen) in [
        (Colour::grey(200), [true, true, true, true]),
        (Colour::grey(107), [false, true, true, false]),
        (green, [false, false, true, true]),
        (Colour::grey(90), [false, false, false, false]),
    ] {
        let (still, frame) = with_box(colour);
        for (detector, seen) in Detector::ALL.into_iter().zip(seen) {
            let mut background = Background::new(&still, 1, detector);
            let found = blobs(&background.detect(&frame, 0.04));
            assert_eq!(!found.is_empty(), seen, "{colour:?} {detector:?}");
            if let [only] = found.as_slice() {
                let want = Rect { x: 100.0 / 320.0, y: 60.0 / 180.0, w: 40.0 / 320.0, h: 60.0 / 180.0 };
                assert!(only.iou(&want) > 0.8, "{only:?}");
            }
        }
    }
}

#[test]
fn slow_light_is_not_seen_and_sizes_that_differ_see_nothing() {
    for detector in Detector::ALL {
        let still = Frame::filled(320, 180, Colour::grey(90));
        let mut background = Background::new(&still, 1, detector);
        for step in 0..400 {
            let now = Frame::filled(320, 180, Colour::grey((90 + step / 16) as u8));
            assert!(blobs(&background.detect(&now, 0.04)).is_empty(), "{detector:?} at {step}");
        }
        let other = Frame::filled(160, 90, Colour::grey(200));
        assert!(blobs(&background.detect(&other, 0.04)).is_empty());
    }
}

#[test]
fn objects_that_touch_are_one_and_those_apart_are_two() {
    let mut mask = Mask::new(320, 180);
    let fill = |mask: &mut Mask, x: usize| {
        (50..90).for_each(|y| mask.bits[y * 320 + x..][..20].fill(1));
    };
    fill(&mut mask, 40);
    fill(&mut mask, 80);
    assert_eq!(blobs(&mask).len(), 2);
    fill(&mut mask, 60);
    assert_eq!(blobs(&mask).len(), 1);
    mask.bits.iter_mut().step_by(7).for_each(|b| *b = 1);
    assert_eq!(blobs(&mask).len(), 1, "single pixels are noise");
}

#[test]
fn tracks_keep_their_numbers_when_paths_come_close() {
    // Two objects that pass each other in opposite directions, and a third that is not detected in eight pictures.
    let mut tracker = Tracker::new(vec![crate::scope::Line::middle()]);
    let size = Rect { x: 0.0, y: 0.0, w: 0.03, h: 0.1 };
    for tick in 0..100 {
        let t = f64::from(tick) * 0.04;
        let down = size.moved(0.20, 0.1 + 0.2 * t as f32);
        let up = size.moved(0.24, 0.9 - 0.2 * t as f32);
        let other = size.moved(0.6, 0.1 + 0.15 * t as f32);
        let hidden = (40..48).contains(&tick);
        let boxes = if hidden { vec![up, down] } else { vec![other, down, up] };
        let objects: Vec<Object> = boxes.into_iter().map(Object::from).collect();
        tracker.step(t, &objects, None);
        let id = |rect: Rect| tracker.tracks().iter().find(|track| track.place == rect).map(|track| track.id);
        assert_eq!((id(down), id(up)), (Some(2), Some(3)), "at {t}");
        assert!(hidden || id(other) == Some(1), "at {t}");
    }
    assert_eq!(tracker.distinct(), 3);
    let crossed: Vec<bool> = tracker.tracks().iter().map(|t| !t.crossings.counted().is_empty()).collect();
    assert_eq!(crossed, [true, true, true]);
}

#[test]
fn plates_are_read_from_still_pictures() {
    let options = SceneOptions { seed: 21, vehicles_per_minute: 90.0, ..Default::default() };
    let renderer = Renderer::new(Truth::plan(&options).expect("can be made"));
    let (mut right, mut wrong, mut none) = (0, 0, 0);
    for number in (0..500).step_by(23) {
        let frame = renderer.frame(number);
        for (object, place) in renderer.truth().visible(number as f64 / options.fps) {
            let Some(plate) = &object.plate else { continue };
            if place.y < 0.02 || place.y + place.h > 0.98 {
                continue;
            }
            match read_plate(&frame, &place) {
                Some((text, _)) if text == *plate => right += 1,
                Some(_) => wrong += 1,
                None => none += 1,
            }
        }
    }
    assert!(right > 20 && wrong * 20 <= right && none * 10 <= right, "{right} right, {wrong} wrong, {none} not read");
}

#[test]
fn the_perceptron_tells_kinds_that_it_was_not_trained_on() {
    let reader = KindReader::train(&KindReader::examples(5)).expect("trains");
    let options = SceneOptions { seed: 77, vehicles_per_minute: 120.0, ..Default::default() };
    let renderer = Renderer::new(Truth::plan(&options).expect("can be made"));
    let (mut right, mut all) = (0, 0);
    for number in (0..500).step_by(50) {
        let frame = renderer.frame(number);
        for (object, place) in renderer.truth().visible(number as f64 / options.fps) {
            if place.y > 0.02 && place.y + place.h < 0.98 {
                all += 1;
                right += usize::from(reader.read(&frame, &place).0 == object.kind);
            }
        }
    }
    assert!(all > 20 && right * 100 >= all * 93, "{right} of {all}");
}
