//! Pictures: colour frames in the format of cameras and codecs (Y, U, V with half the chroma), and boxes in them.
//!
//! This module has no file formats and draws nothing.

use serde::{Deserialize, Serialize};

/// Maximum width and height of a picture, in pixels.
pub const SIDE_MAX: usize = 4096;

/// A picture in 4:2:0: a byte of luma for each pixel, and one of each chroma for each square of four.
///
/// Width and height are even and not zero, and the planes have exactly the sizes that follow from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    width: usize,
    height: usize,
    /// Luma (brightness), `width * height` bytes, row by row.
    pub y: Vec<u8>,
    /// Blue difference, a quarter of the bytes of `y`; 128 is grey.
    pub u: Vec<u8>,
    /// Red difference, a quarter of the bytes of `y`; 128 is grey.
    pub v: Vec<u8>,
}

impl Frame {
    /// Creates a picture of one colour. Sides are rounded down to even numbers, and up to 2.
    pub fn filled(width: usize, height: usize, colour: Colour) -> Frame {
        let (width, height) = (even(width), even(height));
        let quarter = width * height / 4;
        Frame {
            width,
            height,
            y: vec![colour.y; width * height],
            u: vec![colour.u; quarter],
            v: vec![colour.v; quarter],
        }
    }

    /// Creates a picture from planes whose rows may be longer than the picture, as decoders return them. An odd last
    /// column or row is cut off. Returns `None` if a plane is too short for the size, or a side is below 2.
    pub fn from_planes(size: (usize, usize), planes: [&[u8]; 3], strides: [usize; 3]) -> Option<Frame> {
        let (width, height) = (size.0 & !1, size.1 & !1);
        if width < 2 || height < 2 {
            return None;
        }
        Some(Frame {
            width,
            height,
            y: packed(planes[0], strides[0], width, height)?,
            u: packed(planes[1], strides[1], width / 2, height / 2)?,
            v: packed(planes[2], strides[2], width / 2, height / 2)?,
        })
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of bytes of all planes.
    pub fn bytes(&self) -> usize {
        self.y.len() * 3 / 2
    }
}

fn even(side: usize) -> usize {
    side.max(2) & !1
}

fn packed(plane: &[u8], stride: usize, width: usize, height: usize) -> Option<Vec<u8>> {
    if stride < width || plane.len() < stride * (height - 1) + width {
        return None;
    }
    let mut out = Vec::with_capacity(width * height);
    for row in 0..height {
        out.extend_from_slice(&plane[row * stride..row * stride + width]);
    }
    Some(out)
}

/// A colour in the components of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Luma (brightness).
    pub y: u8,
    /// Blue difference; 128 is grey.
    pub u: u8,
    /// Red difference; 128 is grey.
    pub v: u8,
}

impl Colour {
    /// Returns the grey of this brightness.
    pub const fn grey(y: u8) -> Colour {
        Colour { y, u: 128, v: 128 }
    }

    /// Converts red, green and blue to a colour (BT.601, full range).
    pub fn rgb(r: u8, g: u8, b: u8) -> Colour {
        let (r, g, b) = (f32::from(r), f32::from(g), f32::from(b));
        let byte = |x: f32| x.round().clamp(0.0, 255.0) as u8;
        Colour {
            y: byte(0.299 * r + 0.587 * g + 0.114 * b),
            u: byte(128.0 - 0.168_736 * r - 0.331_264 * g + 0.5 * b),
            v: byte(128.0 + 0.5 * r - 0.418_688 * g - 0.081_312 * b),
        }
    }

    /// Converts the colour to red, green and blue.
    pub fn to_rgb(self) -> [u8; 3] {
        let (y, u, v) = (f32::from(self.y), f32::from(self.u) - 128.0, f32::from(self.v) - 128.0);
        let byte = |x: f32| x.round().clamp(0.0, 255.0) as u8;
        [byte(y + 1.402 * v), byte(y - 0.344_136 * u - 0.714_136 * v), byte(y + 1.772 * u)]
    }
}

/// A box in a picture. Coordinates are fractions of the picture's width and height, so that they mean the same at every
/// resolution; `x`, `y` is the top left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rect {
    /// Left side as a fraction of the picture's width, 0 to 1.
    pub x: f32,
    /// Upper side as a fraction of the picture's height, 0 to 1.
    pub y: f32,
    /// Width as a fraction of the picture's width, 0 to 1.
    pub w: f32,
    /// Height as a fraction of the picture's height, 0 to 1.
    pub h: f32,
}

impl Rect {
    /// Returns the centre of the box.
    pub fn centre(&self) -> (f32, f32) {
        (self.x + self.w / 2.0, self.y + self.h / 2.0)
    }

    /// Returns the box moved by `dx` and `dy`.
    pub fn moved(&self, dx: f32, dy: f32) -> Rect {
        Rect { x: self.x + dx, y: self.y + dy, ..*self }
    }

    /// Returns the part of the box that is inside the picture; `None` if it is empty.
    pub fn clipped(&self) -> Option<Rect> {
        let (left, top) = (self.x.max(0.0), self.y.max(0.0));
        let (right, bottom) = ((self.x + self.w).min(1.0), (self.y + self.h).min(1.0));
        (right > left && bottom > top).then_some(Rect { x: left, y: top, w: right - left, h: bottom - top })
    }

    /// Returns the intersection over union of two boxes, 0 to 1.
    pub fn iou(&self, other: &Rect) -> f32 {
        let w = (self.x + self.w).min(other.x + other.w) - self.x.max(other.x);
        let h = (self.y + self.h).min(other.y + other.h) - self.y.max(other.y);
        if w <= 0.0 || h <= 0.0 {
            return 0.0;
        }
        let both = w * h;
        both / (self.w * self.h + other.w * other.h - both)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_with_padding_and_odd_sides() {
        let y: Vec<u8> = (0..8 * 5).collect();
        let frame = Frame::from_planes((5, 5), [&y, &[1; 8], &[2; 8]], [8, 4, 4]).expect("fits");
        assert_eq!((frame.width(), frame.height(), frame.y[4], frame.u.len()), (4, 4, 8, 4));
        assert_eq!(Frame::from_planes((8, 8), [&y, &[1; 16], &[2; 16]], [8, 4, 4]), None);
        assert_eq!(Frame::from_planes((1, 8), [&y, &[1; 16], &[2; 16]], [8, 4, 4]), None);
    }

    #[test]
    fn boxes_that_overlap() {
        let a = Rect { x: 0.0, y: 0.0, w: 0.2, h: 0.2 };
        assert!((a.iou(&a) - 1.0).abs() < 1e-6);
        assert!((a.iou(&a.moved(0.1, 0.0)) - 1.0 / 3.0).abs() < 1e-5);
        assert_eq!(a.iou(&a.moved(0.3, 0.0)), 0.0);
        assert_eq!(a.moved(-0.3, 0.0).clipped(), None);
    }

    #[test]
    fn colours_there_and_back() {
        for rgb in [[200, 30, 40], [20, 90, 200], [0, 0, 0], [255, 255, 255]] {
            let back = Colour::rgb(rgb[0], rgb[1], rgb[2]).to_rgb();
            assert!(rgb.iter().zip(back).all(|(a, b)| a.abs_diff(b) <= 2), "{rgb:?} {back:?}");
        }
    }
}
