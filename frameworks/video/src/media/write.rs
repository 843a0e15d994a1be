//! Writes videos: MP4 with H.264, and Y4M.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use openh264::OpenH264API;
use openh264::encoder::{Complexity, Encoder, EncoderConfig, FrameRate, FrameType, IntraFramePeriod, RateControlMode};
use openh264::formats::YUVSlices;

use super::mp4::{Sample, Track, write};
use crate::frame::Frame;

/// Maximum number of bytes of coded video that are held until the file is written.
const BYTES_MAX: usize = 1 << 30;

/// Reason why a video cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file cannot be written.
    #[error("the video file cannot be written")]
    Io(#[from] io::Error),
    /// The encoder failed with this message.
    #[error("the video cannot be encoded: {0}")]
    Encode(String),
    /// A frame differs in size from the first.
    #[error("a frame of {got:?} pixels in a video of {want:?}")]
    Size {
        /// Width and height of the video.
        want: (usize, usize),
        /// Width and height of the frame.
        got: (usize, usize),
    },
}

/// A writer that encodes frames to H.264 and writes them as MP4 at the end, since the index comes first in the file.
pub struct Mp4Writer {
    encoder: Encoder,
    track: Track,
    bytes: usize,
    coded: Vec<u8>,
}

impl std::fmt::Debug for Mp4Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mp4Writer").field("frames", &self.track.samples.len()).finish_non_exhaustive()
    }
}

impl Mp4Writer {
    /// Creates a writer for pictures of one size, with a key frame every `key_every` seconds.
    ///
    /// # Errors
    /// Returns an error if the encoder does not start.
    pub fn new(width: usize, height: usize, fps: f64, key_every: f64) -> Result<Mp4Writer, WriteError> {
        let frames = (fps * key_every).round().max(1.0) as u32;
        let config = EncoderConfig::new()
            // All frames have the same quality: the picture must not depend on what was encoded before.
            .rate_control_mode(RateControlMode::Off)
            .max_frame_rate(FrameRate::from_hz(fps as f32))
            .skip_frames(false)
            .scene_change_detect(false)
            .background_detection(false)
            .adaptive_quantization(false)
            .complexity(Complexity::Low)
            .num_threads(1)
            .intra_frame_period(IntraFramePeriod::from_num_frames(frames));
        let encoder = Encoder::with_api_config(OpenH264API::from_source(), config);
        let encoder = encoder.map_err(|e| WriteError::Encode(e.to_string()))?;
        let track = Track {
            width: width as u16,
            height: height as u16,
            millifps: (fps * 1000.0).round() as u32,
            sps: Vec::new(),
            pps: Vec::new(),
            samples: Vec::new(),
        };
        Ok(Mp4Writer { encoder, track, bytes: 0, coded: Vec::new() })
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// Returns an error if the frame has another size or cannot be encoded, or the video becomes too large.
    pub fn push(&mut self, frame: &Frame) -> Result<(), WriteError> {
        let (w, h) = (frame.width(), frame.height());
        let want = (usize::from(self.track.width), usize::from(self.track.height));
        if want != (w, h) {
            return Err(WriteError::Size { want, got: (w, h) });
        }
        let source = YUVSlices::new((&frame.y, &frame.u, &frame.v), (w, h), (w, w / 2, w / 2));
        let coded = self.encoder.encode(&source).map_err(|e| WriteError::Encode(e.to_string()))?;
        let key = matches!(coded.frame_type(), FrameType::IDR);
        self.coded.clear();
        coded.write_vec(&mut self.coded);
        let mut bytes = Vec::with_capacity(self.coded.len());
        for unit in units(&self.coded) {
            match unit.first().map(|b| b & 0x1f) {
                Some(7) => self.track.sps = unit.to_vec(),
                Some(8) => self.track.pps = unit.to_vec(),
                Some(_) => {
                    bytes.extend_from_slice(&(unit.len() as u32).to_be_bytes());
                    bytes.extend_from_slice(unit);
                }
                None => {}
            }
        }
        self.bytes += bytes.len();
        if self.bytes > BYTES_MAX {
            return Err(WriteError::Encode(format!("more than {BYTES_MAX} bytes of video")));
        }
        self.track.samples.push(Sample { bytes, key });
        Ok(())
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(self, path: &Path) -> Result<(), WriteError> {
        let mut out = BufWriter::new(File::create(path)?);
        write(&self.track, &mut out)?;
        Ok(out.flush()?)
    }
}

/// Splits a stream at its start codes (0 0 1).
fn units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts: Vec<usize> =
        stream.windows(3).enumerate().filter(|(_, w)| *w == [0, 0, 1]).map(|(i, _)| i + 3).collect();
    let ends: Vec<usize> = starts.iter().skip(1).map(|s| s - 3).chain([stream.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| {
        let unit = &stream[start..end];
        let zeros = unit.iter().rev().take_while(|b| **b == 0).count();
        &unit[..unit.len() - zeros]
    })
}

/// A writer that writes each frame as Y4M at once.
#[derive(Debug)]
pub struct Y4mWriter {
    out: BufWriter<File>,
    size: (usize, usize),
}

impl Y4mWriter {
    /// Creates a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn create(path: &Path, width: usize, height: usize, fps: f64) -> Result<Y4mWriter, WriteError> {
        let mut out = BufWriter::new(File::create(path)?);
        let rate = (fps * 1000.0).round() as u64;
        writeln!(out, "YUV4MPEG2 W{width} H{height} F{rate}:1000 Ip A1:1 C420")?;
        Ok(Y4mWriter { out, size: (width, height) })
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// Returns an error if the frame has another size, or the file cannot be written.
    pub fn push(&mut self, frame: &Frame) -> Result<(), WriteError> {
        let got = (frame.width(), frame.height());
        if got != self.size {
            return Err(WriteError::Size { want: self.size, got });
        }
        self.out.write_all(b"FRAME\n")?;
        for plane in [&frame.y, &frame.u, &frame.v] {
            self.out.write_all(plane)?;
        }
        Ok(())
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn finish(mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }
}
