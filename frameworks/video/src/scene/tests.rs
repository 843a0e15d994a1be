//! Tests that scenes match their ground truth: objects do not collide, each crosses once, and the end leads to the
//! beginning.

use super::*;

fn plan(seed: u64) -> Truth {
    Truth::plan(&SceneOptions { seed, ..Default::default() }).expect("can be made")
}

#[test]
fn no_two_objects_overlap_at_any_time_not_even_over_the_seam() {
    for seed in 0..8 {
        let truth = plan(seed);
        for tick in 0..=100 {
            let seconds = f64::from(tick) * truth.scene.seconds / 100.0;
            let seen: Vec<_> = truth.visible(seconds).collect();
            for (i, (a, place)) in seen.iter().enumerate() {
                for (b, other) in &seen[i + 1..] {
                    assert_eq!(place.iou(other), 0.0, "seed {seed}, {seconds} s: {} and {}", a.id, b.id);
                }
            }
        }
    }
}

#[test]
fn each_object_crosses_once_where_the_truth_says() {
    let truth = plan(3);
    assert!(truth.objects.len() > 15, "{}", truth.objects.len());
    for object in &truth.objects {
        assert!((0.0..truth.scene.seconds).contains(&object.crosses));
        let (_, y) = object.at(object.crosses, truth.line, truth.scene.seconds).centre();
        assert!((y - truth.line).abs() < 1e-4);
        assert_eq!(object.plate.is_some(), object.kind.is_vehicle());
    }
}

#[test]
fn the_last_frame_leads_to_the_first() {
    let renderer = Renderer::new(plan(5));
    let frames = (renderer.truth().scene.seconds * renderer.truth().scene.fps) as u64;
    let differ = |a: u64, b: u64| {
        let (a, b) = (renderer.frame(a), renderer.frame(b));
        a.y.iter().zip(&b.y).map(|(a, b)| u64::from(a.abs_diff(*b))).sum::<u64>() as f64 / a.y.len() as f64
    };
    let (step, seam) = (differ(0, 1), differ(frames - 1, frames));
    assert!(seam < step * 1.5 + 0.5, "{seam} {step}");
    assert_eq!(renderer.frame(7), renderer.frame(7));
}

#[test]
fn options_outside_their_range_are_named() {
    for (options, field) in [
        (SceneOptions { width: 63, ..Default::default() }, "width"),
        (SceneOptions { fps: f64::NAN, ..Default::default() }, "fps"),
        (SceneOptions { seconds: 1e9, ..Default::default() }, "seconds"),
        (SceneOptions { noise: -1.0, ..Default::default() }, "noise"),
    ] {
        assert_eq!(Truth::plan(&options).expect_err(field).field, field);
    }
}
