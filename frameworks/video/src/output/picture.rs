//! A picture as PNG.

use crate::frame::{Colour, Frame};

/// Encodes a picture as PNG.
///
/// # Errors
/// The encoder refuses it.
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
