//! Processes a stream whose frames arrive at its rate, as fast as the share of cores allows.

use std::path::{Path, PathBuf};

use super::pace::Pace;
use super::sampler::Sampler;
use super::{FINDINGS_MAX, Shared, clock, live};
use crate::core::Start;
use crate::frame::Frame;
use crate::media::{MediaError, Source, Video};
use crate::pipeline::{Pipeline, learn_still, notice};
use crate::profile::core_seconds;
use crate::spec::QuerySpec;
use crate::vision::Network;

/// Time over which the used cores are averaged, in seconds.
const USED_OVER: f64 = 2.0;
/// Length of the stream before its position with which a worker begins, in seconds.
const LEAD_IN: f64 = 2.0;

/// Processes the stream until it ends, fails, or the worker is stopped; its state is in `shared`.
pub(super) fn work(start: &Start, shared: &Shared) {
    let done = match &start.spec.video {
        Source::File(path) => process_file(start, path, shared),
        Source::Camera(camera) => live::process_camera(start, camera, shared),
    };
    let failure = match done {
        Ok(()) => None,
        Err(error) => Some(error.to_string()),
    };
    let mut state = shared.lock();
    if failure.is_some() {
        state.report.failure = failure;
    } else if !state.stop {
        state.report.done = true;
    }
    drop(state);
    shared.changed.notify_all();
}

fn process_file(start: &Start, path: &Path, shared: &Shared) -> Result<(), MediaError> {
    let spec = &start.spec;
    let mut frames = Frames::open(spec, path)?;
    let fps = frames.video.info().fps;
    let still = learn_still(&mut frames.video, 0)?;
    let network = Network::open_if_any(spec.model.as_deref())?;
    let pipeline = Pipeline::new(spec.kind, start.orders.config, still).within(&spec.scope);
    let mut pipeline = pipeline.with_network(network.clone());
    let mut next = lead_in(start, &mut frames, &mut pipeline, shared)?;
    // Preparation does not count against the share: with a fiftieth of a core, a fifth of a core-second would be ten
    // seconds of lag. It happens once for each start, within what the task holds.
    let ready = frames.core_seconds();
    let mut pace = Pace::default();
    let mut meter = Meter::default();
    let mut sampler = Sampler::new(start, network, clock());
    loop {
        let orders = {
            let state = shared.lock();
            if state.stop {
                return Ok(());
            }
            (state.findings.len() < FINDINGS_MAX).then_some(state.orders)
        };
        // The scheduler does not answer and too many findings are queued.
        let Some(orders) = orders else {
            shared.wait(0.2);
            continue;
        };
        if orders.config != pipeline.config() {
            pipeline.configure(orders.config);
        }
        let lag = shared.lag(next as f64 / fps);
        let all = sampler.needs_all(clock(), lag, orders.config);
        let every = u64::from(orders.config.every.max(1));
        let number = if all { next } else { next.next_multiple_of(every) };
        let seconds = number as f64 / fps;
        let over = spec.seconds.is_some_and(|end| seconds >= end) || frames.are_over(number);
        let early = seconds - (clock() - shared.began);
        let paid = frames.core_seconds() - ready - sampler.spent();
        let wait = if early > 0.0 { early } else { pace.wait(clock(), paid, orders.cores) };
        if wait > 0.0 && !over {
            pace.wait(clock(), paid, orders.cores);
            shared.wait(wait);
            continue;
        }
        let before = frames.core_seconds();
        let frame = if over { None } else { frames.get(number)? };
        let Some(frame) = frame else {
            let rest = pipeline.finish();
            let mut state = shared.lock();
            state.findings.extend(rest);
            state.report.position = spec.seconds.unwrap_or(seconds);
            return Ok(());
        };
        next = number + 1;
        let looked_at = number.is_multiple_of(every);
        if !looked_at {
            sampler.spend(frames.core_seconds() - before);
        }
        let sample = sampler.push(number, seconds, &frame);
        let findings = if looked_at { pipeline.process(seconds, &frame) } else { Vec::new() };
        shared.draw(&frame, pipeline.tracks(), seconds, &spec.scope);
        let mut state = shared.lock();
        state.findings.extend(findings);
        let report = &mut state.report;
        for happened in pipeline.notices() {
            notice(&mut report.notices, happened.at, &happened.text);
        }
        // The position includes frames that were skipped.
        report.sample = sample.or(report.sample.take());
        report.position = report.position.max((number + if all { 1 } else { every }) as f64 / fps);
        report.config = Some(orders.config);
        let used = frames.core_seconds() - ready;
        report.core_seconds = used - sampler.spent();
        report.used = meter.cores(clock(), used);
        report.frames += u64::from(looked_at);
    }
}

/// Processes the last frames before the position, so that objects that are tracked at a takeover are tracked to their
/// end; findings there were already reported. Returns the frame to continue with.
fn lead_in(start: &Start, frames: &mut Frames, pipeline: &mut Pipeline, shared: &Shared) -> Result<u64, MediaError> {
    let fps = frames.video.info().fps;
    let begin = (start.position * fps).ceil() as u64;
    let from = ((start.position - LEAD_IN).max(0.0) * fps).ceil() as u64;
    let every = start.orders.config.every.max(1);
    let first = from.next_multiple_of(u64::from(every));
    for number in (first..begin).step_by(every as usize) {
        if shared.lock().stop {
            break;
        }
        let Some(frame) = frames.get(number)? else { break };
        let findings = pipeline.process(number as f64 / fps, &frame);
        shared.lock().findings.extend(findings.into_iter().filter(|f| f.at >= start.position));
    }
    Ok(begin)
}

/// The frames of a stream, which may be a repeated file.
struct Frames {
    video: Video,
    path: PathBuf,
    looped: bool,
    /// Number of frames in the file; `None` until it is known.
    known: Option<u64>,
}

impl Frames {
    fn open(spec: &QuerySpec, path: &Path) -> Result<Frames, MediaError> {
        let video = Video::open(path)?;
        let known = video.info().frames;
        Ok(Frames { video, path: path.to_owned(), looped: spec.looped, known })
    }

    /// Returns the core-seconds of this thread, and of processes that decode for it.
    fn core_seconds(&self) -> f64 {
        core_seconds() + self.video.core_seconds_of_others()
    }

    /// Returns whether this frame is known to be past the end.
    fn are_over(&self, number: u64) -> bool {
        !self.looped && self.known.is_some_and(|n| number >= n)
    }

    /// Returns the frame with this number; `None` past the end of a stream that has one.
    fn get(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        while !self.are_over(number) {
            let in_file = self.known.map_or(number, |n| number % n.max(1));
            if let Some(frame) = self.video.frame(in_file)? {
                return Ok(Some(frame));
            }
            // The number of frames may be known only after the frame was read.
            let seen = self.video.info().frames.filter(|n| *n > 0);
            if seen.is_none() || seen == self.known {
                let what = "the video has no frames".to_owned();
                return Err(MediaError::Malformed { path: self.path.clone(), what });
            }
            self.known = seen;
        }
        Ok(None)
    }
}

/// Measures the cores in use, averaged over time.
#[derive(Default)]
pub(super) struct Meter {
    since: Option<(f64, f64)>,
    cores: f64,
}

impl Meter {
    pub(super) fn cores(&mut self, now: f64, used: f64) -> f64 {
        let (at, before) = *self.since.get_or_insert((now, used));
        if now - at >= USED_OVER {
            self.cores = (used - before) / (now - at);
            self.since = Some((now, used));
        } else if self.cores == 0.0 && now > at {
            return (used - before) / (now - at);
        }
        self.cores
    }
}
