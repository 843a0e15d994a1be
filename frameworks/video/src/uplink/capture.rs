//! Takes pictures from a source as they come, and encodes them for the rungs that have readers. Sends nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;

use super::STREAM;
use crate::abr::live::RUNGS;
use crate::clock;
use crate::frame::Frame;
use crate::media::camera::{Feed, FeedOptions, FeedStatus, Next};
use crate::media::{Camera, MediaError, Source, Video};
use crate::output::jpeg;
use crate::picture_stream::{Picture, RungSchedule, Views, divisor};
use crate::vision::shrink;

/// Longest wait for a picture, for a reader, or for the end.
const WAIT: Duration = Duration::from_millis(20);

/// State of an uplink's source.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct CaptureStatus {
    /// Width and height in pixels; `None` before the first picture.
    size: Option<(usize, usize)>,
    /// State of a camera; `None` for a file.
    camera: Option<FeedStatus>,
}

/// A source that is being read.
pub(super) struct Capture {
    input: Input,
    output: Output,
}

enum Input {
    Camera(Camera),
    File { video: Video, repeat: bool },
}

impl Capture {
    /// Opens a source.
    ///
    /// # Errors
    /// Returns an error if the source is a file that cannot be read.
    pub(super) fn open(
        source: &Source,
        repeat: bool,
        views: Arc<Views>,
        stop: Arc<AtomicBool>,
    ) -> Result<Capture, MediaError> {
        let input = match source {
            Source::Camera(camera) => Input::Camera(camera.clone()),
            Source::File(path) => Input::File { video: Video::open(path)?, repeat },
        };
        let began = clock::monotonic();
        let output = Output { views, stop, status: Arc::default(), due: RungSchedule::default(), began };
        Ok(Capture { input, output })
    }

    /// Returns the state of the source, which changes while it is read.
    pub(super) fn status(&self) -> Arc<Mutex<CaptureStatus>> {
        self.output.status.clone()
    }

    /// Reads the source until it ends, or until the uplink is stopped.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read to its end, or a lost camera is given up.
    pub(super) fn run(mut self) -> Result<(), MediaError> {
        match self.input {
            Input::Camera(camera) => self.output.read_camera(&camera),
            Input::File { video, repeat } => self.output.read_file(video, repeat),
        }
    }
}

/// Destination of the pictures.
struct Output {
    views: Arc<Views>,
    stop: Arc<AtomicBool>,
    status: Arc<Mutex<CaptureStatus>>,
    due: RungSchedule,
    began: f64,
}

impl Output {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn read_camera(&mut self, camera: &Camera) -> Result<(), MediaError> {
        let feed = Feed::open(camera, FeedOptions::default());
        while !self.is_stopped() {
            let next = feed.next(WAIT);
            base::lock(&self.status).camera = Some(feed.status());
            match next {
                Next::Picture(picture) => {
                    let rungs = self.due_rungs(clock::monotonic());
                    self.send(&picture.frame, picture.captured, &rungs);
                }
                Next::Nothing => {}
                Next::Ended if feed.failed() => {
                    let what = feed.status().message;
                    return Err(MediaError::Malformed { path: PathBuf::from(camera.to_string()), what });
                }
                Next::Ended => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads a file at its frame rate. Frames that no reader needs are not decoded.
    fn read_file(&mut self, mut video: Video, repeat: bool) -> Result<(), MediaError> {
        let (fps, mut last) = (video.info().fps, None);
        while !self.is_stopped() {
            let now = clock::monotonic();
            let number = ((now - self.began) * fps) as u64;
            let known = video.info().frames.filter(|frames| *frames > 0);
            if !repeat && known.is_some_and(|frames| number >= frames) {
                return Ok(());
            }
            let rungs = if last == Some(number) { Vec::new() } else { self.due_rungs(now) };
            if rungs.is_empty() {
                std::thread::park_timeout(WAIT.min(Duration::from_secs_f64(0.5 / fps)));
                continue;
            }
            last = Some(number);
            match video.frame(known.map_or(number, |frames| number % frames))? {
                Some(frame) => self.send(&frame, self.began + number as f64 / fps, &rungs),
                // The number of frames is known from here on.
                None if repeat && video.info().frames.is_some_and(|frames| frames > 0) => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns the rungs that have readers and are due.
    fn due_rungs(&mut self, now: f64) -> Vec<usize> {
        let mut rungs = self.views.viewed_rungs(STREAM);
        rungs.retain(|rung| self.due.take(*rung, now));
        rungs
    }

    /// Encodes a picture for these rungs. `captured` is its time on the monotonic clock.
    fn send(&mut self, frame: &Frame, captured: f64, rungs: &[usize]) {
        let size = (frame.width(), frame.height());
        base::lock(&self.status).size = Some(size);
        for rung in rungs {
            let smaller = shrink(frame, divisor(frame.width(), RUNGS[*rung].width));
            // Frames of valid sizes can be encoded.
            if let Ok(jpeg) = jpeg(&smaller, RUNGS[*rung].quality) {
                let picture = Picture { seconds: captured - self.began, jpeg, source_size: Some(size) };
                self.views.add(STREAM, *rung, picture);
            }
        }
    }
}
