//! Records a part of a live source to a file, from which a profile is made.

use std::path::{Path, PathBuf};

use super::{Feed, FeedOptions, FeedState, Next};
use crate::clock;
use crate::frame::Frame;
use crate::media::source::Camera;
use crate::media::write::WriteError;
use crate::media::{MediaError, Y4mWriter};

/// Maximum number of bytes of a recording: half a minute of 640x360 at 25 frames a second.
const BYTES_MAX: u64 = 300 << 20;
/// Time at the beginning, in seconds, that is not recorded. Buffered pictures arrive in it, faster than they were
/// captured.
const WARM_UP: f64 = 1.0;
/// Maximum number of pictures of a recording.
const PICTURES_MAX: usize = 3000;

/// A recorded part of a live source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recording {
    /// Number of pictures.
    pub frames: usize,
    /// Seconds between the first and the last picture, by their capture times.
    pub seconds: f64,
    /// Frame rate in frames a second.
    pub fps: f64,
    /// Core-seconds for reading and decoding one picture.
    pub decode: f64,
}

/// Writes this many seconds of a live source as Y4M; less if the file would be too large, or if the source ends
/// earlier. A change of size ends the recording.
///
/// # Errors
/// Returns an error if the source delivers fewer than two pictures, or the file cannot be written.
pub fn record(camera: &Camera, options: FeedOptions, seconds: f64, path: &Path) -> Result<Recording, MediaError> {
    let name = || PathBuf::from(camera.to_string());
    let bad = |what: String| MediaError::Malformed { path: name(), what };
    // The rate precedes the pictures in the file, so it is measured on the first ones.
    let feed = Feed::open(camera, FeedOptions { reconnect: 0.0, ..options });
    let mut held: Vec<(f64, Frame)> = Vec::new();
    let mut writer: Option<Y4mWriter> = None;
    let (mut frames, mut bytes, mut fps, mut last) = (0, 0, 0.0, None);
    let (mut first, mut warm) = (None, None);
    let until = clock::monotonic() + options.answer + seconds + options.stall;
    let written = |error: WriteError| bad(format!("its recording cannot be written: {}", base::error_chain(&error)));
    while clock::monotonic() < until && bytes < BYTES_MAX && frames < PICTURES_MAX {
        let picture = match feed.next(std::time::Duration::from_millis(200)) {
            Next::Picture(picture) => picture,
            Next::Nothing => continue,
            Next::Ended => break,
        };
        if picture.captured - *warm.get_or_insert(picture.captured) < WARM_UP {
            continue;
        }
        let begun = *first.get_or_insert(picture.captured);
        let size = held.first().map(|(_, f)| (f.width(), f.height())).or(last);
        if size.is_some_and(|size| size != (picture.frame.width(), picture.frame.height())) {
            break;
        }
        last = Some((picture.frame.width(), picture.frame.height()));
        bytes += picture.frame.bytes() as u64;
        frames += 1;
        let passed = picture.captured - begun;
        match &mut writer {
            Some(writer) => writer.push(&picture.frame).map_err(written)?,
            None => held.push((picture.captured, picture.frame)),
        }
        let enough = passed >= seconds;
        if writer.is_none() && (passed >= 2.0 || enough || held.len() >= 64) {
            let begun = begin(path, &mut held).map_err(written)?;
            fps = begun.as_ref().map_or(0.0, |(_, fps)| *fps);
            writer = begun.map(|(writer, _)| writer);
        }
        if enough {
            break;
        }
    }
    if writer.is_none() {
        let begun = begin(path, &mut held).map_err(written)?;
        fps = begun.as_ref().map_or(0.0, |(_, fps)| *fps);
        writer = begun.map(|(writer, _)| writer);
    }
    let Some(writer) = writer else {
        let status = feed.status();
        let why = match status.state {
            FeedState::Ended if !status.message.is_empty() => status.message,
            _ => format!("no two pictures within {:.0} s", options.answer + seconds),
        };
        return Err(bad(why));
    };
    writer.finish().map_err(written)?;
    let received = feed.status().received.max(1);
    Ok(Recording { frames, seconds: frames as f64 / fps, fps, decode: feed.used() / received as f64 })
}

/// Creates the file with the frame rate of the held pictures, and writes them; `None` with fewer than two pictures.
fn begin(path: &Path, held: &mut Vec<(f64, Frame)>) -> Result<Option<(Y4mWriter, f64)>, WriteError> {
    let (Some((from, frame)), Some((to, _))) = (held.first(), held.last()) else { return Ok(None) };
    if to <= from {
        return Ok(None);
    }
    let fps = ((held.len() - 1) as f64 / (to - from) * 1000.0).round().clamp(1.0, 1e6) / 1000.0;
    let mut writer = Y4mWriter::create(path, frame.width(), frame.height(), fps)?;
    for (_, frame) in held.drain(..) {
        writer.push(&frame)?;
    }
    Ok(Some((writer, fps)))
}
