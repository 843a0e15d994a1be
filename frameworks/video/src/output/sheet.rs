//! A contact sheet: many small pictures in one PNG file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::frame::{Colour, Frame};
use crate::vision::shrink;

/// Maximum number of pictures on a sheet.
const PICTURES_MAX: usize = 60;
/// Distance between pictures in pixels.
const GAP: usize = 6;

/// Reason why a sheet cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum SheetError {
    /// The sheet has no pictures.
    #[error("the sheet has no pictures")]
    Empty,
    /// The file cannot be written.
    #[error("the sheet cannot be written")]
    Io(#[from] std::io::Error),
    /// The encoder failed.
    #[error("the sheet cannot be encoded")]
    Png(#[from] png::EncodingError),
}

/// The pictures of a contact sheet.
#[derive(Debug, Default)]
pub struct Sheet {
    pictures: Vec<Frame>,
    every: usize,
    seen: usize,
}

impl Sheet {
    /// Adds a picture, scaled down to a width of about 320 pixels. When there are too many pictures, every second one
    /// is removed.
    pub fn push(&mut self, frame: &Frame) {
        let every = self.every.max(1);
        self.seen += 1;
        if !(self.seen - 1).is_multiple_of(every) {
            return;
        }
        if self.pictures.len() >= PICTURES_MAX {
            let mut odd = false;
            self.pictures.retain(|_| {
                odd = !odd;
                odd
            });
            self.every = every * 2;
        }
        self.pictures.push(shrink(frame, (frame.width() / 320).max(1) as u32).into_owned());
    }

    /// Writes the sheet with `columns` pictures in a row.
    ///
    /// # Errors
    /// Returns an error if the sheet is empty, or the file cannot be written.
    pub fn write(&self, path: &Path, columns: usize) -> Result<(), SheetError> {
        let first = self.pictures.first().ok_or(SheetError::Empty)?;
        let columns = columns.clamp(1, self.pictures.len());
        let (w, h) = (first.width(), first.height());
        let rows = self.pictures.len().div_ceil(columns);
        let (width, height) = (columns * (w + GAP) + GAP, rows * (h + GAP) + GAP);
        let mut pixels = vec![245; width * height * 3];
        for (number, picture) in self.pictures.iter().enumerate() {
            let (left, top) = (GAP + number % columns * (w + GAP), GAP + number / columns * (h + GAP));
            for y in 0..h.min(picture.height()) {
                for x in 0..w.min(picture.width()) {
                    let chroma = y / 2 * (picture.width() / 2) + x / 2;
                    let at = y * picture.width() + x;
                    let colour = Colour { y: picture.y[at], u: picture.u[chroma], v: picture.v[chroma] };
                    pixels[((top + y) * width + left + x) * 3..][..3].copy_from_slice(&colour.to_rgb());
                }
            }
        }
        let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        Ok(encoder.write_header()?.write_image_data(&pixels)?)
    }
}
