//! Measures how many frames a second one core decodes and counts at 640x360 with each detector, and the cost of reading
//! plates.
//!
//! Processor time of the measuring thread is used, so other load on the machine matters little.

#![allow(clippy::print_stdout, reason = "a benchmark prints what it has measured")]

use video::media::Video;
use video::pipeline::{Config, Pipeline, QueryKind, learn_still};
use video::profile::core_seconds;
use video::scene::{SceneOptions, generate};
use video::vision::Detector;

fn main() {
    let path = std::env::temp_dir().join(format!("tepui-bench-decode-{}.mp4", std::process::id()));
    let options = SceneOptions { seed: 3, seconds: 16.0, ..Default::default() };
    generate(&options, &path).expect("a scene");
    println!("decode + count, {}x{}, H.264 in MP4, one core:", options.width, options.height);
    for (kind, detector) in [
        (QueryKind::Cars, Detector::Difference),
        (QueryKind::Cars, Detector::Gaussian),
        (QueryKind::Cars, Detector::Colour),
        (QueryKind::Plates, Detector::Colour),
    ] {
        let mut video = Video::open(&path).expect("opens");
        let still = learn_still(&mut video, 0).expect("a still picture");
        let mut pipeline = Pipeline::new(kind, Config { detector, ..Config::GOLDEN }, still);
        let (mut decode, mut look, mut frames) = (0.0, 0.0, 0);
        for number in 0.. {
            let before = core_seconds();
            let Some(frame) = video.frame(number).expect("decodes") else { break };
            let between = core_seconds();
            pipeline.process(number as f64 / options.fps, &frame);
            decode += between - before;
            look += core_seconds() - between;
            frames += 1;
        }
        let per_second = f64::from(frames) / (decode + look);
        println!(
            "  {:<7} {:<10} {per_second:>6.0} frames/s   ({:.2} ms to decode, {:.2} ms to look at)",
            kind.name(),
            detector.name(),
            decode * 1000.0 / f64::from(frames),
            look * 1000.0 / f64::from(frames)
        );
    }
    std::fs::remove_file(&path).expect("removes");
    std::fs::remove_file(path.with_extension("json")).expect("removes");
}
