//! Tiles of a picture, and a tile as the input of a network.

use crate::frame::{Colour, Frame, Rect};

/// Ratio of a tile to the network's input up to which the tile is scaled down instead of divided.
const SCALED: f32 = 1.25;
/// Maximum number of tiles beside each other, and above each other.
const TILES_MAX: usize = 4;
/// Part of a tile that it shares with its neighbour, so that no object is cut by both.
const OVERLAP: f32 = 0.2;

/// Returns the tiles of a picture of this size for an input of the other size, as fractions of the picture.
pub(super) fn tiles(picture: (usize, usize), input: (usize, usize)) -> Vec<Rect> {
    let larger = (picture.0 as f32 / input.0 as f32).max(picture.1 as f32 / input.1 as f32);
    let count = ((larger / SCALED).ceil() as usize).clamp(1, TILES_MAX);
    let side = 1.0 / (count as f32 - (count - 1) as f32 * OVERLAP);
    let at = |n: usize| n as f32 * side * (1.0 - OVERLAP);
    (0..count * count).map(|n| Rect { x: at(n % count), y: at(n / count), w: side, h: side }).collect()
}

/// Returns a tile, scaled to this width and height: planes of red, green and blue with values from 0 to 1, in the
/// reverse order if `blue_first`.
pub(super) fn input(frame: &Frame, tile: &Rect, (width, height): (usize, usize), blue_first: bool) -> Vec<f32> {
    let mut planes = vec![0.0; 3 * width * height];
    let step = (tile.w * frame.width() as f32 / width as f32, tile.h * frame.height() as f32 / height as f32);
    let from = (tile.x * frame.width() as f32, tile.y * frame.height() as f32);
    for row in 0..height {
        let y = from.1 + (row as f32 + 0.5) * step.1 - 0.5;
        for column in 0..width {
            let x = from.0 + (column as f32 + 0.5) * step.0 - 0.5;
            let rgb = pixel(frame, x, y);
            for (plane, value) in rgb.into_iter().enumerate() {
                let plane = if blue_first { 2 - plane } else { plane };
                planes[(plane * height + row) * width + column] = f32::from(value) / 255.0;
            }
        }
    }
    planes
}

/// Returns the colour at a position between pixels: brightness interpolated, colour of the nearest square.
fn pixel(frame: &Frame, x: f32, y: f32) -> [u8; 3] {
    let (w, h) = (frame.width(), frame.height());
    let (x, y) = (x.clamp(0.0, (w - 1) as f32), y.clamp(0.0, (h - 1) as f32));
    let (left, top) = (x as usize, y as usize);
    let (right, below) = ((left + 1).min(w - 1), (top + 1).min(h - 1));
    let (dx, dy) = (x - left as f32, y - top as f32);
    let luma = |column: usize, row: usize| f32::from(frame.y[row * w + column]);
    let upper = luma(left, top) * (1.0 - dx) + luma(right, top) * dx;
    let lower = luma(left, below) * (1.0 - dx) + luma(right, below) * dx;
    let square = (top / 2) * (w / 2) + left / 2;
    let luma = (upper * (1.0 - dy) + lower * dy).round() as u8;
    Colour { y: luma, u: frame.u[square], v: frame.v[square] }.to_rgb()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_picture() {
        for (picture, count) in
            [((320, 240), 1), ((440, 440), 1), ((768, 576), 4), ((1920, 1080), 16), ((4096, 2160), 16)]
        {
            let all = tiles(picture, (352, 352));
            assert_eq!(all.len(), count, "{picture:?}");
            let last = all.last().expect("a tile");
            assert!((last.x + last.w - 1.0).abs() < 1e-5 && (last.y + last.h - 1.0).abs() < 1e-5, "{last:?}");
        }
    }

    #[test]
    fn a_tile_is_scaled_in_red_green_and_blue() {
        let mut frame = Frame::filled(8, 4, Colour::rgb(0, 0, 0));
        let red = Colour::rgb(250, 0, 0);
        for row in 0..4 {
            frame.y[row * 8 + 4..row * 8 + 8].fill(red.y);
        }
        for row in 0..2 {
            frame.u[row * 4 + 2..row * 4 + 4].fill(red.u);
            frame.v[row * 4 + 2..row * 4 + 4].fill(red.v);
        }
        let whole = input(&frame, &Rect { x: 0.0, y: 0.0, w: 1.0, h: 1.0 }, (4, 2), false);
        assert_eq!(whole.len(), 3 * 8);
        assert!(whole[0] < 0.02 && whole[3] > 0.95, "red: {whole:?}");
        assert!(whole[8..].iter().all(|value| *value < 0.1), "green and blue: {whole:?}");
        let right = input(&frame, &Rect { x: 0.5, y: 0.0, w: 0.5, h: 1.0 }, (2, 2), true);
        assert!(right[8..].iter().all(|value| *value > 0.95), "{right:?}");
    }
}
