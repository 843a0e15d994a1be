//! Scales pictures down, where each new pixel is the mean of those that it replaces, and up, where new pixels are
//! interpolated.

use std::borrow::Cow;

use crate::frame::{Colour, Frame};

/// Returns the picture with its sides divided by `divisor`; the picture itself for 1. Sides stay even and at least 2.
pub fn shrink(frame: &Frame, divisor: u32) -> Cow<'_, Frame> {
    let divisor = divisor.max(1) as usize;
    if divisor == 1 {
        return Cow::Borrowed(frame);
    }
    let mut out = Frame::filled(frame.width() / divisor, frame.height() / divisor, Colour::grey(0));
    let (w, h) = (out.width(), out.height());
    let (from_w, from_h) = (frame.width(), frame.height());
    plane(&frame.y, (from_w, from_h), &mut out.y, (w, h));
    plane(&frame.u, (from_w / 2, from_h / 2), &mut out.u, (w / 2, h / 2));
    plane(&frame.v, (from_w / 2, from_h / 2), &mut out.v, (w / 2, h / 2));
    Cow::Owned(out)
}

/// Returns the picture in this size, which must be even and not smaller than the picture, with pixels interpolated
/// linearly. A picture of this size, or a larger one, is returned as it is.
pub fn enlarge(frame: Frame, width: usize, height: usize) -> Frame {
    let (from_w, from_h) = (frame.width(), frame.height());
    if (from_w, from_h) == (width, height) || from_w > width || from_h > height {
        return frame;
    }
    let mut out = Frame::filled(width, height, Colour::grey(0));
    let (w, h) = (out.width(), out.height());
    stretch(&frame.y, (from_w, from_h), &mut out.y, (w, h));
    stretch(&frame.u, (from_w / 2, from_h / 2), &mut out.u, (w / 2, h / 2));
    stretch(&frame.v, (from_w / 2, from_h / 2), &mut out.v, (w / 2, h / 2));
    out
}

/// Returns for each new row or column the one before it and the weight of the one after it, in 256ths. Centres of
/// pixels are mapped to each other.
fn neighbours(from: usize, to: usize) -> Vec<(usize, u32)> {
    let position = |n: usize| ((2 * n + 1) * from * 128 / to).saturating_sub(128).min((from - 1) * 256);
    (0..to).map(position).map(|at| (at / 256, (at % 256) as u32)).collect()
}

fn stretch(from: &[u8], (from_w, from_h): (usize, usize), to: &mut [u8], (w, h): (usize, usize)) {
    let (columns, rows) = (neighbours(from_w, w), neighbours(from_h, h));
    let mut line = vec![0_u32; from_w];
    for ((y, lower), out) in rows.into_iter().zip(to.chunks_exact_mut(w)) {
        let (above, below) = (&from[y * from_w..][..from_w], &from[(y + 1).min(from_h - 1) * from_w..][..from_w]);
        for ((mixed, a), b) in line.iter_mut().zip(above).zip(below) {
            *mixed = u32::from(*a) * (256 - lower) + u32::from(*b) * lower;
        }
        for ((x, right), pixel) in columns.iter().zip(out) {
            let mixed = line[*x] * (256 - right) + line[(x + 1).min(from_w - 1)] * right;
            *pixel = ((mixed + (1 << 15)) >> 16) as u8;
        }
    }
}

fn plane(from: &[u8], (from_w, from_h): (usize, usize), to: &mut [u8], (w, h): (usize, usize)) {
    let step = (from_w / w.max(1)).max(1);
    let mut sums = vec![0_u32; w];
    for (row, line) in to.chunks_exact_mut(w).enumerate() {
        let (top, bottom) = (row * from_h / h, ((row + 1) * from_h / h).max(row * from_h / h + 1));
        sums.fill(0);
        for y in top..bottom {
            let source = &from[y * from_w..][..from_w];
            // In the common case a pixel replaces a whole number of pixels, and chunks of a constant size are summed
            // fast.
            match step {
                2 => add(&mut sums, source.as_chunks::<2>().0),
                4 => add(&mut sums, source.as_chunks::<4>().0),
                8 => add(&mut sums, source.as_chunks::<8>().0),
                _ => sums.iter_mut().zip(source.chunks_exact(step)).for_each(|(sum, part)| {
                    *sum += part.iter().map(|p| u32::from(*p)).sum::<u32>();
                }),
            }
        }
        let area = (step * (bottom - top)) as u32;
        for (out, sum) in line.iter_mut().zip(&sums) {
            *out = ((sum + area / 2) / area) as u8;
        }
    }
}

fn add<const N: usize>(sums: &mut [u32], parts: &[[u8; N]]) {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum += part.iter().map(|p| u32::from(*p)).sum::<u32>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enlarged_pictures_look_the_same() {
        // A ramp stays a ramp, except at the edges, and its mean stays.
        let mut frame = Frame::filled(64, 36, Colour::grey(0));
        for (n, pixel) in frame.y.iter_mut().enumerate() {
            *pixel = (n % 64 * 4) as u8;
        }
        let large = enlarge(frame.clone(), 256, 144);
        assert_eq!((large.width(), large.height()), (256, 144));
        for x in 4..252 {
            let wanted = (x as f64 + 0.5) - 2.0;
            assert!((f64::from(large.y[70 * 256 + x]) - wanted).abs() <= 1.0, "{x}");
        }
        assert!(large.u.iter().all(|value| *value == 128));
        assert_eq!(enlarge(frame.clone(), 64, 36), frame);
        let small = shrink(&large, 4).into_owned();
        assert!(small.y.iter().zip(&frame.y).all(|(a, b)| a.abs_diff(*b) <= 2));
    }

    #[test]
    fn odd_ratios_and_single_pixels() {
        let large = enlarge(Frame::filled(2, 2, Colour::grey(77)), 640, 358);
        assert!(large.y.iter().all(|value| *value == 77));
        assert_eq!(enlarge(Frame::filled(10, 10, Colour::grey(1)), 8, 8).width(), 10);
    }
}
