//! Renders the frames of a scene.

use super::plan::{DESIGN_WIDTH, LANES, ROAD, Truth};
use super::sprite::{Sprite, draw};
use crate::frame::{Colour, Frame, Rect};
use crate::random::SplitMix64;

/// Number of precomputed noise values; the noise of a row starts anywhere in them.
const NOISE_VALUES: usize = 1 << 16;

/// A renderer of the frames of one scene, in any order.
#[derive(Debug)]
pub struct Renderer {
    truth: Truth,
    background: Frame,
    sprites: Vec<Sprite>,
    noise: Vec<i8>,
}

impl Renderer {
    /// Creates a renderer for a planned scene.
    pub fn new(truth: Truth) -> Renderer {
        let options = &truth.scene;
        let (w, h) = (options.width, options.height);
        let mut rng = SplitMix64::new(options.seed ^ 0x006e_6f69_7365);
        let noise = (0..NOISE_VALUES).map(|_| (rng.normal() * options.noise).round() as i8).collect();
        let sprites = truth.objects.iter().map(|object| draw(object, w, h)).collect();
        Renderer { background: background(w, h, &mut rng), sprites, noise, truth }
    }

    /// Returns the ground truth of the scene.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Renders the frame with this number.
    pub fn frame(&self, number: u64) -> Frame {
        let options = &self.truth.scene;
        let seconds = number as f64 / options.fps;
        let mut frame = self.background.clone();
        for (object, sprite) in self.truth.objects.iter().zip(&self.sprites) {
            let place = object.at(seconds, self.truth.line, options.seconds);
            if place.clipped().is_some() {
                paint(&mut frame, sprite, &place);
            }
        }
        let turn = std::f64::consts::TAU * seconds / options.seconds;
        let light = 1.0 + options.light * turn.sin();
        let steps: Vec<u8> = (0..256).map(|y| (f64::from(y) * light).round().clamp(0.0, 255.0) as u8).collect();
        let mut rng = SplitMix64::new(options.seed.wrapping_mul(31).wrapping_add(number));
        let width = frame.width();
        for row in frame.y.chunks_exact_mut(width) {
            let from = rng.below((NOISE_VALUES - width) as u64) as usize;
            for (pixel, noise) in row.iter_mut().zip(&self.noise[from..]) {
                *pixel = steps[usize::from(*pixel)].saturating_add_signed(*noise);
            }
        }
        frame
    }
}

/// Draws a sprite into a frame. Between rows it is interpolated, as a camera would blur it.
fn paint(frame: &mut Frame, sprite: &Sprite, place: &Rect) {
    let (w, h) = (frame.width() as i64, frame.height() as i64);
    // Columns are even, so that chroma and luma stay aligned.
    let left = ((place.x * w as f32 / 2.0).round() * 2.0) as i64;
    let top = place.y * h as f32;
    let (row0, part) = (top.floor() as i64, top - top.floor());
    let none = [0.0, 128.0, 128.0, 0.0];
    let get = |x: i64, y: i64| {
        let inside = x >= 0 && y >= 0 && x < sprite.width as i64 && y < sprite.height as i64;
        if inside { sprite.pixels[(y * sprite.width as i64 + x) as usize] } else { none }
    };
    for sy in 0..=sprite.height as i64 {
        let y = row0 + sy;
        if y < 0 || y >= h {
            continue;
        }
        for sx in 0..sprite.width as i64 {
            let x = left + sx;
            if x < 0 || x >= w {
                continue;
            }
            let (here, above) = (get(sx, sy), get(sx, sy - 1));
            let (a, b) = (here[3] * (1.0 - part), above[3] * part);
            if a + b <= 0.0 {
                continue;
            }
            let mix =
                |under: u8, c: usize| (f32::from(under) * (1.0 - a - b) + here[c] * a + above[c] * b).round() as u8;
            let at = (y * w + x) as usize;
            frame.y[at] = mix(frame.y[at], 0);
            if x % 2 == 0 && y % 2 == 0 {
                let at = (y / 2 * (w / 2) + x / 2) as usize;
                frame.u[at] = mix(frame.u[at], 1);
                frame.v[at] = mix(frame.v[at], 2);
            }
        }
    }
}

/// Draws the empty street.
fn background(width: usize, height: usize, rng: &mut SplitMix64) -> Frame {
    let scale = width as f64 / DESIGN_WIDTH;
    let lane = (ROAD.1 - ROAD.0) / LANES as f64;
    let mut frame = Frame::filled(width, height, Colour::grey(150));
    for y in 0..height {
        for x in 0..width {
            let (dx, dy) = (x as f64 / scale, y as f64 / scale);
            let road = dx >= ROAD.0 && dx < ROAD.1;
            let off_line = (dx - ROAD.0 + lane / 2.0).rem_euclid(lane) - lane / 2.0;
            let kerb = (dx - ROAD.0).abs() < 2.0 || (dx - ROAD.1).abs() < 2.0;
            let dash = road && !kerb && off_line.abs() < 1.5 && dy.rem_euclid(40.0) < 20.0;
            let slab = !road && (dy.rem_euclid(30.0) < 1.0 || dx.rem_euclid(26.0) < 1.0);
            let base = match () {
                () if kerb => 175.0,
                () if dash => 205.0,
                () if slab => 138.0,
                () if road => 92.0,
                () => 150.0,
            };
            frame.y[y * width + x] = (base + rng.normal() * 3.0).round() as u8;
        }
    }
    frame
}
