//! Tests with the real `ffmpeg` program, where it is installed: `cargo xtask test` installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::tests::{Directory, mp4, number};
use super::*;
use crate::core::{Orders, Start};
use crate::pipeline::{Config, QueryKind};
use crate::schedule::Goals;
use crate::spec::QuerySpec;
use crate::worker::LocalWorker;

/// Makes a Matroska file with this many frames in MPEG-2, which this process does not decode; `None` without the
/// program.
fn matroska(directory: &Directory, frames: u64) -> Option<PathBuf> {
    let (from, to) = (directory.file("a.mp4"), directory.file("a.mkv"));
    mp4(&from, frames);
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i"])
        .arg(&from)
        .args(["-c:v", "mpeg2video", "-q:v", "2", "-r", "25", "-y"])
        .arg(&to)
        .status();
    match made {
        Ok(status) => {
            assert!(status.success());
            Some(to)
        }
        Err(error) => {
            println!("not run: no ffmpeg ({error})");
            None
        }
    }
}

fn count(path: &Path) -> (u64, Option<MediaError>) {
    let mut video = Video::open(path).expect("opens");
    for n in 0.. {
        match video.frame(n) {
            Ok(Some(_)) => {}
            Ok(None) => return (n, None),
            Err(error) => return (n, Some(error)),
        }
    }
    unreachable!("a video has an end")
}

#[test]
fn what_only_the_program_can_decode_is_read_through_it() {
    let directory = Directory::new("ffmpeg");
    let Some(path) = matroska(&directory, 10) else { return };
    let mut video = Video::open(&path).expect("opens");
    assert_eq!(video.info().frames, None, "only reading to the end tells");
    let first = number(&video.frame(0).expect("decodes").expect("is there"));
    let (whole, failed) = count(&path);
    assert!(failed.is_none() && whole >= 10, "{whole} frames, {failed:?}");
    let last = number(&video.frame(whole - 1).expect("decodes").expect("is there"));
    assert!(last > first + 5, "{first} to {last}");
    assert!(video.frame(whole).expect("ends").is_none());
    assert_eq!(video.info().frames, Some(whole));
    assert_eq!(number(&video.frame(0).expect("goes back").expect("is there")), first);
    assert!(video.core_seconds_of_others() > 0.0, "what the program uses is accounted for");
}

#[test]
fn a_file_that_is_cut_short_or_damaged_is_an_error_and_no_end() {
    let directory = Directory::new("ffmpeg-cut");
    let Some(path) = matroska(&directory, 24) else { return };
    let good = std::fs::read(&path).expect("reads");
    let (whole, _) = count(&path);
    let mut bytes = good.clone();
    // Random bytes in every picture cause more error messages than fit into a pipe.
    for at in (2000..bytes.len()).step_by(23) {
        bytes[at] ^= 0x5a;
    }
    std::fs::write(&path, &bytes).expect("writes");
    if let Ok(mut video) = Video::open(&path) {
        let broken = (0..whole).find_map(|n| video.frame(n).err());
        assert!(broken.is_some(), "a damaged file is told");
    }
}

/// The end of a stream from a pipe is known only when it is reached, whichever of its frames are examined.
#[test]
fn a_loop_goes_round_in_every_configuration() {
    let directory = Directory::new("ffmpeg-loop");
    let Some(path) = matroska(&directory, 11) else { return };
    let goals = Goals::default();
    let spec = QuerySpec {
        name: "q".to_owned(),
        kind: QueryKind::Cars,
        video: path.into(),
        reconnect: 0.0,
        scope: crate::pipeline::Scope::default(),
        detector: crate::vision::Detector::Colour,
        alert: false,
        model: None,
        looped: true,
        seconds: Some(6.0),
        truth: None,
        profile: None,
        goals,
    };
    let config = |every| Config { every, ..Config::GOLDEN };
    let orders = Orders { config: config(4), cores: 1.0 };
    // The whole stream exists already, so nothing waits for it.
    let worker = LocalWorker::start(Start {
        spec,
        age: 100.0,
        position: 0.0,
        orders,
        golden: Config::GOLDEN,
        sample_every: 0.0,
        patience: 1.0,
    });
    let until = |done: &dyn Fn(&crate::core::Report) -> bool| {
        crate::worker::wait_for(&worker, done);
    };
    until(&|report| report.position > 2.0);
    worker.set_orders(Orders { config: config(1), cores: 1.0 });
    until(&|report| report.done || report.failure.is_some());
    assert_eq!(worker.report().failure, None);
}

/// With an ordinary encoding (x264 with three consecutive B pictures, key frames 250 apart) examining fewer frames
/// decodes fewer, and they are the same.
#[test]
fn pictures_that_nothing_needs_are_not_decoded() {
    let directory = Directory::new("ffmpeg-skip");
    let path = directory.file("ordinary.mp4");
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc=size=160x120:rate=25", "-t", "6"])
        .args(["-c:v", "libx264", "-x264-params", "b-adapt=0", "-pix_fmt", "yuv420p", "-y"])
        .arg(&path)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        println!("not run: no ffmpeg with libx264");
        return;
    }
    let all = |every: usize| {
        let mut video = Video::open_indexed(&path).expect("opens");
        let frames: Vec<Frame> =
            (0..150).step_by(every).map(|n| video.frame(n).expect("decodes").expect("is there")).collect();
        (frames, video.decoded())
    };
    let (whole, decoded) = all(1);
    assert_eq!((whole.len(), decoded), (150, 150));
    for every in [3, 8, 25] {
        let (some, decoded) = all(every);
        assert!(some.iter().zip(whole.iter().step_by(every)).all(|(a, b)| a == b), "every {every}");
        assert!(decoded < 130, "every {every}: {decoded} of 150 decoded");
        println!("every {every}: {decoded} of 150 decoded");
    }
}
