//! Working on a stream: its frames come at its rate, by the clock on the wall, and are looked at as cores allow.

use super::pace::Pace;
use super::{FINDINGS_MAX, Shared, wall};
use crate::core::Start;
use crate::media::{MediaError, Video};
use crate::pipeline::{Pipeline, learn_still};
use crate::profile::core_seconds;

/// Over how many seconds the cores in use are averaged.
const USED_OVER: f64 = 2.0;

/// Works until the stream ends, fails, or nobody wants it; all that is to be known of it is in `shared`.
pub(super) fn work(start: &Start, shared: &Shared) {
    let failure = match watch(start, shared) {
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

fn watch(start: &Start, shared: &Shared) -> Result<(), MediaError> {
    let spec = &start.spec;
    let mut video = Video::open(&spec.video)?;
    let fps = video.info().fps;
    let mut frames = video.info().frames;
    let still = learn_still(&mut video)?;
    let mut pipeline = Pipeline::new(spec.kind, start.orders.config, still);
    // Getting ready is not paid from the allotment: at a fiftieth of a core, a fifth of a second of it would be ten seconds
    // of lag. It happens once for each start, within what the task holds.
    let ready = core_seconds();
    let spent = || core_seconds() - ready;
    let mut pace = Pace::default();
    let mut meter = Meter::default();
    let mut next = (start.position * fps).ceil() as u64;
    loop {
        let orders = {
            let state = shared.lock();
            if state.stop {
                return Ok(());
            }
            (state.findings.len() < FINDINGS_MAX).then_some(state.orders)
        };
        // The scheduler is away and too much waits to be told.
        let Some(orders) = orders else {
            shared.wait(0.2);
            continue;
        };
        if orders.config != pipeline.config() {
            pipeline.configure(orders.config);
        }
        let every = u64::from(orders.config.every.max(1));
        let number = next.next_multiple_of(every);
        let seconds = number as f64 / fps;
        let past_end = |frames: Option<u64>| !spec.looped && frames.is_some_and(|n| number >= n);
        if spec.seconds.is_some_and(|end| seconds >= end) || past_end(frames) {
            let rest = pipeline.finish();
            let mut state = shared.lock();
            state.findings.extend(rest);
            state.report.position = spec.seconds.unwrap_or(seconds);
            return Ok(());
        }
        let early = seconds - (wall() - start.began);
        let wait = if early > 0.0 { early } else { pace.wait(wall(), spent(), orders.cores) };
        if wait > 0.0 {
            pace.wait(wall(), spent(), orders.cores);
            shared.wait(wait);
            continue;
        }
        let in_file = frames.map_or(number, |n| number % n.max(1));
        let Some(frame) = video.frame(in_file)? else {
            if number == 0 || frames.is_some() {
                return Err(MediaError::Malformed {
                    path: spec.video.clone(),
                    what: "the video has no frames".to_owned(),
                });
            }
            // Only now it is known how long it is.
            frames = Some(number);
            continue;
        };
        let findings = pipeline.process(seconds, &frame);
        next = number + 1;
        let mut state = shared.lock();
        state.findings.extend(findings);
        let report = &mut state.report;
        // Frames that are not looked at are behind it, too.
        report.position = report.position.max((number + every) as f64 / fps);
        report.config = Some(orders.config);
        report.core_seconds = spent();
        report.used = meter.cores(wall(), report.core_seconds);
        report.frames += 1;
    }
}

/// Cores in use, averaged.
#[derive(Default)]
struct Meter {
    since: Option<(f64, f64)>,
    cores: f64,
}

impl Meter {
    fn cores(&mut self, now: f64, used: f64) -> f64 {
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
