//! Profiles as files: made once, used until the video or the knobs change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::clip::{Clip, ClipOptions};
use super::search::{Point, Search, climb, frontier};
use crate::media::camera::{FeedOptions, record};
use crate::media::{Camera, MediaError, Video};
use crate::pipeline::{Config, Knobs, QueryKind, Scope};

/// The version of the files that are written and read.
pub const PROFILE_VERSION: u32 = 1;
/// With fewer findings of the golden configuration than this, one more or less changes quality by a tenth.
pub const EVENTS_FEW: usize = 10;
/// How often a clip with few is doubled.
const DOUBLED_MAX: u32 = 3;
/// Larger files are not read.
const BYTES_MAX: u64 = 1 << 20;
/// More points than this make no frontier.
const POINTS_MAX: usize = 1000;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The video.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// The file.
    #[error("{}: {what}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

/// What identifies a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoMark {
    /// Size of the file.
    pub bytes: u64,
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Frames a second.
    pub fps: f64,
}

/// What a query costs and gives on a video.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`PROFILE_VERSION`].
    pub version: u32,
    /// What the query counts.
    pub kind: QueryKind,
    /// On which video.
    pub video: VideoMark,
    /// Which values were to choose from.
    pub knobs: Knobs,
    /// Where the query counts.
    #[serde(default)]
    pub scope: Scope,
    /// What quality is measured against.
    pub golden: Config,
    /// The configurations worth having, from cheap to dear.
    pub frontier: Vec<Point>,
    /// What the golden configuration found on the clip: quality is measured on this many objects.
    #[serde(default)]
    pub events: usize,
    /// Seconds of the clip.
    #[serde(default)]
    pub seconds: f64,
    /// Number of configurations that were tried.
    pub tried: usize,
    /// What trying them cost.
    pub core_seconds: f64,
}

/// No more digits than a measurement has, and than text carries.
fn round(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

fn rounded(point: &Point) -> Point {
    Point { quality: round(point.quality, 1e4), cores: round(point.cores, 1e6).max(1e-6), ..*point }
}

impl VideoMark {
    /// The mark of a file.
    ///
    /// # Errors
    /// It is not a video.
    pub fn of(path: &Path) -> Result<VideoMark, MediaError> {
        let info = Video::open(path)?.info();
        let bytes = fs::metadata(path).map_err(|source| MediaError::Io { path: path.to_owned(), source })?.len();
        Ok(VideoMark { bytes, width: info.width, height: info.height, fps: info.fps })
    }
}

impl Profile {
    /// Makes a profile by trying configurations on the video. A clip on which little happens is doubled, up to three
    /// times, as far as the video and memory go.
    ///
    /// # Errors
    /// The video cannot be decoded.
    pub fn make(path: &Path, kind: QueryKind, knobs: &Knobs, options: ClipOptions) -> Result<Profile, ProfileError> {
        let video = VideoMark::of(path)?;
        let scope = options.scope.clone();
        let mut options = options;
        let mut doubled = 0;
        let mut clip = loop {
            let mut clip = Clip::new(Video::open(path)?, kind, knobs.golden(), options.clone())?;
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
            golden: knobs.golden(),
            frontier: frontier(&points.iter().map(rounded).collect::<Vec<_>>()),
            events,
            seconds: round(clip.seconds(), 1e3),
            tried: points.len(),
            core_seconds: round(clip.spent(), 1e3),
        })
    }

    /// Makes a profile on a recording of a live source, which is written to this directory and removed. What each frame
    /// costs to decode counts whatever is examined: a camera is decoded all the time.
    ///
    /// # Errors
    /// The source cannot be read, or the recording cannot be written.
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
        let made = record(camera, FeedOptions::default(), options.seconds, &path).map_err(ProfileError::from).and_then(
            |recording| {
                let options = ClipOptions { decode: recording.decode, ..options };
                Profile::make(&path, kind, knobs, options)
            },
        );
        // A recording that was not begun is not there.
        let _ = fs::remove_file(&path);
        made
    }

    /// Reads a profile.
    ///
    /// # Errors
    /// The file cannot be read, is of another version, or is invalid.
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
            return Err("a frontier goes from cheap to dear, and quality grows with it");
        }
        Ok(())
    }

    /// Writes the profile: whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        let bad = |what: String| ProfileError::File { path: path.to_owned(), what };
        let text = serde_json::to_string_pretty(self).map_err(|e| bad(e.to_string()))?;
        let beside = path.with_extension("json.part");
        fs::write(&beside, text).and_then(|()| fs::rename(&beside, path)).map_err(|e| bad(e.to_string()))
    }

    /// The stored profile of the video in this directory, made and stored if there is none that fits. Returns whether
    /// it was made now.
    ///
    /// # Errors
    /// The video cannot be decoded, or the file cannot be written. An unreadable one is made again.
    pub fn kept(
        directory: &Path,
        video: &Path,
        kind: QueryKind,
        knobs: &Knobs,
        options: ClipOptions,
    ) -> Result<(Profile, bool), ProfileError> {
        let stem = video.file_stem().unwrap_or_default().to_string_lossy();
        let mark = VideoMark::of(video)?;
        let path = directory.join(format!("{stem}-{}-{}.json", kind.name(), mark.bytes));
        if let Ok(profile) = Profile::read(&path)
            && (&profile.video, profile.kind, &profile.knobs, &profile.scope) == (&mark, kind, knobs, &options.scope)
        {
            return Ok((profile, false));
        }
        let profile = Profile::make(video, kind, knobs, options)?;
        fs::create_dir_all(directory)
            .map_err(|e| ProfileError::File { path: directory.to_owned(), what: e.to_string() })?;
        profile.write(&path)?;
        Ok((profile, true))
    }
}
