//! Decodes the bytes of a frame: H.264, JPEG, and planes without a codec.
//!
//! It does not read files.

use openh264::OpenH264API;
use openh264::decoder::{DecodedYUV, Decoder as H264, DecoderConfig, Flush};
use openh264::formats::YUVSource;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

use super::indexed::{Coding, Index};
use crate::frame::{Frame, SIDE_MAX};

/// Reason why a frame cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum CodecError {
    #[error(transparent)]
    H264(#[from] openh264::Error),
    #[error("{0}")]
    Jpeg(DecodeErrors),
    #[error("too few bytes for its size")]
    Planes,
    #[error("a unit without its length")]
    NoLength,
    #[error("a unit longer than its frame")]
    Length,
    #[error("{width}x{height} pixels: sides are 2 to {SIDE_MAX}")]
    Side { width: usize, height: usize },
    #[error("a picture without its planes")]
    NoPlanes,
    #[error("a picture without a size")]
    NoSize,
    #[error("too few pixels for its size")]
    Pixels,
}

/// A decoder for one video.
pub(super) enum Decoder {
    H264(Box<H264Stream>),
    Jpeg,
    Planes { width: usize, height: usize },
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Decoder::H264(_) => "H264",
            Decoder::Jpeg => "Jpeg",
            Decoder::Planes { .. } => "Planes",
        })
    }
}

impl Decoder {
    /// Creates the decoder of a video. `reordered` is true if frames are not stored in display order.
    pub(super) fn new(index: &Index, reordered: bool) -> Result<Decoder, CodecError> {
        Ok(match &index.coding {
            Coding::H264 { length_bytes, parameters } => {
                Decoder::H264(Box::new(H264Stream::new(*length_bytes, parameters, reordered)?))
            }
            Coding::Jpeg => Decoder::Jpeg,
            Coding::Planes => Decoder::Planes { width: index.width, height: index.height },
        })
    }

    /// Decodes a packet. Returns the pictures that it completes, in display order.
    pub(super) fn decode(&mut self, packet: &[u8]) -> Result<Vec<Frame>, CodecError> {
        match self {
            Decoder::H264(stream) => stream.decode(packet),
            Decoder::Jpeg => Ok(vec![jpeg(packet)?]),
            Decoder::Planes { width, height } => {
                let (w, h) = (*width, *height);
                let half = w.div_ceil(2);
                let chroma = half * h.div_ceil(2);
                let planes = packet.len() >= w * h + 2 * chroma;
                let frame = planes.then(|| {
                    let (y, rest) = packet.split_at(w * h);
                    let (u, v) = rest.split_at(chroma);
                    Frame::from_planes((w, h), [y, u, v], [w, half, half])
                });
                Ok(vec![frame.flatten().ok_or(CodecError::Planes)?])
            }
        }
    }

    /// Returns the delayed pictures after the last packet.
    pub(super) fn finish(&mut self) -> Result<Vec<Frame>, CodecError> {
        match self {
            Decoder::H264(stream) => stream.finish(),
            _ => Ok(Vec::new()),
        }
    }

    /// Resets the decoder; the next packet must be a key frame.
    pub(super) fn restart(&mut self) -> Result<(), CodecError> {
        match self {
            Decoder::H264(stream) => stream.restart(),
            _ => Ok(()),
        }
    }
}

/// An H.264 decoder, with the parameter sets that it needs after every start.
pub(super) struct H264Stream {
    decoder: H264,
    length_bytes: usize,
    parameters: Vec<u8>,
    fresh: bool,
    reordered: bool,
    units: Vec<u8>,
}

impl H264Stream {
    fn new(length_bytes: usize, parameters: &[Vec<u8>], reordered: bool) -> Result<H264Stream, CodecError> {
        let mut start = Vec::new();
        for unit in parameters {
            start.extend_from_slice(&[0, 0, 0, 1]);
            start.extend_from_slice(unit);
        }
        let decoder = open(reordered)?;
        Ok(H264Stream { decoder, length_bytes, parameters: start, fresh: true, reordered, units: Vec::new() })
    }

    fn restart(&mut self) -> Result<(), CodecError> {
        if !self.fresh {
            // If frames are stored in display order, a key frame clears the decoder. Delayed pictures need a flush.
            if self.reordered {
                self.decoder = open(true)?;
            }
            self.fresh = true;
        }
        Ok(())
    }

    fn decode(&mut self, packet: &[u8]) -> Result<Vec<Frame>, CodecError> {
        self.units.clear();
        if self.fresh {
            self.units.extend_from_slice(&self.parameters);
            self.fresh = false;
        }
        with_start_codes(packet, self.length_bytes, &mut self.units)?;
        match self.decoder.decode(&self.units) {
            Ok(Some(picture)) => Ok(vec![copied(&picture)?]),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(&mut self) -> Result<Vec<Frame>, CodecError> {
        let rest = self.decoder.flush_remaining()?;
        rest.iter().map(copied).collect()
    }
}

fn open(reordered: bool) -> Result<H264, CodecError> {
    let flush = if reordered { Flush::NoFlush } else { Flush::Flush };
    let config = DecoderConfig::new().flush_after_decode(flush);
    Ok(H264::with_api_config(OpenH264API::from_source(), config)?)
}

/// Converts NAL units with length prefixes to units with start codes, and appends them to `out`.
fn with_start_codes(mut packet: &[u8], length_bytes: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
    while !packet.is_empty() {
        let (length, rest) = packet.split_at_checked(length_bytes).ok_or(CodecError::NoLength)?;
        let length = length.iter().fold(0, |n: usize, b| n << 8 | usize::from(*b));
        let (unit, rest) = rest.split_at_checked(length).ok_or(CodecError::Length)?;
        out.extend_from_slice(&[0, 0, 0, 1]);
        out.extend_from_slice(unit);
        packet = rest;
    }
    Ok(())
}

fn copied(picture: &DecodedYUV<'_>) -> Result<Frame, CodecError> {
    let (width, height) = picture.dimensions();
    if width > SIDE_MAX || height > SIDE_MAX {
        return Err(CodecError::Side { width, height });
    }
    let (y, u, v) = picture.strides();
    let planes = [picture.y(), picture.u(), picture.v()];
    Frame::from_planes((width, height), planes, [y, u, v]).ok_or(CodecError::NoPlanes)
}

/// Decodes one JPEG picture.
pub(super) fn jpeg(bytes: &[u8]) -> Result<Frame, CodecError> {
    let options = DecoderOptions::default()
        .set_max_width(SIDE_MAX)
        .set_max_height(SIDE_MAX)
        .set_strict_mode(true)
        .jpeg_set_out_colorspace(ColorSpace::YCbCr);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(CodecError::Jpeg)?;
    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    if grey {
        decoder.set_options(options.jpeg_set_out_colorspace(ColorSpace::Luma));
    }
    let pixels = decoder.decode().map_err(CodecError::Jpeg)?;
    let info = decoder.info().ok_or(CodecError::NoSize)?;
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    let channels = if grey { 1 } else { 3 };
    if width < 2 || height < 2 || pixels.len() < width * height * channels {
        return Err(CodecError::Pixels);
    }
    Ok(subsampled(&pixels, width, height, channels))
}

/// Converts interleaved pixels to planes; each chroma value is the mean of four.
fn subsampled(pixels: &[u8], stride: usize, height: usize, channels: usize) -> Frame {
    let mut frame = Frame::filled(stride, height, crate::frame::Colour::grey(0));
    let (w, h) = (frame.width(), frame.height());
    for row in 0..h {
        let line = &pixels[row * stride * channels..][..w * channels];
        for (out, pixel) in frame.y[row * w..][..w].iter_mut().zip(line.chunks_exact(channels)) {
            *out = pixel[0];
        }
    }
    if channels < 3 {
        return frame;
    }
    let at = |x: usize, y: usize, c: usize| u32::from(pixels[(y * stride + x) * channels + c]);
    for row in 0..h / 2 {
        for col in 0..w / 2 {
            let (x, y) = (col * 2, row * 2);
            let mean = |c| (at(x, y, c) + at(x + 1, y, c) + at(x, y + 1, c) + at(x + 1, y + 1, c) + 2) / 4;
            frame.u[row * (w / 2) + col] = mean(1) as u8;
            frame.v[row * (w / 2) + col] = mean(2) as u8;
        }
    }
    frame
}
