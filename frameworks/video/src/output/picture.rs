//! Encodes a picture as PNG or JPEG.

use crate::frame::{Colour, Frame};

/// Encodes a picture as JPEG of this quality, 1 to 100, with the chroma subsampling of frames.
///
/// # Errors
/// Returns the encoder's error.
pub fn jpeg(frame: &Frame, quality: u8) -> Result<Vec<u8>, jpeg_encoder::EncodingError> {
    let (w, h) = (frame.width(), frame.height());
    let mut pixels = Vec::with_capacity(w * h * 3);
    for y in 0..h {
        let (u, v) = (&frame.u[y / 2 * (w / 2)..][..w / 2], &frame.v[y / 2 * (w / 2)..][..w / 2]);
        for (x, luma) in frame.y[y * w..][..w].iter().enumerate() {
            pixels.extend([*luma, u[x / 2], v[x / 2]]);
        }
    }
    let mut out = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut out, quality.clamp(1, 100));
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    // The sides fit into 16 bits, since frames have at most 4096 pixels a side.
    encoder.encode(&pixels, w as u16, h as u16, jpeg_encoder::ColorType::Ycbcr)?;
    Ok(out)
}

/// Encodes a picture as PNG.
///
/// # Errors
/// Returns the encoder's error.
pub fn png(frame: &Frame) -> Result<Vec<u8>, png::EncodingError> {
    let (w, h) = (frame.width(), frame.height());
    let mut pixels = Vec::with_capacity(w * h * 3);
    for y in 0..h {
        for x in 0..w {
            let chroma = y / 2 * (w / 2) + x / 2;
            let colour = Colour { y: frame.y[y * w + x], u: frame.u[chroma], v: frame.v[chroma] };
            pixels.extend(colour.to_rgb());
        }
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, w as u32, h as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(out)
}
