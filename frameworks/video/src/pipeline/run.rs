//! Runs a query over frames, one after the other.

use std::collections::BTreeMap;

use super::config::Config;
use super::events::Finding;
use super::learn::Learner;
use super::notice::{Notice, notice};
use super::query::QueryKind;
use super::view::{ViewMonitor, ViewState};
use crate::frame::Frame;
use crate::media::{MediaError, Video};
use crate::scope::{Line, Scope};
use crate::vision::{
    Background, Detector, KindReader, Mask, Network, Object, SignReader, Track, Tracker, blobs, read_plate, shrink,
    still_of,
};

/// Number of frames from which the still background is learnt.
pub const STILL_FRAMES: usize = 15;
/// Length of the part of a video from which the [`STILL_FRAMES`] are taken, in seconds.
pub const STILL_WITHIN_SECONDS: f64 = 30.0;
/// Lowest edge of a vehicle's box, as a fraction of the height, with which its plate is certainly inside the picture.
const PLATE_INSIDE: f32 = 0.985;
/// Maximum number of readings of one object that are kept for the vote.
const READINGS_MAX: usize = 32;

/// Learns the background without moving objects, from frames at `from` and later that are cheap to decode.
///
/// # Errors
/// Returns an error if none of the frames can be decoded.
pub fn learn_still(video: &mut Video, from: u64) -> Result<Frame, MediaError> {
    let within = (video.info().fps * STILL_WITHIN_SECONDS).ceil() as u64;
    let mut frames = Vec::new();
    let mut first_error = None;
    for number in video.cheap_frames(STILL_FRAMES, from, within) {
        match video.frame(number) {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => break,
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match (still_of(&frames), first_error) {
        (Some(still), _) => Ok(still),
        (None, Some(error)) => Err(error),
        (None, None) => Err(MediaError::Malformed {
            path: std::path::PathBuf::new(),
            what: "the video has no frames, or they differ in size".to_owned(),
        }),
    }
}

/// A running query, with one configuration at a time.
#[derive(Debug)]
pub struct Pipeline {
    config: Config,
    still: Frame,
    background: Background,
    network: Option<Network>,
    analyst: Analyst,
    last: Option<f64>,
    view: ViewMonitor,
    learner: Option<Learner>,
    notices: Vec<Notice>,
}

impl Pipeline {
    /// Creates a query with a configuration. `still` is the background that [`learn_still`] returns.
    pub fn new(kind: QueryKind, config: Config, still: Frame) -> Pipeline {
        let background = Background::new(&still, config.shrink, config.detector);
        let analyst = Analyst::new(kind, config.window);
        let (view, notices) = (ViewMonitor::default(), Vec::new());
        Pipeline { config, background, network: None, still, analyst, last: None, view, learner: None, notices }
    }

    /// Sets the lines and the region of the query, before the first picture.
    #[must_use]
    pub fn within(mut self, scope: &Scope) -> Pipeline {
        self.analyst = self.analyst.within(scope);
        self
    }

    /// Sets the network of the detector [`Detector::Network`], which detects nothing without.
    #[must_use]
    pub fn with_network(mut self, network: Option<Network>) -> Pipeline {
        self.network = network;
        self
    }

    /// Returns the notices about the view since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the current configuration.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Continues with another configuration. Tracked objects are kept.
    pub fn configure(&mut self, config: Config) {
        if (config.shrink, config.detector) != (self.config.shrink, self.config.detector) {
            self.background = Background::new(&self.still, config.shrink, config.detector);
        }
        self.analyst.window = config.window;
        self.config = config;
    }

    /// Analyses a picture. `seconds` is its time in the stream and must increase. The caller omits the frames that the
    /// configuration skips.
    pub fn process(&mut self, seconds: f64, frame: &Frame) -> Vec<Finding> {
        let small = shrink(frame, self.config.shrink);
        let pause = self.last.map_or(0.04, |last| seconds - last);
        self.last = Some(seconds);
        if let Some(learner) = &mut self.learner {
            if let Some(still) = learner.push(seconds, frame) {
                self.background = Background::new(&still, self.config.shrink, self.config.detector);
                self.still = still;
                self.learner = None;
            }
            return self.analyst.step(seconds, &small, &[]);
        }
        let mask = self.background.detect(&small, pause as f32);
        match self.view.update(seconds, mask.filled()) {
            ViewState::Same => {
                let objects = objects(&mask, self.config.detector, self.network.as_ref(), &small);
                self.analyst.step(seconds, &small, &objects)
            }
            ViewState::Covered => self.analyst.step(seconds, &small, &[]),
            ViewState::Changed => {
                let text = "most of the picture has changed, because the camera or the light has: the background is \
                            learnt again";
                notice(&mut self.notices, seconds, text);
                self.learner = Some(Learner::default());
                self.analyst.step(seconds, &small, &[])
            }
        }
    }

    /// Returns the objects that are tracked now.
    pub fn tracks(&self) -> &[Track] {
        self.analyst.tracker.tracks()
    }

    /// Returns the number of objects that were tracked so far.
    pub fn distinct(&self) -> u64 {
        self.analyst.tracker.distinct()
    }

    /// Returns the findings about objects that are still in the picture when the stream ends.
    pub fn finish(&mut self) -> Vec<Finding> {
        self.analyst.finish()
    }
}

/// Returns the objects of a picture: what the network detects, or the boxes of the changes in `mask`.
pub fn objects(mask: &Mask, detector: Detector, network: Option<&Network>, frame: &Frame) -> Vec<Object> {
    match detector {
        Detector::Network => network.map(|network| network.detect(frame)).unwrap_or_default(),
        _ => blobs(mask).into_iter().map(Object::from).collect(),
    }
}

/// The last steps of a query: tracking, reading, and findings.
#[derive(Debug)]
pub struct Analyst {
    kind: QueryKind,
    window: u32,
    scope: Scope,
    lines: Vec<Line>,
    tracker: Tracker,
    readings: BTreeMap<u64, Readings>,
    second: Option<u64>,
}

#[derive(Debug, Default)]
struct Readings {
    texts: Vec<(String, f32)>,
    /// Number of the object's crossings that were reported.
    reported: usize,
}

impl Analyst {
    /// Creates an analyst; for `window` see [`Config::window`]. The models for reading are trained here, if this
    /// process has not done it yet, so that the first vehicle does not wait for it.
    pub fn new(kind: QueryKind, window: u32) -> Analyst {
        match kind {
            QueryKind::Plates => _ = SignReader::get(),
            QueryKind::Kinds => _ = KindReader::get(),
            QueryKind::Cars | QueryKind::People | QueryKind::Tracks => {}
        }
        let (scope, lines) = (Scope::default(), vec![Line::middle()]);
        let tracker = Tracker::new(lines.clone());
        Analyst { kind, window, scope, lines, tracker, readings: BTreeMap::new(), second: None }
    }

    /// Sets the lines and the region of the query, before the first picture.
    #[must_use]
    pub fn within(mut self, scope: &Scope) -> Analyst {
        self.lines = scope.all_lines();
        self.tracker = Tracker::new(self.lines.clone());
        self.scope = scope.clone();
        self
    }

    /// Processes the objects of a picture. Returns the new findings.
    pub fn step(&mut self, seconds: f64, frame: &Frame, objects: &[Object]) -> Vec<Finding> {
        let inside: Vec<Object> = objects.iter().filter(|one| self.scope.contains(&one.place)).copied().collect();
        let step = self.tracker.step(seconds, &inside, Some(frame));
        let mut out = Vec::new();
        for id in step.found {
            self.read(id, frame);
            self.report_object(id, false, &mut out);
        }
        for track in &step.ended {
            self.report_crossings(track, true, &mut out);
            self.readings.remove(&track.id);
        }
        if self.kind == QueryKind::Tracks {
            self.places(seconds, &mut out);
        }
        out
    }

    /// Returns the findings about objects that are still in the picture when the stream ends.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut out = Vec::new();
        for mut track in self.tracker.tracks().to_vec() {
            track.crossings.finish(&self.lines);
            self.report_crossings(&track, true, &mut out);
        }
        out
    }

    /// Adds a reading of an object's plate or kind, until there are enough.
    fn read(&mut self, id: u64, frame: &Frame) {
        let Some(track) = self.tracker.get(id) else { return };
        let readings = self.readings.entry(id).or_default();
        let enough = readings.texts.len() >= (self.window as usize).min(READINGS_MAX);
        let whole = track.place.y + track.place.h < PLATE_INSIDE && track.place.y > 1.0 - PLATE_INSIDE;
        if enough || !whole {
            return;
        }
        match self.kind {
            QueryKind::Plates if track.is_vehicle() => readings.texts.extend(read_plate(frame, &track.place)),
            QueryKind::Kinds => {
                let (kind, probability) = KindReader::get().read(frame, &track.place);
                readings.texts.push((kind.name().to_owned(), probability));
            }
            _ => {}
        }
    }

    fn report_object(&mut self, id: u64, ended: bool, out: &mut Vec<Finding>) {
        if let Some(track) = self.tracker.get(id).cloned() {
            self.report_crossings(&track, ended, out);
        }
    }

    /// Reports each crossing of an object, as soon as the object is known well enough or has ended.
    fn report_crossings(&mut self, track: &Track, ended: bool, out: &mut Vec<Finding>) {
        let crossings = track.crossings.counted();
        if crossings.is_empty() {
            return;
        }
        let readings = self.readings.entry(track.id).or_default();
        let reads = matches!(self.kind, QueryKind::Plates | QueryKind::Kinds);
        let known = if reads { readings.texts.len() } else { track.hits as usize } >= self.window as usize;
        let vehicle = track.is_vehicle();
        let wanted = match self.kind {
            QueryKind::Cars | QueryKind::Plates => vehicle,
            QueryKind::People => !vehicle,
            QueryKind::Kinds => true,
            QueryKind::Tracks => false,
        };
        if !wanted || !(known || (ended && reads)) {
            return;
        }
        let label = match self.kind {
            QueryKind::Cars => Some("vehicle".to_owned()),
            QueryKind::People => Some("person".to_owned()),
            _ => vote(&readings.texts),
        };
        let Some(label) = label else { return };
        let reported = std::mem::replace(&mut readings.reported, crossings.len());
        for crossing in crossings.iter().skip(reported) {
            let Some(line) = self.lines.get(crossing.line) else { continue };
            out.push(Finding {
                at: crossing.at,
                label: label.clone(),
                track: track.id,
                line: line.name.clone(),
                direction: line.direction(crossing.forward).to_owned(),
                place: track.expected(crossing.at),
            });
        }
    }

    /// Reports the position of every confirmed object at each full second since the last picture.
    fn places(&mut self, seconds: f64, out: &mut Vec<Finding>) {
        let now = seconds.floor() as u64;
        let before = self.second.replace(now);
        let from = before.map_or(now + u64::from(seconds.fract() > 1e-6), |b| b + 1);
        for second in from..=now {
            let at = second as f64;
            for track in self.tracker.tracks().iter().filter(|t| t.hits >= self.window) {
                let Some(place) = track.expected(at).clipped() else { continue };
                let label = if track.is_vehicle() { "vehicle" } else { "person" }.to_owned();
                let (line, direction) = (String::new(), String::new());
                out.push(Finding { at, label, track: track.id, line, direction, place });
            }
        }
    }
}

/// Returns the text with the highest sum of probabilities.
fn vote(readings: &[(String, f32)]) -> Option<String> {
    let mut sums: BTreeMap<&str, f32> = BTreeMap::new();
    for (text, probability) in readings {
        *sums.entry(text).or_default() += probability;
    }
    sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(text, _)| text.to_owned())
}
