//! Runs one query on a camera, without a cluster. Every picture that was not dropped is examined.

use std::path::PathBuf;
use std::time::Duration;

use super::{LocalError, LocalOptions, LocalReport, VisualOutput, write_results};
use crate::clock;
use crate::media::camera::{Feed, FeedOptions, Next};
use crate::media::{Camera, MediaError};
use crate::pipeline::{Finding, Learner, Notice, Pipeline, notice};
use crate::profile::core_seconds;
use crate::vision::Network;

/// Maximum number of findings that are kept for the results file.
const FINDINGS_MAX: usize = 1_000_000;

/// Runs until the source ends or is given up, or for the number of seconds in the options.
pub(super) fn run(
    options: &LocalOptions,
    camera: &Camera,
    each: &mut dyn FnMut(&Finding),
) -> Result<LocalReport, LocalError> {
    let network = Network::open_if_any(options.model.as_deref()).map_err(MediaError::from)?;
    let limits = FeedOptions { reconnect: options.reconnect, most: options.kind.highest_rung(), ..Default::default() };
    let feed = Feed::open(camera, limits);
    feed.every(options.config.every);
    let (began, ready) = (clock::monotonic(), core_seconds());
    let mut watch = CameraRun { options, began, seconds: 0.0, network, ..CameraRun::new(options) };
    let over = loop {
        if options.seconds.is_some_and(|end| clock::monotonic() - began >= end) {
            break false;
        }
        match feed.next(Duration::from_millis(100)) {
            Next::Picture(picture) => watch.look(picture.captured, picture.frame, feed.status().fps, each)?,
            Next::Nothing => {}
            Next::Ended => break true,
        }
    };
    watch.finish(each)?;
    let status = feed.status();
    let cut = (over && feed.failed())
        .then(|| MediaError::Malformed { path: PathBuf::from(camera.to_string()), what: status.message.clone() });
    if watch.frames == 0
        && let Some(error) = cut
    {
        return Err(error.into());
    }
    watch.findings.sort_by(|a: &Finding, b| a.at.total_cmp(&b.at));
    write_results(options, &watch.findings)?;
    Ok(LocalReport {
        distinct: watch.distinct + watch.pipeline.as_ref().map_or(0, Pipeline::distinct),
        findings: watch.findings,
        frames: watch.frames,
        seconds: watch.seconds,
        core_seconds: core_seconds() - ready + feed.used(),
        score: None,
        format: (watch.size.map_or(0, |(width, _)| width), status.fps),
        source: Some(status),
        notices: watch.notices,
        cut,
    })
}

struct CameraRun<'a> {
    options: &'a LocalOptions,
    began: f64,
    network: Option<Network>,
    seconds: f64,
    learner: Learner,
    pipeline: Option<Pipeline>,
    drawn: Option<VisualOutput<'a>>,
    size: Option<(usize, usize)>,
    findings: Vec<Finding>,
    notices: Vec<Notice>,
    frames: u64,
    distinct: u64,
}

impl<'a> CameraRun<'a> {
    fn new(options: &'a LocalOptions) -> CameraRun<'a> {
        CameraRun {
            options,
            began: 0.0,
            network: None,
            seconds: 0.0,
            learner: Learner::default(),
            pipeline: None,
            drawn: None,
            size: None,
            findings: Vec::new(),
            notices: Vec::new(),
            frames: 0,
            distinct: 0,
        }
    }

    fn look(
        &mut self,
        captured: f64,
        frame: crate::frame::Frame,
        fps: f64,
        each: &mut dyn FnMut(&Finding),
    ) -> Result<(), LocalError> {
        self.frames += 1;
        self.seconds = (captured - self.began).max(0.0);
        let size = (frame.width(), frame.height());
        if let Some(before) = self.size.replace(size).filter(|before| *before != size) {
            let (a, b, c, d) = (before.0, before.1, size.0, size.1);
            let text = format!("pictures changed from {a}x{b} to {c}x{d}: the background is learnt again");
            notice(&mut self.notices, self.seconds, &text);
            self.finish(each)?;
            self.distinct += self.pipeline.take().map_or(0, |pipeline| pipeline.distinct());
        }
        let Some(pipeline) = &mut self.pipeline else {
            if let Some(still) = self.learner.push(self.seconds, &frame) {
                let pipeline = Pipeline::new(self.options.kind, self.options.config, still).within(&self.options.scope);
                self.pipeline = Some(pipeline.with_network(self.network.clone()));
                let rate = fps.clamp(1.0, 60.0) / f64::from(self.options.config.every.max(1));
                self.drawn = Some(VisualOutput::new(self.options, size.0, size.1, rate)?);
            }
            return Ok(());
        };
        let found = pipeline.process(self.seconds, &frame);
        for happened in pipeline.notices() {
            notice(&mut self.notices, happened.at, &happened.text);
        }
        if let Some(drawn) = &mut self.drawn {
            drawn.frame(frame, pipeline, self.seconds, &found)?;
        }
        self.keep(found, each);
        Ok(())
    }

    fn keep(&mut self, found: Vec<Finding>, each: &mut dyn FnMut(&Finding)) {
        found.iter().for_each(each);
        let room = FINDINGS_MAX.saturating_sub(self.findings.len());
        self.findings.extend(found.into_iter().take(room));
    }

    /// Reports the objects that are still in the picture, and writes what was drawn.
    fn finish(&mut self, each: &mut dyn FnMut(&Finding)) -> Result<(), LocalError> {
        let rest = self.pipeline.as_mut().map(Pipeline::finish).unwrap_or_default();
        self.keep(rest, each);
        self.drawn.take().map_or(Ok(()), VisualOutput::finish)
    }
}
