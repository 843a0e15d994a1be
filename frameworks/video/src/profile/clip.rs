//! Tries configurations on a clip of a real video, and caches the result of each step for all configurations that share
//! it.
//!
//! Decoded frames, scaled frames, objects and findings are cached. The cost of a step is measured once, in seconds of
//! this thread's processor time, and counted for every configuration that needs the step.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::search::{Evaluate, Point};
use crate::frame::Frame;
use crate::media::{MediaError, Video};
use crate::pipeline::{Analyst, Config, Finding, QueryKind, Scope, learn_still, objects, score};
use crate::vision::{Background, Detector, Network, Object, shrink};

/// Options of a clip.
#[derive(Clone, Debug, PartialEq)]
pub struct ClipOptions {
    /// Start of the clip in seconds; positions past the end of the video wrap around. Near the end the clip starts
    /// earlier, so that it has its full length.
    pub from: f64,
    /// Length of the clip in seconds of video.
    pub seconds: f64,
    /// Whether results of steps are cached from one configuration to the next.
    pub keep: bool,
    /// Maximum number of bytes of pictures; the clip is cut to what fits.
    pub bytes: usize,
    /// Core-seconds for each frame in addition to the cost of reading it here: the cost of decoding a camera's frames,
    /// if the video is a recording of a camera.
    pub decode: f64,
    /// Lines and region of the query.
    pub scope: Scope,
    /// Path of the model of the detector [`Detector::Network`].
    pub model: Option<PathBuf>,
}

impl Default for ClipOptions {
    fn default() -> ClipOptions {
        let scope = Scope::default();
        ClipOptions { from: 0.0, seconds: 20.0, keep: true, bytes: 512 << 20, decode: 0.0, scope, model: None }
    }
}

/// Returns the processor time of this thread, in seconds.
pub fn core_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |t| Duration::from(t).as_secs_f64())
}

/// A value and its cost in core-seconds.
type Costed<T> = (T, f64);
/// Objects of each picture.
type Objects = Arc<Vec<Vec<Object>>>;

/// A clip of a video on which a query is tried.
#[derive(Debug)]
pub struct Clip {
    kind: QueryKind,
    golden: Config,
    video: Video,
    options: ClipOptions,
    fps: f64,
    /// First frame of the clip in the video; the number of frames follows.
    first: u64,
    frames: u64,
    still: Frame,
    network: Option<Network>,
    keys: Vec<u64>,
    wanted: Option<Vec<Finding>>,
    decoded: BTreeMap<u64, Costed<Arc<Frame>>>,
    smaller: BTreeMap<(u64, u32), Costed<Arc<Frame>>>,
    objects: BTreeMap<(u32, u32, Detector), Costed<Objects>>,
    spent: f64,
}

impl Clip {
    /// Prepares a clip of a video.
    ///
    /// # Errors
    /// Returns an error if none of its frames can be decoded.
    pub fn new(mut video: Video, kind: QueryKind, golden: Config, options: ClipOptions) -> Result<Clip, MediaError> {
        let fps = video.info().fps;
        let (width, height) = (video.info().width, video.info().height);
        // A picture has one and a half bytes a pixel; scaled pictures need half as much again.
        let fits = options.bytes / (width * height * 9 / 4).max(1);
        let length = ((options.seconds * fps).round() as u64).min(fits as u64).max(1);
        let frames = video.info().frames.map_or(length, |n| n.min(length));
        let begin = (options.from.max(0.0) * fps).round() as u64;
        let first = video.info().frames.map_or(begin, |n| (begin % n.max(1)).min(n - frames));
        let still = learn_still(&mut video, first)?;
        let mut keys = video.keys(first + frames);
        // Frames before the clip are decoded only to reach it.
        keys.retain(|key| *key > first);
        keys.insert(0, first);
        Ok(Clip {
            kind,
            golden,
            video,
            options,
            fps,
            first,
            frames,
            still,
            network: None,
            keys,
            wanted: None,
            decoded: BTreeMap::new(),
            smaller: BTreeMap::new(),
            objects: BTreeMap::new(),
            spent: 0.0,
        })
    }

    /// Sets the network of the detector [`Detector::Network`], before anything is tried.
    #[must_use]
    pub fn with_network(self, network: Option<Network>) -> Clip {
        Clip { network, ..self }
    }

    /// Returns the core-seconds that trying configurations has used so far.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Returns the length of the clip in seconds.
    pub fn seconds(&self) -> f64 {
        self.frames as f64 / self.fps
    }

    /// Returns the number of findings of the golden configuration on the clip, against which quality is measured.
    ///
    /// # Errors
    /// Returns an error if the video cannot be decoded.
    pub fn events(&mut self) -> Result<usize, MediaError> {
        Ok(self.golden_findings()?.len())
    }

    /// Returns whether a larger `seconds` would make the clip longer: it is limited neither by the video nor by memory.
    pub fn may_grow(&self) -> bool {
        let asked = (self.options.seconds * self.fps).round() as u64;
        self.frames >= asked && self.video.info().frames.is_none_or(|frames| frames > self.frames)
    }

    fn golden_findings(&mut self) -> Result<&[Finding], MediaError> {
        if self.wanted.is_none() {
            let golden = self.golden;
            self.wanted = Some(self.run(&golden)?.0);
        }
        Ok(self.wanted.as_deref().unwrap_or_default())
    }

    fn frame(&mut self, number: u64) -> Result<Option<Costed<Arc<Frame>>>, MediaError> {
        if let Some(kept) = self.decoded.get(&number) {
            return Ok(Some(kept.clone()));
        }
        let before = core_seconds() + self.video.core_seconds_of_others();
        let decoded = self.video.decoded();
        let Some(frame) = self.video.frame(number)? else {
            // The length is known only now.
            let after = self.video.info().frames.map(|n| n.saturating_sub(self.first));
            self.frames = after.map_or(self.frames, |n| n.min(self.frames));
            return Ok(None);
        };
        let cost = core_seconds() + self.video.core_seconds_of_others() - before;
        self.spent += cost;
        // Frames that were decoded on the way share the cost; a configuration pays for those that it needs.
        let each = cost / (self.video.decoded() - decoded).max(1) as f64;
        let costed = (Arc::new(frame), each);
        self.decoded.insert(number, costed.clone());
        Ok(Some(costed))
    }

    /// Returns the number of frames that must be decoded for every `every`-th: all from a key frame to the last one
    /// needed before the next key frame.
    fn needed(&self, every: u32) -> u64 {
        let (first, step) = (self.first, u64::from(every.max(1)));
        let ends = self.keys.iter().skip(1).copied().chain([first + self.frames]);
        let spans = self.keys.iter().copied().zip(ends);
        let last_needed = |end: u64| (end - 1).saturating_sub(first) / step * step + first;
        spans.map(|(key, end)| (last_needed(end) + 1).saturating_sub(key)).sum()
    }

    /// Returns the numbers of the frames that a configuration examines.
    fn numbers(&self, config: &Config) -> impl Iterator<Item = u64> + use<> {
        (self.first..self.first + self.frames).step_by(config.every.max(1) as usize)
    }

    fn small(&mut self, number: u64, by: u32) -> Result<Option<Costed<Arc<Frame>>>, MediaError> {
        if let Some(kept) = self.smaller.get(&(number, by)) {
            return Ok(Some(kept.clone()));
        }
        let Some((frame, _)) = self.frame(number)? else { return Ok(None) };
        if by <= 1 {
            return Ok(Some((frame, 0.0)));
        }
        let before = core_seconds();
        let small = Arc::new(shrink(&frame, by).into_owned());
        let cost = core_seconds() - before;
        self.spent += cost;
        self.smaller.insert((number, by), (small.clone(), cost));
        Ok(Some((small, cost)))
    }

    fn objects(&mut self, config: &Config) -> Result<Costed<Objects>, MediaError> {
        let key = (config.every, config.shrink, config.detector);
        if let Some(kept) = self.objects.get(&key) {
            return Ok(kept.clone());
        }
        let mut background = Background::new(&self.still, config.shrink, config.detector);
        let (mut all, mut cost) = (Vec::new(), 0.0);
        let pause = f64::from(config.every) / self.fps;
        for number in self.numbers(config) {
            let Some((small, _)) = self.small(number, config.shrink)? else { break };
            let before = core_seconds();
            let mask = background.detect(&small, pause as f32);
            all.push(objects(&mask, config.detector, self.network.as_ref(), &small));
            cost += core_seconds() - before;
        }
        self.spent += cost;
        let costed = (Arc::new(all), cost);
        if self.options.keep {
            self.objects.insert(key, costed.clone());
        }
        Ok(costed)
    }

    /// Returns the findings of the query in this configuration, and the cost of each second of video.
    fn run(&mut self, config: &Config) -> Result<Costed<Vec<Finding>>, MediaError> {
        let (all, mut cost) = self.objects(config)?;
        let mut analyst = Analyst::new(self.kind, config.window).within(&self.options.scope);
        let mut found = Vec::new();
        let (mut decode, mut looked) = (0.0, 0);
        for (number, objects) in self.numbers(config).zip(all.iter()) {
            let Some((_, decoding)) = self.frame(number)? else { break };
            let Some((small, shrinking)) = self.small(number, config.shrink)? else { break };
            let before = core_seconds();
            found.extend(analyst.step(number as f64 / self.fps, &small, objects));
            let step = core_seconds() - before;
            self.spent += step;
            decode += decoding;
            looked += 1;
            cost += shrinking + step;
        }
        found.extend(analyst.finish());
        cost += decode / f64::from(looked.max(1)) * self.needed(config.every) as f64;
        cost += self.options.decode * self.frames as f64;
        if !self.options.keep {
            self.decoded.clear();
            self.smaller.clear();
        }
        Ok((found, cost))
    }
}

impl Evaluate for Clip {
    type Error = MediaError;

    fn evaluate(&mut self, config: &Config) -> Result<Point, MediaError> {
        self.golden_findings()?;
        let (found, cost) = self.run(config)?;
        let wanted = self.wanted.as_deref().unwrap_or_default();
        let quality = score(self.kind, &found, wanted).f1();
        Ok(Point { config: *config, quality, cores: cost / self.seconds() })
    }
}
