//! A generated square with known ground truth, seen at an angle from above as by a camera on a building: people alone
//! and in groups who walk in all directions and hide each other, vehicles, shadows, leaves in the wind, and changing
//! light.
//!
//! It is harder than the street: boxes overlap, sizes depend on the position, and not everything that moves counts.

use crate::frame::{Colour, Frame, Rect};
use crate::random::SplitMix64;

/// Width and height of the square's pictures in pixels.
pub const SQUARE_SIZE: (usize, usize) = (480, 270);
/// Frame rate of the square in frames a second.
pub const SQUARE_FPS: f64 = 12.5;
/// Height of a person whose feet are at the top and at the bottom of the picture, as a fraction of the picture's
/// height.
const TALL: (f64, f64) = (0.09, 0.30);
/// Ratio of a person's width to the height, in pixels.
const SLIM: f64 = 0.38;
/// Factor of the brightness in a shadow.
const SHADOW: f32 = 0.62;
/// Size of the corner with leaves: columns and rows, as fractions of the picture.
const LEAVES: (f64, f64) = (0.16, 0.42);

/// A person or vehicle that moves in a straight line.
#[derive(Clone, Debug)]
struct Walker {
    vehicle: bool,
    /// Position of the feet at the time `from`, and speed a second, as fractions of width and height.
    start: (f64, f64),
    speed: (f64, f64),
    /// Time in seconds from which to which it is on the square.
    from: f64,
    to: f64,
    colours: [Colour; 2],
    size: f64,
}

/// A box of the ground truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrueBox {
    /// Number of the object, from 1.
    pub id: u32,
    /// Whether the object is a vehicle; otherwise it is a person.
    pub vehicle: bool,
    /// Box of the object.
    pub place: Rect,
    /// Fraction of the box that is in the picture and not hidden, 0 to 1.
    pub visible: f32,
}

/// The square with its people and vehicles.
#[derive(Debug)]
pub struct Square {
    seed: u64,
    walkers: Vec<Walker>,
    background: Frame,
}

impl Square {
    /// Generates a square with this many seconds of people and vehicles.
    pub fn new(seed: u64, seconds: f64) -> Square {
        let mut rng = SplitMix64::new(seed);
        let mut walkers = Vec::new();
        let mut at = 1.0;
        while at < seconds {
            match rng.below(10) {
                0 | 1 => walkers.push(vehicle(&mut rng, at)),
                2..=5 => group(&mut rng, at, &mut walkers),
                _ => walkers.extend(people(&mut rng, at, 1)),
            }
            at += 0.4 + rng.wait(1.5);
        }
        Square { seed, walkers, background: background(seed) }
    }

    /// Returns the true boxes at a time.
    pub fn boxes(&self, seconds: f64) -> Vec<TrueBox> {
        let mut boxes = Vec::new();
        for (walker, id) in self.walkers.iter().zip(1..) {
            if seconds < walker.from || seconds > walker.to {
                continue;
            }
            let whole = walker.place(seconds);
            let Some(place) = whole.clipped() else { continue };
            let inside = place.w * place.h / (whole.w * whole.h);
            boxes.push(TrueBox { id, vehicle: walker.vehicle, place, visible: inside });
        }
        let feet = |b: &TrueBox| b.place.y + b.place.h;
        let all = boxes.clone();
        for one in &mut boxes {
            let hidden = all.iter().filter(|other| other.id != one.id && feet(other) > feet(one));
            one.visible *= hidden.map(|other| 1.0 - share(&one.place, &other.place)).fold(1.0, f32::min);
        }
        boxes
    }

    /// Renders the frame with this number.
    pub fn frame(&self, number: u64) -> Frame {
        let seconds = number as f64 / SQUARE_FPS;
        let mut frame = self.background.clone();
        leaves(&mut frame, seconds);
        let mut here: Vec<&Walker> = self.walkers.iter().filter(|w| seconds >= w.from && seconds <= w.to).collect();
        here.sort_by(|a, b| a.feet(seconds).1.total_cmp(&b.feet(seconds).1));
        here.iter().for_each(|walker| walker.shadow(&mut frame, seconds));
        here.iter().for_each(|walker| walker.paint(&mut frame, seconds));
        let light = 1.0 + 0.06 * (seconds / 7.0).sin();
        let mut rng = SplitMix64::new(self.seed.wrapping_mul(977).wrapping_add(number));
        for pixel in &mut frame.y {
            *pixel = (f64::from(*pixel) * light + rng.normal() * 2.5).round().clamp(0.0, 255.0) as u8;
        }
        frame
    }
}

/// Returns the fraction of a box that is in another one, 0 to 1.
fn share(of: &Rect, within: &Rect) -> f32 {
    let w = (of.x + of.w).min(within.x + within.w) - of.x.max(within.x);
    let h = (of.y + of.h).min(within.y + within.h) - of.y.max(within.y);
    if w <= 0.0 || h <= 0.0 { 0.0 } else { w * h / (of.w * of.h) }
}

fn paint_of(rng: &mut SplitMix64) -> Colour {
    let mut part = || 20 + rng.below(200) as u8;
    Colour::rgb(part(), part(), part())
}

/// Makes a group of people who walk side by side; a single person is a group of one.
fn people(rng: &mut SplitMix64, at: f64, count: u32) -> Vec<Walker> {
    let right = rng.below(2) == 0;
    let row = rng.between(0.38, 0.97);
    let heads = TALL.0 + (TALL.1 - TALL.0) * row;
    // The pace is a body height in a bit more than a second. Paths are slanted, so that feet cross the middle of the
    // picture too.
    let pace = rng.between(0.35, 0.6) * heads / 0.3;
    let to = rng.between(0.38, 0.97);
    let time = 1.1 / (pace * 0.35);
    let apart = SLIM * heads * SQUARE_SIZE.1 as f64 / SQUARE_SIZE.0 as f64;
    let mut out = Vec::new();
    for number in 0..count {
        let aside = apart * f64::from(number) * rng.between(1.0, 1.5);
        let start = if right { -0.04 - aside } else { 1.04 + aside };
        let speed = (if right { 1.0 } else { -1.0 } * pace * 0.35, (to - row) / time);
        let lower = row + f64::from(number) * 0.012;
        let colours = [paint_of(rng), paint_of(rng)];
        let size = rng.between(0.92, 1.08);
        let to = at + time + 1.0;
        out.push(Walker { vehicle: false, start: (start, lower), speed, from: at, to, colours, size });
    }
    out
}

fn group(rng: &mut SplitMix64, at: f64, walkers: &mut Vec<Walker>) {
    let count = 2 + rng.below(2) as u32;
    walkers.extend(people(rng, at, count));
}

fn vehicle(rng: &mut SplitMix64, at: f64) -> Walker {
    let right = rng.below(2) == 0;
    let row = rng.between(0.45, 0.6);
    let (start, turn) = if right { (-0.2, 1.0) } else { (1.2, -1.0) };
    let pace = rng.between(0.25, 0.4);
    // The path is slanted a little.
    let speed = (turn * pace, rng.between(-0.08, 0.08));
    let colours = [paint_of(rng), Colour::grey(40)];
    Walker { vehicle: true, start: (start, row), speed, from: at, to: at + 1.4 / pace, colours, size: 1.0 }
}

impl Walker {
    fn feet(&self, seconds: f64) -> (f64, f64) {
        let since = seconds - self.from;
        (self.start.0 + self.speed.0 * since, self.start.1 + self.speed.1 * since)
    }

    fn place(&self, seconds: f64) -> Rect {
        let (x, feet) = self.feet(seconds);
        let tall = (TALL.0 + (TALL.1 - TALL.0) * feet) * self.size;
        let to_width = SQUARE_SIZE.1 as f64 / SQUARE_SIZE.0 as f64;
        let (h, w) = if self.vehicle { (tall * 0.85, tall * 2.2 * to_width) } else { (tall, tall * SLIM * to_width) };
        Rect { x: (x - w / 2.0) as f32, y: (feet - h) as f32, w: w as f32, h: h as f32 }
    }

    /// Fills a part of the object's box, given in fractions of it.
    fn part(&self, frame: &mut Frame, seconds: f64, [x, y, w, h]: [f64; 4], colour: Colour) {
        let place = self.place(seconds);
        let (fw, fh) = (frame.width() as f64, frame.height() as f64);
        let (px, py) = (f64::from(place.x) * fw, f64::from(place.y) * fh);
        let (pw, ph) = (f64::from(place.w) * fw, f64::from(place.h) * fh);
        let columns = (px + x * pw).max(0.0).round() as usize..(px + (x + w) * pw).clamp(0.0, fw).round() as usize;
        let rows = (py + y * ph).max(0.0).round() as usize..(py + (y + h) * ph).clamp(0.0, fh).round() as usize;
        let width = frame.width();
        for row in rows {
            for column in columns.clone() {
                frame.y[row * width + column] = colour.y;
                let chroma = row / 2 * (width / 2) + column / 2;
                frame.u[chroma] = colour.u;
                frame.v[chroma] = colour.v;
            }
        }
    }

    fn paint(&self, frame: &mut Frame, seconds: f64) {
        let [upper, lower] = self.colours;
        if self.vehicle {
            self.part(frame, seconds, [0.0, 0.35, 1.0, 0.5], upper);
            self.part(frame, seconds, [0.18, 0.0, 0.6, 0.4], upper);
            self.part(frame, seconds, [0.24, 0.08, 0.48, 0.25], Colour { y: 60, u: 134, v: 124 });
            self.part(frame, seconds, [0.1, 0.8, 0.18, 0.2], lower);
            self.part(frame, seconds, [0.72, 0.8, 0.18, 0.2], lower);
            return;
        }
        let swing = 0.22 * (seconds * 7.0 + self.start.0 * 9.0).sin();
        self.part(frame, seconds, [0.28 + swing, 0.55, 0.22, 0.45], lower);
        self.part(frame, seconds, [0.50 - swing, 0.55, 0.22, 0.45], lower);
        self.part(frame, seconds, [0.1, 0.17, 0.8, 0.43], upper);
        self.part(frame, seconds, [0.3, 0.0, 0.4, 0.18], Colour::rgb(205, 160, 130));
    }

    /// Darkens the ground to the right of the feet, slanted, like the shadow of a low sun.
    fn shadow(&self, frame: &mut Frame, seconds: f64) {
        let place = self.place(seconds);
        let (width, height) = (frame.width() as i64, frame.height() as i64);
        let (fw, fh) = (width as f32, height as f32);
        let long = (place.h * 0.45 * fh) as i64;
        let feet = ((place.y + place.h) * fh) as i64;
        for step in 0..long {
            let row = feet - step / 3;
            let from = (place.x * fw) as i64 + step;
            if row < 0 || row >= height {
                continue;
            }
            for column in from.max(0)..(from + (place.w * 0.8 * fw) as i64).min(width) {
                let at = (row * width + column) as usize;
                // Rows come three times: a pixel is darkened only the first time.
                if step % 3 == 0 {
                    frame.y[at] = (f32::from(frame.y[at]) * SHADOW) as u8;
                }
            }
        }
    }
}

fn background(seed: u64) -> Frame {
    let (w, h) = SQUARE_SIZE;
    let mut rng = SplitMix64::new(seed ^ 0x7371_7561_7265);
    let mut frame = Frame::filled(w, h, Colour::grey(120));
    for y in 0..h {
        for x in 0..w {
            let wall = y * 100 < h * 30;
            let window = wall && (x / 24) % 2 == 0 && (y / 18) % 2 == 1;
            let slab = !wall && (x + y / 2) % 46 < 2;
            let base = if window {
                70.0
            } else if wall {
                160.0
            } else if slab {
                108.0
            } else {
                126.0
            };
            frame.y[y * w + x] = (base + rng.normal() * 4.0) as u8;
        }
    }
    frame
}

/// Draws leaves that flicker between two shades.
fn leaves(frame: &mut Frame, seconds: f64) {
    let (w, h) = (frame.width(), frame.height());
    let (right, low) = ((w as f64 * LEAVES.0) as usize, (h as f64 * LEAVES.1) as usize);
    for y in 0..low {
        for x in 0..right {
            let phase = ((x / 5 * 7 + y / 5 * 13) % 29) as f64;
            let side = (seconds * 2.3 + phase).sin() > 0.2;
            frame.y[y * w + x] = if side { 112 } else { 62 };
            let chroma = y / 2 * (w / 2) + x / 2;
            frame.u[chroma] = 112;
            frame.v[chroma] = if side { 118 } else { 112 };
        }
    }
}
