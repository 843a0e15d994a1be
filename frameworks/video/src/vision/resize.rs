//! Scales pictures down; each new pixel is the mean of those that it replaces.

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
