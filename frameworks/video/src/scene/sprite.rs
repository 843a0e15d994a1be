//! Sprites of vehicles and people: small pictures with an opacity, drawn once and then moved.
//!
//! They consist of rectangles with soft edges.

use super::plan::{DESIGN_WIDTH, Kind, Object};
use crate::frame::Colour;
use crate::glyphs;
use crate::random::SplitMix64;

/// A picture with an opacity for each pixel.
#[derive(Clone, Debug)]
pub(super) struct Sprite {
    pub width: usize,
    pub height: usize,
    /// Luma, the two chromas, and opacity (0 to 1) of each pixel; colours are not premultiplied.
    pub pixels: Vec<[f32; 4]>,
    scale: f64,
}

const PAINT: [[u8; 3]; 8] = [
    [190, 30, 35],
    [30, 70, 170],
    [225, 225, 220],
    [35, 38, 42],
    [190, 150, 40],
    [40, 120, 60],
    [150, 155, 165],
    [120, 50, 110],
];

impl Sprite {
    fn new(width: f64, height: f64, scale: f64) -> Sprite {
        let (width, height) = ((width * scale).ceil() as usize, (height * scale).ceil() as usize);
        Sprite { width, height, pixels: vec![[0.0, 128.0, 128.0, 0.0]; width * height], scale }
    }

    /// Fills a rectangle, given as left, top, width and height in design pixels. Pixels at fractional edges are covered
    /// in part.
    fn fill(&mut self, [x, y, w, h]: [f64; 4], colour: Colour, opacity: f64) {
        let s = self.scale;
        let (left, top, right, bottom) = (x * s, y * s, (x + w) * s, (y + h) * s);
        let cover = |from: f64, to: f64, at: usize| (to.min(at as f64 + 1.0) - from.max(at as f64)).clamp(0.0, 1.0);
        let colour = [f32::from(colour.y), f32::from(colour.u), f32::from(colour.v)];
        for row in (top.max(0.0) as usize)..(bottom.ceil().max(0.0) as usize).min(self.height) {
            for col in (left.max(0.0) as usize)..(right.ceil().max(0.0) as usize).min(self.width) {
                let a = (cover(left, right, col) * cover(top, bottom, row) * opacity) as f32;
                let pixel = &mut self.pixels[row * self.width + col];
                let before = pixel[3] * (1.0 - a);
                let after = before + a;
                if after > 0.0 {
                    for (p, c) in pixel.iter_mut().zip(colour) {
                        *p = (*p * before + c * a) / after;
                    }
                    pixel[3] = after;
                }
            }
        }
    }

    /// Draws evenly spread text into a rectangle.
    fn text(&mut self, [x, y, w, h]: [f64; 4], text: &str, colour: Colour) {
        let pitch = w / text.len().max(1) as f64;
        let (dot_w, dot_h) = (pitch * 0.8 / glyphs::WIDTH as f64, h / glyphs::HEIGHT as f64);
        for (number, sign) in text.chars().enumerate() {
            let Some(pattern) = glyphs::pattern(sign) else { continue };
            let left = x + pitch * (number as f64 + 0.1);
            for row in 0..glyphs::HEIGHT {
                for col in (0..glyphs::WIDTH).filter(|col| glyphs::dot(&pattern, *col, row)) {
                    self.fill([left + col as f64 * dot_w, y + row as f64 * dot_h, dot_w, dot_h], colour, 1.0);
                }
            }
        }
    }
}

/// Draws an object for pictures of this size.
pub(super) fn draw(object: &Object, width: usize, height: usize) -> Sprite {
    let scale = width as f64 / DESIGN_WIDTH;
    let (w, h) = (f64::from(object.w) * DESIGN_WIDTH, f64::from(object.h) * height as f64 / scale);
    let mut sprite = Sprite::new(w, h, scale);
    let mut rng = SplitMix64::new(u64::from(object.id) * 77 + 5);
    if object.kind == Kind::Person {
        person(&mut sprite, w, h, object, &mut rng);
        return sprite;
    }
    vehicle(&mut sprite, w, h, object);
    if let Some(text) = &object.plate {
        plate(&mut sprite, w, h, text);
    }
    sprite
}

fn paint(number: u8) -> Colour {
    let [r, g, b] = PAINT[usize::from(number) % PAINT.len()];
    Colour::rgb(r, g, b)
}

/// Returns the colour with its brightness changed by `by`.
fn shade(colour: Colour, by: i16) -> Colour {
    Colour { y: (i16::from(colour.y) + by).clamp(16, 235) as u8, ..colour }
}

fn vehicle(sprite: &mut Sprite, w: f64, h: f64, object: &Object) {
    let body = paint(object.colour);
    let glass = Colour { y: 45, u: 134, v: 124 };
    sprite.fill([3.0, 0.0, w - 6.0, h], body, 1.0);
    sprite.fill([0.0, 5.0, w, h - 9.0], body, 1.0);
    match object.kind {
        Kind::Car => {
            sprite.fill([9.0, h * 0.22, w - 18.0, h * 0.34], shade(body, 22), 1.0);
            sprite.fill([8.0, h * 0.12, w - 16.0, h * 0.10], glass, 1.0);
            sprite.fill([7.0, h * 0.56, w - 14.0, h * 0.14], glass, 1.0);
        }
        Kind::Van => {
            sprite.fill([6.0, 6.0, w - 12.0, h * 0.58], shade(body, 14), 1.0);
            sprite.fill([6.0, h * 0.66, w - 12.0, h * 0.12], glass, 1.0);
        }
        Kind::Truck => {
            sprite.fill([2.0, 2.0, w - 4.0, h * 0.66], Colour::grey(205), 1.0);
            for stripe in 0..4 {
                sprite.fill([2.0, h * (0.08 + 0.16 * f64::from(stripe)), w - 4.0, 3.0], Colour::grey(150), 1.0);
            }
            sprite.fill([2.0, h * 0.665, w - 4.0, 4.0], Colour::grey(30), 1.0);
            sprite.fill([6.0, h * 0.74, w - 12.0, h * 0.08], glass, 1.0);
        }
        Kind::Bus => {
            sprite.fill([5.0, 4.0, w - 10.0, h * 0.80], shade(body, 10), 1.0);
            for hatch in 0..3 {
                let top = h * (0.12 + 0.24 * f64::from(hatch));
                sprite.fill([w * 0.32, top, w * 0.36, h * 0.09], Colour::grey(190), 1.0);
            }
            sprite.fill([5.0, h * 0.82, w - 10.0, h * 0.06], glass, 1.0);
        }
        Kind::Person => {}
    }
    let lamp = if object.speed > 0.0 { Colour::rgb(250, 245, 215) } else { Colour::rgb(200, 25, 20) };
    sprite.fill([3.0, h - 6.0, 10.0, 3.0], lamp, 1.0);
    sprite.fill([w - 13.0, h - 6.0, 10.0, 3.0], lamp, 1.0);
}

/// Draws a white plate with a dark rim at the lower end.
fn plate(sprite: &mut Sprite, w: f64, h: f64, text: &str) {
    let (pw, ph) = (64.0, 19.0);
    let (x, y) = ((w - pw) / 2.0, h - ph - 8.0);
    sprite.fill([x - 2.0, y - 2.0, pw + 4.0, ph + 4.0], Colour::grey(28), 1.0);
    sprite.fill([x, y, pw, ph], Colour::grey(228), 1.0);
    sprite.text([x + 2.0, y + 3.0, pw - 4.0, ph - 6.0], text, Colour::grey(24));
}

fn person(sprite: &mut Sprite, w: f64, h: f64, object: &Object, rng: &mut SplitMix64) {
    let coat = paint((object.colour + 3) % 8);
    // A person seen from above and in front: a coat, a head, legs. Coats as grey as the pavement are repainted.
    let coat = if coat.y.abs_diff(150) < 35 { shade(coat, -70) } else { coat };
    let skin = Colour::rgb(215, 165, 130);
    sprite.fill([w * 0.22, h * 0.62, w * 0.56, h * 0.38], Colour::grey(40 + rng.below(30) as u8), 1.0);
    sprite.fill([0.0, h * 0.22, w, h * 0.45], coat, 1.0);
    sprite.fill([w * 0.25, 0.0, w * 0.5, h * 0.24], skin, 1.0);
    sprite.fill([w * 0.22, 0.0, w * 0.56, h * 0.10], Colour::grey(50), 1.0);
}
