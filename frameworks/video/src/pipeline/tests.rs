//! Tests of queries on generated scenes: their findings against the ground truth.

use super::*;
use crate::media::Video;
use crate::scene::{SceneOptions, Truth, generate};

struct File(std::path::PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.0.with_extension("json"));
    }
}

fn scene(name: &str, options: &SceneOptions) -> (File, Truth) {
    let path = std::env::temp_dir().join(format!("tepui-scene-{name}-{}.mp4", std::process::id()));
    let (truth, _) = generate(options, &path).expect("a scene");
    (File(path), truth)
}

fn run(file: &File, kind: QueryKind, config: Config) -> Vec<Finding> {
    let mut video = Video::open(&file.0).expect("opens");
    let still = learn_still(&mut video, 0).expect("a still picture");
    let mut pipeline = Pipeline::new(kind, config, still);
    let fps = video.info().fps;
    let mut found = Vec::new();
    for number in (0..).step_by(config.every as usize) {
        let Some(frame) = video.frame(number).expect("decodes") else { break };
        found.extend(pipeline.process(number as f64 / fps, &frame));
    }
    found.extend(pipeline.finish());
    found
}

/// Removes findings of the first and last second: an object at the line when the video begins or ends may or may not
/// count.
fn inner(findings: &[Finding], seconds: f64) -> Vec<Finding> {
    findings.iter().filter(|f| f.at > 1.0 && f.at < seconds - 1.0).cloned().collect()
}

#[test]
fn the_golden_configuration_finds_the_truth() {
    let options = SceneOptions { seed: 4, seconds: 16.0, ..Default::default() };
    let (file, truth) = scene("golden", &options);
    for kind in QueryKind::ALL {
        let found = inner(&run(&file, kind, Config::GOLDEN), options.seconds);
        let wanted = inner(&true_findings(&truth, kind, 0.0, options.seconds), options.seconds);
        let score = score(kind, &found, &wanted);
        println!("{}: {score:?} {:.3}", kind.name(), score.f1());
        assert!(wanted.len() >= 5, "{}: {}", kind.name(), wanted.len());
        if matches!(kind, QueryKind::Cars | QueryKind::People | QueryKind::Plates) {
            assert_eq!((score.wrong, score.missed), (0, 0), "{}: {found:?}\n{wanted:?}", kind.name());
        }
        assert!(score.f1() >= 0.9, "{}: {score:?}", kind.name());
    }
}

/// Takes consecutive samples of a video with this configuration.
fn samples(file: &File, config: Config) -> Vec<SampleProgress> {
    let mut video = Video::open(&file.0).expect("opens");
    let fps = video.info().fps;
    let sample = || Sample::new(QueryKind::Cars, &Scope::default(), Config::GOLDEN, config);
    let (mut out, mut current) = (Vec::new(), sample());
    for number in 0.. {
        let Some(frame) = video.frame(number).expect("decodes") else { break };
        match current.push(number, number as f64 / fps, &frame) {
            SampleProgress::More => {}
            done => {
                out.push(done);
                current = sample();
            }
        }
    }
    out
}

#[test]
fn samples_tell_a_good_configuration_from_a_poor_one() {
    let options = SceneOptions { seed: 6, seconds: 54.0, ..Default::default() };
    let (file, _) = scene("samples", &options);
    let scores = |config| -> Vec<Score> {
        let done = |s| match s {
            SampleProgress::Done(score) => score,
            other => panic!("{other:?}"),
        };
        samples(&file, config).into_iter().map(done).collect()
    };
    let golden = scores(Config::GOLDEN);
    assert!(golden.len() == 2 && golden.iter().all(|s| s.right >= 3 && s.f1() == 1.0), "{golden:?}");
    let poor = scores(Config { every: 30, shrink: 8, window: 3, ..Config::GOLDEN });
    assert!(poor.len() == 2 && poor.iter().all(|s| s.f1() < 0.9), "{poor:?}");
    // The golden configuration finds the same, whichever configuration is compared with it.
    let there = |scores: &[Score]| scores.iter().map(|s| s.right + s.missed).collect::<Vec<_>>();
    assert_eq!(there(&golden), there(&poor));
}

#[test]
fn a_sample_without_a_picture_is_void() {
    let frame = crate::frame::Frame::filled(32, 32, crate::frame::Colour::grey(90));
    let mut sample = Sample::new(QueryKind::Cars, &Scope::default(), Config::GOLDEN, Config::GOLDEN);
    // While the background is learnt, pictures may be missing.
    let numbers = (0..60).step_by(2).chain(60..200);
    assert!(numbers.into_iter().all(|n| sample.push(n, n as f64 * 0.04, &frame) == SampleProgress::More));
    assert_eq!(sample.push(201, 8.04, &frame), SampleProgress::Void);
}
