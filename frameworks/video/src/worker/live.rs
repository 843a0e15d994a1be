//! Processes a live source: pictures are examined as they arrive, and lag is measured against their capture times.
//!
//! The position of such a stream is the time since the query began, so pictures that were never sent do not add to the
//! lag.

use std::path::PathBuf;
use std::time::Duration;

use super::pace::Pace;
use super::sampler::Sampler;
use super::stream::Meter;
use super::{FINDINGS_MAX, Shared, clock};
use crate::core::{Orders, Start};
use crate::media::camera::{Feed, FeedOptions, FeedState, FeedStatus, Next, Picture};
use crate::media::{Camera, MediaError};
use crate::pipeline::{Learner, Pipeline, notice};
use crate::profile::core_seconds;
use crate::vision::Network;

/// Least number of cores for examining pictures, since decoding continues whatever the share is.
const LOOKING_MIN: f64 = 0.01;

/// Processes the source until the query ends, the source ends or is given up, or the worker is stopped.
pub(super) fn process_camera(start: &Start, camera: &Camera, shared: &Shared) -> Result<(), MediaError> {
    let options =
        FeedOptions { reconnect: start.spec.reconnect, most: start.spec.kind.highest_rung(), ..Default::default() };
    let network = Network::open_if_any(start.spec.model.as_deref())?;
    let feed = Feed::open(camera, options);
    let mut processor = LiveProcessor::new(start, shared, network);
    let ready = core_seconds();
    let (mut pace, mut meter) = (Pace::default(), Meter::default());
    loop {
        let (orders, full) = {
            let state = shared.lock();
            if state.stop {
                return Ok(());
            }
            (state.orders, state.findings.len() >= FINDINGS_MAX)
        };
        let now = clock() - shared.began;
        if start.spec.seconds.is_some_and(|end| now >= end) {
            processor.finish(now);
            return Ok(());
        }
        let all = processor.sampler.needs_all(clock(), processor.lag(), orders.config);
        feed.every(if all { 1 } else { orders.config.every });
        let own = core_seconds() - ready;
        let paid = own - processor.sampler.spent();
        let used = meter.cores(clock(), own + feed.used());
        let decoding = feed.used() / now.max(1.0);
        let wait = pace.wait(clock(), paid, (orders.cores - decoding).max(LOOKING_MIN));
        processor.report(&feed.status(), paid + feed.used(), used);
        if wait > 0.0 || full {
            shared.wait(wait.max(0.02));
            continue;
        }
        match feed.next(Duration::from_millis(100)) {
            Next::Picture(picture) => processor.process_picture(*picture, orders),
            // No picture is waiting, so there is no lag.
            Next::Nothing => processor.caught_up(now),
            Next::Ended => {
                let status = feed.status();
                processor.report(&status, paid + feed.used(), used);
                processor.finish(now);
                let what = status.message;
                let failed = feed.failed();
                return if failed {
                    Err(MediaError::Malformed { path: PathBuf::from(camera.to_string()), what })
                } else {
                    Ok(())
                };
            }
        }
    }
}

/// State of processing: first the background is learnt, then objects are detected.
struct LiveProcessor<'a> {
    start: &'a Start,
    shared: &'a Shared,
    learner: Learner,
    pipeline: Option<Pipeline>,
    size: Option<(usize, usize)>,
    reported: Option<FeedState>,
    sampler: Sampler<'a>,
    network: Option<Network>,
}

impl<'a> LiveProcessor<'a> {
    fn new(start: &'a Start, shared: &'a Shared, network: Option<Network>) -> LiveProcessor<'a> {
        let sampler = Sampler::new(start, network.clone(), clock());
        LiveProcessor {
            start,
            shared,
            learner: Learner::default(),
            pipeline: None,
            size: None,
            reported: None,
            sampler,
            network,
        }
    }

    /// Returns the lag of the last picture in seconds.
    fn lag(&self) -> f64 {
        self.shared.lag(self.shared.lock().report.position)
    }

    fn process_picture(&mut self, picture: Picture, orders: Orders) {
        let seconds = (picture.captured - self.shared.began).max(0.0);
        if let Some(sample) = self.sampler.push(picture.number, seconds, &picture.frame) {
            self.shared.lock().report.sample = Some(sample);
        }
        let size = (picture.frame.width(), picture.frame.height());
        if let Some(before) = self.size.replace(size).filter(|before| *before != size) {
            let (a, b, c, d) = (before.0, before.1, size.0, size.1);
            self.learn_again(
                seconds,
                &format!("pictures changed from {a}x{b} to {c}x{d}: the background is learnt again"),
            );
        }
        let Some(pipeline) = &mut self.pipeline else {
            if let Some(still) = self.learner.push(seconds, &picture.frame) {
                let spec = &self.start.spec;
                let pipeline = Pipeline::new(spec.kind, orders.config, still).within(&spec.scope);
                self.pipeline = Some(pipeline.with_network(self.network.clone()));
            }
            return self.record_progress(seconds, orders);
        };
        if orders.config != pipeline.config() {
            pipeline.configure(orders.config);
        }
        if !picture.number.is_multiple_of(u64::from(orders.config.every.max(1))) {
            return;
        }
        let findings = pipeline.process(seconds, &picture.frame);
        let notices = pipeline.notices();
        self.shared.draw(&picture.frame, pipeline.tracks(), seconds, &self.start.spec.scope);
        // This worker may have been told to begin before the previous one had ended.
        let new = findings.into_iter().filter(|finding| finding.at >= self.start.position);
        let mut state = self.shared.lock();
        state.findings.extend(new);
        notices.iter().for_each(|n| notice(&mut state.report.notices, n.at, &n.text));
        drop(state);
        self.record_progress(seconds, orders);
    }

    fn record_progress(&self, seconds: f64, orders: Orders) {
        let mut state = self.shared.lock();
        let report = &mut state.report;
        report.position = report.position.max(seconds);
        report.config = Some(orders.config);
        report.frames += 1;
    }

    fn learn_again(&mut self, seconds: f64, why: &str) {
        self.finish_objects();
        self.pipeline = None;
        self.learner = Learner::default();
        notice(&mut self.shared.lock().report.notices, seconds, why);
    }

    fn finish_objects(&mut self) {
        if let Some(pipeline) = &mut self.pipeline {
            let rest = pipeline.finish();
            self.shared.lock().findings.extend(rest.into_iter().filter(|f| f.at >= self.start.position));
        }
    }

    fn caught_up(&self, now: f64) {
        let mut state = self.shared.lock();
        state.report.position = state.report.position.max(now);
    }

    fn finish(&mut self, now: f64) {
        self.finish_objects();
        self.caught_up(now);
    }

    fn report(&mut self, feed: &FeedStatus, core_seconds: f64, used: f64) {
        let at = clock() - self.shared.began;
        let mut state = self.shared.lock();
        let report = &mut state.report;
        if self.reported.replace(feed.state) != Some(feed.state) {
            let text = match feed.state {
                FeedState::Connecting => None,
                FeedState::Live if feed.connections > 1 => Some("the source is connected again".to_owned()),
                FeedState::Live => Some("the source is connected".to_owned()),
                FeedState::Lost | FeedState::Ended => Some(feed.message.clone()),
            };
            if let Some(text) = text {
                notice(&mut report.notices, at, &text);
            }
        }
        report.source = Some(feed.clone());
        report.core_seconds = core_seconds;
        report.used = used;
    }
}
