//! Tests of the profiler against an exhaustive search: on synthetic landscapes, and on a small real clip.

use proptest::prelude::*;

use super::*;
use crate::pipeline::{Config, Knobs, QueryKind};
use crate::scene::{SceneOptions, generate};

/// A synthetic landscape: each step down of a knob costs some quality and saves some demand.
struct Made {
    harm: [f64; 4],
    knobs: Knobs,
    tries: usize,
}

impl Evaluate for Made {
    type Error = std::convert::Infallible;

    fn evaluate(&mut self, config: &Config) -> Result<Point, Self::Error> {
        self.tries += 1;
        let at = |found: Option<usize>| found.unwrap_or(0) as f64;
        let steps = [
            at(self.knobs.every.iter().position(|v| *v == config.every)),
            at(self.knobs.shrink.iter().position(|v| *v == config.shrink)),
            at(self.knobs.window.iter().position(|v| *v == config.window)),
            at(self.knobs.detector.iter().position(|v| *v == config.detector)),
        ];
        let quality = steps.iter().zip(self.harm).map(|(s, h)| (1.0 - h).powf(*s)).product();
        let cores = [0.5, 0.4, 0.9, 0.7].iter().zip(steps).map(|(save, s): (&f64, f64)| save.powf(s)).product();
        Ok(Point { config: *config, quality, cores })
    }
}

proptest! {
    // Fewer tries than an exhaustive search; the best quality within 5 % of the optimum, at every budget of cores
    // within 15 %; the frontier is sorted and none of its points is beaten.
    #[test]
    fn climbing_is_cheaper_and_nearly_as_good(harm in proptest::array::uniform4(0.005_f64..0.5)) {
        let knobs = Knobs::default();
        let mut made = Made { harm, knobs: knobs.clone(), tries: 0 };
        let points = climb(&knobs, Config::GOLDEN, &Search::default(), &mut made).expect("never fails");
        let tries = made.tries;
        let all = exhaustive(&knobs, &mut made).expect("never fails");
        prop_assert!(tries * 2 < all.len(), "{} of {}", tries, all.len());
        let best = |points: &[Point], cores: f64| {
            points.iter().filter(|p| p.cores <= cores).map(|p| p.quality).fold(0.0, f64::max)
        };
        prop_assert!(best(&points, 1.0) >= 0.95 * best(&all, 1.0));
        let front = frontier(&points);
        prop_assert!(front.is_sorted_by(|a, b| a.cores <= b.cores && a.quality < b.quality));
        for p in &front {
            prop_assert!(!points.iter().any(|o| o.cores <= p.cores && o.quality > p.quality));
        }
    }
}

#[test]
fn a_profile_is_made_kept_and_used_again() {
    let directory = std::env::temp_dir().join(format!("tepui-profile-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let video = directory.join("a.mp4");
    let options = SceneOptions { seed: 9, seconds: 8.0, width: 320, height: 180, ..Default::default() };
    generate(&options, &video).expect("a scene");
    let knobs = Knobs { every: vec![1, 4, 25], shrink: vec![1, 4], window: vec![3, 1], ..Default::default() };
    let clip = || ClipOptions { seconds: 8.0, ..Default::default() };
    let (made, new) = Profile::load_or_make(&directory, &video, QueryKind::Cars, &knobs, clip()).expect("profiled");
    assert!(new && made.frontier.len() >= 2, "{made:?}");
    let (last, first) = (made.frontier.last().expect("points"), made.frontier[0]);
    assert!(last.quality > 0.95 && last.cores > first.cores, "{made:?}");
    let (again, new) = Profile::load_or_make(&directory, &video, QueryKind::Cars, &knobs, clip()).expect("read");
    assert!(!new);
    assert_eq!(again, made);
    // A damaged file is rejected with the rule that it breaks, and made again where it is only a cache.
    let path = std::fs::read_dir(&directory).expect("lists").flatten().map(|e| e.path());
    let path = path
        .into_iter()
        .find(|p| p.extension().is_some_and(|e| e == "json") && p.file_name() != Some("a.json".as_ref()));
    let path = path.expect("the profile");
    let text = std::fs::read_to_string(&path).expect("reads").replace("\"version\": 1", "\"version\": 7");
    std::fs::write(&path, text).expect("writes");
    assert!(Profile::read(&path).expect_err("another version").to_string().contains("version"));
    let other = Knobs { detector: knobs.detector[1..].to_vec(), ..knobs };
    assert!(Profile::load_or_make(&directory, &video, QueryKind::Cars, &other, clip()).expect("made").1);
    std::fs::remove_dir_all(&directory).expect("removes");
}
