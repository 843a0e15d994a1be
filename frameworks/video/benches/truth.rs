//! Measures how well objects are detected and tracked: F1 of boxes at an overlap of one half, identity switches, F1 of
//! crossings of a vertical line in the middle, and classes.
//!
//! Without arguments it uses the generated square. With `--truth DIR` it uses a video (`*.avi`, `*.mp4`, `*.mkv`)
//! and its ground truth (`gt.txt`, in the format of the MOT challenge) in that directory. With `--model FILE` the
//! detector `network` is measured, too, in builds with the feature.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use std::path::{Path, PathBuf};

use video::frame::Frame;
use video::media::Video;
use video::pipeline::{Config, Pipeline, QueryKind, compare, labels, learn_still, vertical_line};
use video::profile::core_seconds;
use video::scene::{SQUARE_FPS, Square};
use video::scope::Scope;
use video::truth::{DetectionCounts, LabelledBox, Measure, read_mot};
use video::vision::{Detector, Network, still_of};

/// Length of the generated square, in seconds.
const SECONDS: f64 = 90.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let directory = arguments.iter().position(|a| a == "--truth").and_then(|at| arguments.get(at + 1));
    let model = arguments.iter().position(|a| a == "--model").and_then(|at| arguments.get(at + 1));
    let network = Network::open_if_any(model.map(Path::new)).expect("the model");
    match directory {
        Some(directory) => recorded(Path::new(directory), network.as_ref()),
        None => made(network.as_ref()),
    }
}

/// A picture with its time in seconds and its ground truth.
type Picture = (f64, Frame, Vec<LabelledBox>);

/// Returns the detectors that can be measured.
fn detectors(network: Option<&Network>) -> impl Iterator<Item = Detector> {
    Detector::ALL.into_iter().chain(network.map(|_| Detector::Network))
}

fn made(network: Option<&Network>) {
    println!("the synthetic square, {SECONDS} s for each of 6 seeds:");
    let scenes: Vec<Vec<Picture>> = [1, 2, 3, 4, 5, 6].map(|seed| square(seed, SECONDS)).into();
    for detector in detectors(network) {
        let (mut all, mut cost) = (Vec::new(), 0.0);
        for scene in &scenes {
            let frames: Vec<Frame> = scene.iter().step_by(75).map(|(_, frame, _)| frame.clone()).collect();
            let still = still_of(&frames).expect("pictures of one size");
            let (figures, seconds) = measured((detector, network), still, scene.iter().cloned());
            all.push(figures);
            cost += seconds / scene.len() as f64 / scenes.len() as f64;
        }
        tell(detector, &sum(&all), cost);
    }
}

fn square(seed: u64, seconds: f64) -> Vec<Picture> {
    let square = Square::new(seed, seconds);
    let numbers = 0..(seconds * SQUARE_FPS) as u64;
    numbers.map(|n| (n as f64 / SQUARE_FPS, square.frame(n), labels(&square, n))).collect()
}

fn recorded(directory: &Path, network: Option<&Network>) {
    let ends = |path: &PathBuf| path.extension().is_some_and(|e| ["avi", "mp4", "mkv"].iter().any(|v| e == *v));
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).expect("the directory").flatten().map(|e| e.path()).filter(ends).collect();
    files.sort();
    let path = files.first().expect("a video in the directory");
    println!("{}:", path.display());
    for detector in detectors(network) {
        let mut video = Video::open(path).expect("opens");
        let info = video.info();
        let labels = read_mot(&directory.join("gt.txt"), (info.width, info.height)).expect("gt.txt");
        let still = learn_still(&mut video, 0).expect("a still picture");
        let pictures = (0..).map_while(|number| {
            let frame = video.frame(number).expect("decodes")?;
            let from = labels.partition_point(|l| l.frame < number);
            let here = labels[from..].iter().take_while(|l| l.frame == number).copied().collect();
            Some((number as f64 / info.fps, frame, here))
        });
        let mut count = 0;
        let (figures, seconds) = measured((detector, network), still, pictures.inspect(|_| count += 1));
        tell(detector, &figures, seconds / f64::from(count.max(1)));
    }
}

/// Returns the measured figures and the core-seconds that detection took.
fn measured(
    (detector, network): (Detector, Option<&Network>),
    still: Frame,
    pictures: impl Iterator<Item = Picture>,
) -> (DetectionCounts, f64) {
    let scope = Scope { lines: vec![vertical_line()], region: Vec::new() };
    let config = Config { detector, ..Config::GOLDEN };
    let pipeline = Pipeline::new(QueryKind::Kinds, config, still).within(&scope);
    let mut pipeline = pipeline.with_network(network.cloned());
    let (mut measure, mut seconds) = (Measure::new(vertical_line()), 0.0);
    for (at, frame, truth) in pictures {
        let before = core_seconds();
        let findings = pipeline.process(at, &frame);
        seconds += core_seconds() - before;
        compare(&mut measure, &pipeline, at, &findings, &truth);
    }
    (measure.figures(), seconds)
}

fn sum(all: &[DetectionCounts]) -> DetectionCounts {
    let add = |a: (u64, u64, u64), b: (u64, u64, u64)| (a.0 + b.0, a.1 + b.1, a.2 + b.2);
    all.iter().fold(DetectionCounts::default(), |sum, f| DetectionCounts {
        boxes: add(sum.boxes, f.boxes),
        switches: sum.switches + f.switches,
        objects: sum.objects + f.objects,
        crossings: add(sum.crossings, f.crossings),
        classes: (sum.classes.0 + f.classes.0, sum.classes.1 + f.classes.1),
    })
}

fn tell(detector: Detector, figures: &DetectionCounts, seconds: f64) {
    println!(
        "  {:<11} boxes F1 {:.3} (precision {:.3}, recall {:.3}), {:>3} switches of {} objects, crossings F1 {:.3} ({} right, {} wrong, {} missed), classes {:.1} %, {:.2} ms a picture",
        detector.name(),
        figures.boxes_f1(),
        figures.boxes.0 as f64 / (figures.boxes.0 + figures.boxes.1).max(1) as f64,
        figures.boxes.0 as f64 / (figures.boxes.0 + figures.boxes.2).max(1) as f64,
        figures.switches,
        figures.objects,
        figures.crossings_f1(),
        figures.crossings.0,
        figures.crossings.1,
        figures.crossings.2,
        figures.classes_right() * 100.0,
        seconds * 1000.0
    );
}
