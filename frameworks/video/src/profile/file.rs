//! Profiles as files: made once, and used until the video or the knobs change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::clip::{Clip, ClipOptions};
use super::search::{Point, Search, climb, frontier};
use crate::media::camera::{FeedOptions, record};
use crate::media::{Camera, MediaError, Video};
use crate::pipeline::{Config, Knobs, QueryKind, Scope};
use crate::vision::Network;

/// Version of the file format.
pub const PROFILE_VERSION: u32 = 1;
/// Number of findings of the golden configuration below which one more or less changes quality by a tenth.
pub const EVENTS_FEW: usize = 10;
/// Number of times that a clip with fewer findings is doubled.
const DOUBLED_MAX: u32 = 3;
/// Maximum size of a profile file in bytes.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum number of points of a frontier.
const POINTS_MAX: usize = 1000;

/// Reason why a profile cannot be made, read or written.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The video cannot be read.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The profile file is invalid, or cannot be read or written.
    #[error("{}: {what}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error.
        what: String,
    },
}

/// Properties that identify a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoIdentity {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frame rate in frames a second.
    pub fps: f64,
}

/// Cost and quality of a query's configurations on a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the file format, [`PROFILE_VERSION`].
    pub version: u32,
    /// Kind of the query.
    pub kind: QueryKind,
    /// Video on which the profile was made.
    pub video: VideoIdentity,
    /// Values that the configurations were chosen from.
    pub knobs: Knobs,
    /// Lines and region of the query.
    #[serde(default)]
    pub scope: Scope,
    /// Path of the model of the detector `network`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<PathBuf>,
    /// Configuration that quality is measured against.
    pub golden: Config,
    /// Pareto-optimal configurations, from cheap to expensive.
    pub frontier: Vec<Point>,
    /// Number of findings of the golden configuration on the clip, against which quality is measured.
    #[serde(default)]
    pub events: usize,
    /// Length of the clip in seconds.
    #[serde(default)]
    pub seconds: f64,
    /// Number of configurations that were tried.
    pub tried: usize,
    /// Core-seconds that trying them took.
    pub core_seconds: f64,
}

/// Rounds a value to the precision of a measurement, so that it survives the text format.
fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn rounded(point: &Point) -> Point {
    Point { quality: round(point.quality, 1e4), cores: round(point.cores, 1e6).max(1e-6), ..*point }
}

impl VideoIdentity {
    /// Returns the mark of a video file.
    ///
    /// # Errors
    /// Returns an error if the file is not a video.
    pub fn of(path: &Path) -> Result<VideoIdentity, MediaError> {
        let info = Video::open(path)?.info();
        let bytes = fs::metadata(path).map_err(|source| MediaError::Io { path: path.to_owned(), source })?.len();
        Ok(VideoIdentity { bytes, width: info.width, height: info.height, fps: info.fps })
    }
}

impl Profile {
    /// Makes a profile by trying configurations on the video. A clip with few findings is doubled, up to three times,
    /// as far as the video and memory allow.
    ///
    /// # Errors
    /// Returns an error if the video cannot be decoded, or the model cannot be used.
    pub fn make(path: &Path, kind: QueryKind, knobs: &Knobs, options: ClipOptions) -> Result<Profile, ProfileError> {
        let video = VideoIdentity::of(path)?;
        let (scope, model) = (options.scope.clone(), options.model.clone());
        let network = Network::open_if_any(model.as_deref()).map_err(MediaError::from)?;
        let mut options = options;
        let mut doubled = 0;
        let mut clip = loop {
            let clip = Clip::new(Video::open(path)?, kind, knobs.golden(), options.clone())?;
            let mut clip = clip.with_network(network.clone());
            if clip.events()? >= EVENTS_FEW || !clip.may_grow() || doubled == DOUBLED_MAX {
                break clip;
            }
            doubled += 1;
            options.seconds *= 2.0;
        };
        let events = clip.events()?;
        let points = climb(knobs, knobs.golden(), &Search::default(), &mut clip)?;
        Ok(Profile {
            version: PROFILE_VERSION,
            kind,
            video,
            knobs: knobs.clone(),
            scope,
            model,
            golden: knobs.golden(),
            frontier: frontier(&points.iter().map(rounded).collect::<Vec<_>>()),
            events,
            seconds: round(clip.seconds(), 1e3),
            tried: points.len(),
            core_seconds: round(clip.spent(), 1e3),
        })
    }

    /// Makes a profile on a recording of a live source, which is written to this directory and removed afterwards. The
    /// cost of decoding counts for every frame, also for those that are not examined, since a camera is decoded all the
    /// time.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read, or the recording cannot be written.
    pub fn of_camera(
        directory: &Path,
        camera: &Camera,
        kind: QueryKind,
        knobs: &Knobs,
        options: ClipOptions,
    ) -> Result<Profile, ProfileError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let bad = |e: std::io::Error| ProfileError::File { path: directory.to_owned(), what: e.to_string() };
        fs::create_dir_all(directory).map_err(bad)?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("recording-{}-{number}.y4m", std::process::id()));
        let limits = FeedOptions { most: kind.highest_rung(), ..Default::default() };
        let made = record(camera, limits, options.seconds, &path).map_err(ProfileError::from).and_then(|recording| {
            let options = ClipOptions { decode: recording.decode, ..options };
            Profile::make(&path, kind, knobs, options)
        });
        // The file does not exist if the recording was not begun.
        let _ = fs::remove_file(&path);
        made
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is of another version, or is invalid.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let bad = |what: String| ProfileError::File { path: path.to_owned(), what };
        let size = fs::metadata(path).map_err(|e| bad(e.to_string()))?.len();
        if size > BYTES_MAX {
            return Err(bad(format!("{size} bytes, and {BYTES_MAX} is the limit of a profile")));
        }
        let text = fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
        let profile: Profile = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        profile.check().map_err(|rule| bad(rule.to_owned()))?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), &'static str> {
        let points = &self.frontier;
        if self.version != PROFILE_VERSION {
            return Err("a profile of another version");
        }
        if points.is_empty() || points.len() > POINTS_MAX {
            return Err("a profile has 1 to 1000 points");
        }
        let sane = |p: &Point| {
            p.config.every > 0
                && p.config.shrink > 0
                && (0.0..=1.0).contains(&p.quality)
                && p.cores.is_finite()
                && p.cores > 0.0
        };
        if !points.iter().all(sane) {
            return Err("a point's quality is 0 to 1, its cores above 0, its rate and size at least 1");
        }
        if !points.is_sorted_by(|a, b| a.cores <= b.cores && a.quality < b.quality) {
            return Err("the points of a frontier must be in increasing order of cost and of quality");
        }
        Ok(())
    }

    /// Writes the profile atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        let bad = |what: String| ProfileError::File { path: path.to_owned(), what };
        let text = serde_json::to_string_pretty(self).map_err(|e| bad(e.to_string()))?;
        let beside = path.with_extension("json.part");
        fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).map_err(|e| bad(e.to_string()))
    }

    /// Returns the profile of the video that is stored in this directory. If there is none that matches, it is made and
    /// stored. The flag says whether it was made now.
    ///
    /// # Errors
    /// Returns an error if the video cannot be decoded, or the file cannot be written. An unreadable file is made
    /// again.
    pub fn load_or_make(
        directory: &Path,
        video: &Path,
        kind: QueryKind,
        knobs: &Knobs,
        options: ClipOptions,
    ) -> Result<(Profile, bool), ProfileError> {
        let stem = video.file_stem().unwrap_or_default().to_string_lossy();
        let mark = VideoIdentity::of(video)?;
        let path = directory.join(format!("{stem}-{}-{}.json", kind.name(), mark.bytes));
        let fits = |profile: &Profile| {
            (&profile.video, profile.kind, &profile.knobs) == (&mark, kind, knobs)
                && (&profile.scope, &profile.model) == (&options.scope, &options.model)
        };
        if let Some(profile) = Profile::read(&path).ok().filter(fits) {
            return Ok((profile, false));
        }
        let profile = Profile::make(video, kind, knobs, options)?;
        fs::create_dir_all(directory)
            .map_err(|e| ProfileError::File { path: directory.to_owned(), what: e.to_string() })?;
        profile.write(&path)?;
        Ok((profile, true))
    }
}
