//! Running a query over frames, one after the other.

use std::collections::BTreeMap;

use super::config::Config;
use super::events::Finding;
use super::query::QueryKind;
use crate::frame::{Frame, Rect};
use crate::media::{MediaError, Video};
use crate::vision::{Background, KindReader, SignReader, Track, Tracker, blobs, read_plate, shrink, still_of};

/// From how many frames, and within how many seconds, the still background is learnt.
pub const STILL_FRAMES: usize = 15;
/// See [`STILL_FRAMES`].
pub const STILL_WITHIN_SECONDS: f64 = 30.0;
/// Where the line is that is counted at, as a fraction of the height.
const LINE: f32 = 0.5;
/// A vehicle whose box ends further down may have its plate outside the picture.
const PLATE_INSIDE: f32 = 0.985;
/// Readings of one object that are kept for the vote.
const READINGS_MAX: usize = 32;

/// Learns the background without moving objects, from frames that are cheap to decode.
///
/// # Errors
/// None of the frames can be decoded.
pub fn learn_still(video: &mut Video) -> Result<Frame, MediaError> {
    let within = (video.info().fps * STILL_WITHIN_SECONDS).ceil() as u64;
    let mut frames = Vec::new();
    let mut first_error = None;
    for number in video.cheap_frames(STILL_FRAMES, within) {
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

/// A query that is being answered, in one configuration at a time.
#[derive(Debug)]
pub struct Pipeline {
    config: Config,
    still: Frame,
    background: Background,
    analyst: Analyst,
    last: Option<f64>,
}

impl Pipeline {
    /// Begins with a configuration. `still` is the street as [`learn_still`] gives it.
    pub fn new(kind: QueryKind, config: Config, still: Frame) -> Pipeline {
        let background = Background::new(&still, config.shrink, config.detector);
        Pipeline { config, background, still, analyst: Analyst::new(kind, config.window), last: None }
    }

    /// The configuration.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Goes on with another configuration. Objects stay known.
    pub fn configure(&mut self, config: Config) {
        if (config.shrink, config.detector) != (self.config.shrink, self.config.detector) {
            self.background = Background::new(&self.still, config.shrink, config.detector);
        }
        self.analyst.window = config.window;
        self.config = config;
    }

    /// Analyses a picture. `seconds` is its time in the stream and must increase. The caller samples: it leaves out the
    /// frames that the configuration skips.
    pub fn process(&mut self, seconds: f64, frame: &Frame) -> Vec<Finding> {
        let small = shrink(frame, self.config.shrink);
        let pause = self.last.map_or(0.04, |last| seconds - last);
        self.last = Some(seconds);
        let boxes = blobs(&self.background.detect(&small, pause as f32));
        self.analyst.step(seconds, &small, &boxes)
    }

    /// The objects that are followed now.
    pub fn tracks(&self) -> &[Track] {
        self.analyst.tracker.tracks()
    }

    /// Number of objects that were followed so far.
    pub fn distinct(&self) -> u64 {
        self.analyst.tracker.distinct()
    }

    /// What is known of objects that are still in the picture when the stream ends.
    pub fn finish(&mut self) -> Vec<Finding> {
        self.analyst.finish()
    }
}

/// The last steps of a query: tracks, readings, and findings.
#[derive(Debug)]
pub struct Analyst {
    kind: QueryKind,
    window: u32,
    tracker: Tracker,
    readings: BTreeMap<u64, Readings>,
    second: Option<u64>,
}

#[derive(Debug, Default)]
struct Readings {
    texts: Vec<(String, f32)>,
    told: bool,
}

impl Analyst {
    /// Begins to follow. See [`Config::window`]. What is read with is trained here, if this process has not done it
    /// yet, and not when the first car comes by.
    pub fn new(kind: QueryKind, window: u32) -> Analyst {
        match kind {
            QueryKind::Plates => _ = SignReader::get(),
            QueryKind::Kinds => _ = KindReader::get(),
            QueryKind::Cars | QueryKind::People | QueryKind::Tracks => {}
        }
        Analyst { kind, window, tracker: Tracker::new(LINE), readings: BTreeMap::new(), second: None }
    }

    /// What a picture shows, given the boxes in it.
    pub fn step(&mut self, seconds: f64, frame: &Frame, boxes: &[Rect]) -> Vec<Finding> {
        let step = self.tracker.step(seconds, boxes);
        let mut out = Vec::new();
        for id in step.found {
            self.read(id, frame);
            self.tell(id, false, &mut out);
        }
        for track in &step.ended {
            self.tell_track(track, true, &mut out);
            self.readings.remove(&track.id);
        }
        if self.kind == QueryKind::Tracks {
            self.places(seconds, &mut out);
        }
        out
    }

    /// What is known of objects that are still in the picture when the stream ends.
    pub fn finish(&mut self) -> Vec<Finding> {
        let mut out = Vec::new();
        for track in self.tracker.tracks().to_vec() {
            self.tell_track(&track, true, &mut out);
        }
        out
    }

    /// Takes a reading of what is to be read, until there are enough.
    fn read(&mut self, id: u64, frame: &Frame) {
        let Some(track) = self.tracker.get(id) else { return };
        let readings = self.readings.entry(id).or_default();
        let enough = readings.texts.len() >= (self.window as usize).min(READINGS_MAX);
        let whole = track.place.y + track.place.h < PLATE_INSIDE && track.place.y > 1.0 - PLATE_INSIDE;
        if enough || readings.told || !whole {
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

    fn tell(&mut self, id: u64, ended: bool, out: &mut Vec<Finding>) {
        if let Some(track) = self.tracker.get(id).cloned() {
            self.tell_track(&track, ended, out);
        }
    }

    /// Tells of an object that has crossed, once, as soon as enough is known of it or it has ended.
    fn tell_track(&mut self, track: &Track, ended: bool, out: &mut Vec<Finding>) {
        let Some((at, direction)) = track.crossed else { return };
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
        if readings.told || !wanted || !(known || (ended && reads)) {
            return;
        }
        let label = match self.kind {
            QueryKind::Cars => Some("vehicle".to_owned()),
            QueryKind::People => Some("person".to_owned()),
            _ => vote(&readings.texts),
        };
        let Some(label) = label else { return };
        readings.told = true;
        let direction = match direction {
            crate::vision::Direction::Down => "down",
            crate::vision::Direction::Up => "up",
        };
        out.push(Finding { at, label, track: track.id, direction: direction.to_owned(), place: track.expected(at) });
    }

    /// Where every confirmed object was at each full second since the last picture.
    fn places(&mut self, seconds: f64, out: &mut Vec<Finding>) {
        let now = seconds.floor() as u64;
        let before = self.second.replace(now);
        let from = before.map_or(now + u64::from(seconds.fract() > 1e-6), |b| b + 1);
        for second in from..=now {
            let at = second as f64;
            for track in self.tracker.tracks().iter().filter(|t| t.hits >= self.window) {
                let Some(place) = track.expected(at).clipped() else { continue };
                let label = if track.is_vehicle() { "vehicle" } else { "person" }.to_owned();
                out.push(Finding { at, label, track: track.id, direction: String::new(), place });
            }
        }
    }
}

/// The text with the most probability together.
fn vote(readings: &[(String, f32)]) -> Option<String> {
    let mut sums: BTreeMap<&str, f32> = BTreeMap::new();
    for (text, probability) in readings {
        *sums.entry(text).or_default() += probability;
    }
    sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(text, _)| text.to_owned())
}
