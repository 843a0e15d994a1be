//! Video files: MP4 with H.264 or JPEG, AVI with JPEG, plain JPEG streams and Y4M are read with an index and a decoder;
//! other formats, and cameras, through the `ffmpeg` program.
//!
//! Sound is ignored. The content of pictures is not analysed here.

mod avi;
pub mod camera;
mod codec;
mod ffmpeg;
mod indexed;
mod mjpeg;
mod mp4;
mod source;
pub mod write;
mod y4m;

use std::io;
use std::path::{Path, PathBuf};

pub use source::{Camera, CameraKind, SCHEMES, Source, SourceError};
pub use write::{Mp4Writer, Y4mWriter};

use crate::frame::Frame;

/// Maximum number of frames of a video: twenty hours at 25 frames a second.
pub const FRAMES_MAX: usize = 1_800_000;

/// Reason why a video cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The network of the query cannot be used.
    #[error(transparent)]
    Network(#[from] crate::vision::NetworkError),
    /// The file cannot be opened or read.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// The format is supported neither by this process nor by ffmpeg.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// Path of the file.
        path: PathBuf,
        /// Format of the file, and what to do about it.
        what: String,
    },
    /// The file breaks a rule of its format.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Rule that the file breaks.
        what: String,
    },
    /// The file ends before its frames do.
    #[error("{}: the file is cut short: frame {frame} of {frames} is missing ({decoded} frames decoded before it)", path.display())]
    Truncated {
        /// Path of the file.
        path: PathBuf,
        /// Number of the first missing frame, from 0.
        frame: u64,
        /// Number of frames according to the file.
        frames: u64,
        /// Number of frames that were decoded before.
        decoded: u64,
    },
    /// The decoder rejects a frame.
    #[error("{}: frame {frame} cannot be decoded: {what} ({decoded} frames decoded before it)", path.display())]
    Undecodable {
        /// Path of the file.
        path: PathBuf,
        /// Number of the frame, from 0.
        frame: u64,
        /// Number of frames that were decoded before.
        decoded: u64,
        /// Error of the decoder.
        what: String,
    },
}

impl MediaError {
    /// Returns the number of frames that were decoded before the error.
    pub fn decoded(&self) -> u64 {
        match self {
            MediaError::Truncated { decoded, .. } | MediaError::Undecodable { decoded, .. } => *decoded,
            _ => 0,
        }
    }
}

/// Properties of a video that are known before its first frame is decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Info {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Frame rate in frames a second, above 0 and at most 1000.
    pub fps: f64,
    /// Number of frames; `None` if it is known only after reading to the end.
    pub frames: Option<u64>,
}

impl Info {
    /// Returns the length in seconds, if known.
    pub fn seconds(&self) -> Option<f64> {
        self.frames.map(|n| n as f64 / self.fps)
    }
}

/// A video that is being read.
///
/// Frames are requested by their number in display order. Ascending numbers are cheap, and packets that no requested
/// frame needs are not decoded; going back costs a restart.
#[derive(Debug)]
pub struct Video {
    info: Info,
    reader: Reader,
}

#[derive(Debug)]
enum Reader {
    Indexed(Box<indexed::Indexed>),
    Piped(Box<ffmpeg::Piped>),
}

impl Video {
    /// Opens a video. The first bytes decide about its format.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not a video, or breaks a rule of its format.
    pub fn open(path: &Path) -> Result<Video, MediaError> {
        let found = match Video::open_indexed(path) {
            Ok(video) => return Ok(video),
            Err(error) => error,
        };
        let MediaError::Unsupported { what, .. } = &found else { return Err(found) };
        let piped = ffmpeg::open(path, what)?;
        Ok(Video { info: piped.info(), reader: Reader::Piped(Box::new(piped)) })
    }

    /// Opens a video of a format that is read without `ffmpeg`.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Video::open); other formats are unsupported.
    pub fn open_indexed(path: &Path) -> Result<Video, MediaError> {
        let indexed = indexed::open(path)?;
        Ok(Video { info: indexed.info(), reader: Reader::Indexed(Box::new(indexed)) })
    }

    /// Returns size, rate and length. The length of every video is known once its end has been read.
    pub fn info(&self) -> Info {
        match &self.reader {
            Reader::Indexed(_) => self.info,
            Reader::Piped(piped) => piped.info(),
        }
    }

    /// Returns the core-seconds that other processes have used for the video so far.
    pub fn core_seconds_of_others(&self) -> f64 {
        match &self.reader {
            Reader::Indexed(_) => 0.0,
            Reader::Piped(piped) => piped.used(),
        }
    }

    /// Returns the frame with this number, from 0; `None` past the end.
    ///
    /// # Errors
    /// Returns an error if the file is cut short or the frame cannot be decoded. Frames before it stay readable.
    pub fn frame(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        match &mut self.reader {
            Reader::Indexed(indexed) => indexed.frame(number),
            Reader::Piped(piped) => piped.frame(number),
        }
    }

    /// Returns the number of decoded frames, including those that only other frames need.
    pub fn decoded(&self) -> u64 {
        match &self.reader {
            Reader::Indexed(indexed) => indexed.decoded(),
            Reader::Piped(piped) => piped.decoded(),
        }
    }

    /// Returns the numbers of the frames below `end` that can be decoded without others; at least the first.
    pub fn keys(&self, end: u64) -> Vec<u64> {
        let keys = match &self.reader {
            Reader::Indexed(indexed) => indexed.key_frames(end),
            Reader::Piped(_) => Vec::new(),
        };
        if keys.first() == Some(&0) { keys } else { std::iter::once(0).chain(keys).collect() }
    }

    /// Returns up to `count` frame numbers in rising order, spread over `within` frames at `from`, that are cheap to
    /// decode on their own: key frames where there are enough, otherwise also others.
    pub fn cheap_frames(&self, count: usize, from: u64, within: u64) -> Vec<u64> {
        let end = self.info.frames.unwrap_or(u64::MAX).min(from + within).max(from + 1);
        let keys = match &self.reader {
            Reader::Indexed(indexed) => indexed.key_frames(end).into_iter().filter(|key| *key >= from).collect(),
            Reader::Piped(_) => Vec::new(),
        };
        let pick = |all: &[u64]| -> Vec<u64> {
            let count = count.min(all.len());
            (0..count).map(|i| all[i * all.len() / count]).collect()
        };
        if keys.len() * 2 >= count { pick(&keys) } else { pick(&(from..end).collect::<Vec<_>>()) }
    }
}

/// Longest wait for the first frame of a camera, in seconds.
const FIRST_WITHIN: f64 = 10.0;

/// Returns one frame of a source: of a file the one at this second, of a camera the first that arrives.
///
/// # Errors
/// Returns an error if the source cannot be read, or has no such frame.
pub fn first_frame(source: &Source, seconds: f64) -> Result<Frame, MediaError> {
    let none = |what: String| MediaError::Malformed { path: PathBuf::from(source.to_string()), what };
    match source {
        Source::File(path) => {
            let mut video = Video::open(path)?;
            let number = (seconds.max(0.0) * video.info().fps) as u64;
            video.frame(number)?.ok_or_else(|| none(format!("the video ends before {seconds} s")))
        }
        Source::Camera(camera) => {
            let options = camera::FeedOptions { reconnect: FIRST_WITHIN, ..Default::default() };
            let feed = camera::Feed::open(camera, options);
            loop {
                match feed.next(std::time::Duration::from_millis(200)) {
                    camera::Next::Picture(picture) => return Ok(picture.frame),
                    camera::Next::Nothing => {}
                    camera::Next::Ended => return Err(none(feed.status().message)),
                }
            }
        }
    }
}

#[cfg(test)]
mod ffmpeg_tests;
#[cfg(test)]
pub(crate) mod tests;
