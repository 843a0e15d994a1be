//! Plans the people and vehicles of a scene, with their paths and times: its ground truth.
//!
//! Motion is straight and uniform, so that every box and every crossing is given by a formula.

use serde::{Deserialize, Serialize};

use crate::frame::Rect;
use crate::glyphs::PLATE_SIGNS;
use crate::random::SplitMix64;

/// Picture width for which the sizes below are meant; they scale with the real width.
pub(super) const DESIGN_WIDTH: f64 = 640.0;
/// Left and right edge of the road, from the left.
pub(super) const ROAD: (f64, f64) = (84.0, 556.0);
/// Number of lanes; the left half leads down, the right half up.
pub(super) const LANES: usize = 4;
/// Number of rows of walkers on each pavement; the distance between them follows.
const ROWS: usize = 3;
const ROW_WIDTH: f64 = 26.0;

/// Kind of a moving object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A passenger car.
    Car,
    /// A van.
    Van,
    /// A lorry.
    Truck,
    /// A bus.
    Bus,
    /// A pedestrian.
    Person,
}

impl Kind {
    /// All kinds of objects, in the order of their numbers.
    pub const ALL: [Kind; 5] = [Kind::Car, Kind::Van, Kind::Truck, Kind::Bus, Kind::Person];

    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Car => "car",
            Kind::Van => "van",
            Kind::Truck => "truck",
            Kind::Bus => "bus",
            Kind::Person => "person",
        }
    }

    /// Returns whether the kind is a vehicle.
    pub fn is_vehicle(self) -> bool {
        self != Kind::Person
    }

    /// Returns a random width and length of the kind, at the design's width.
    fn size(self, rng: &mut SplitMix64) -> (f64, f64) {
        match self {
            Kind::Car => (72.0, rng.between(90.0, 104.0)),
            Kind::Van => (76.0, rng.between(112.0, 124.0)),
            Kind::Truck => (82.0, rng.between(146.0, 166.0)),
            Kind::Bus => (86.0, rng.between(178.0, 196.0)),
            Kind::Person => (13.0, rng.between(25.0, 30.0)),
        }
    }
}

/// Options of a generated scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SceneOptions {
    /// Width in pixels: even, 64 to 1920.
    pub width: usize,
    /// Height in pixels: even, 64 to 1080.
    pub height: usize,
    /// Frame rate in frames a second, 1 to 60.
    pub fps: f64,
    /// Time after which the scene repeats itself, 2 to 600 seconds.
    pub seconds: f64,
    /// Seed; different seeds give different scenes.
    pub seed: u64,
    /// Vehicles a minute over all lanes, limited by what fits.
    pub vehicles_per_minute: f64,
    /// People a minute over both pavements, limited by what fits.
    pub people_per_minute: f64,
    /// Standard deviation of the camera noise, in steps of brightness, 0 to 20.
    pub noise: f64,
    /// Amplitude of the changes of light, as a fraction, 0 to 0.3.
    pub light: f64,
}

impl Default for SceneOptions {
    fn default() -> SceneOptions {
        SceneOptions {
            width: 640,
            height: 360,
            fps: 25.0,
            seconds: 20.0,
            seed: 1,
            vehicles_per_minute: 60.0,
            people_per_minute: 40.0,
            noise: 2.5,
            light: 0.05,
        }
    }
}

/// The error of an invalid option of a scene.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("scene: {field} is {value}: {rule}")]
pub struct SceneError {
    /// Name of the option.
    pub field: &'static str,
    /// Invalid value.
    pub value: String,
    /// Rule that the value breaks.
    pub rule: &'static str,
}

impl SceneOptions {
    /// Checks that the options are within their ranges.
    ///
    /// # Errors
    /// Returns the first option outside its range.
    pub fn check(&self) -> Result<(), SceneError> {
        let even = |n: usize, max: usize| n.is_multiple_of(2) && (64..=max).contains(&n);
        let within = |x: f64, from: f64, to: f64| x >= from && x <= to;
        let bad = |field, value: String, rule| Err(SceneError { field, value, rule });
        if !even(self.width, 1920) {
            return bad("width", self.width.to_string(), "even, 64 to 1920");
        }
        if !even(self.height, 1080) {
            return bad("height", self.height.to_string(), "even, 64 to 1080");
        }
        for (field, value, from, to, rule) in [
            ("fps", self.fps, 1.0, 60.0, "1 to 60"),
            ("seconds", self.seconds, 2.0, 600.0, "2 to 600"),
            ("vehicles_per_minute", self.vehicles_per_minute, 0.0, 1000.0, "0 to 1000"),
            ("people_per_minute", self.people_per_minute, 0.0, 1000.0, "0 to 1000"),
            ("noise", self.noise, 0.0, 20.0, "0 to 20"),
            ("light", self.light, 0.0, 0.3, "0 to 0.3"),
        ] {
            if !within(value, from, to) {
                return bad(field, value.to_string(), rule);
            }
        }
        Ok(())
    }
}

/// An object that moves through a scene, once in each repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// Number of the object, from 1.
    pub id: u32,
    /// Kind of the object.
    pub kind: Kind,
    /// Text of the plate; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plate: Option<String>,
    /// Index of its colour in the renderer's palette.
    pub colour: u8,
    /// Time at which its centre crosses the line, in seconds from the start of the scene.
    pub crosses: f64,
    /// Horizontal position of its centre, as a fraction of the picture's width.
    pub x: f32,
    /// Width, as a fraction of the picture's width.
    pub w: f32,
    /// Length, as a fraction of the picture's height.
    pub h: f32,
    /// Speed downwards in picture heights a second; negative is upwards.
    pub speed: f32,
}

/// The ground truth of a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Version of this format: 1.
    pub version: u32,
    /// Options from which the scene was generated.
    pub scene: SceneOptions,
    /// Position of the line whose crossings are counted, as a fraction of the height.
    pub line: f32,
    /// Objects that move through the scene, by time of crossing.
    pub objects: Vec<Object>,
}

impl Object {
    /// Returns the object's box at a time, inside or outside the picture. The object appears every `period` seconds;
    /// the nearest appearance counts.
    pub fn at(&self, seconds: f64, line: f32, period: f64) -> Rect {
        let since = seconds - self.crosses;
        let since = since - (since / period).round() * period;
        let y = f64::from(line) + since * f64::from(self.speed);
        Rect { x: self.x - self.w / 2.0, y: y as f32 - self.h / 2.0, w: self.w, h: self.h }
    }
}

impl Truth {
    /// Plans a scene.
    ///
    /// # Errors
    /// Returns an error if an option is outside its range.
    pub fn plan(options: &SceneOptions) -> Result<Truth, SceneError> {
        options.check()?;
        let mut planner = Planner { options, rng: SplitMix64::new(options.seed), objects: Vec::new() };
        let lane = (ROAD.1 - ROAD.0) / LANES as f64;
        for number in 0..LANES {
            let down = number < LANES / 2;
            let speed = planner.rng.between(95.0, 165.0);
            let x = ROAD.0 + lane * (number as f64 + 0.5);
            planner.row(x, if down { speed } else { -speed }, options.vehicles_per_minute / LANES as f64, true);
        }
        for side in 0..2 {
            for row in 0..ROWS {
                let x = ROW_WIDTH * (row as f64 + 0.5) + 3.0;
                let x = if side == 0 { x } else { DESIGN_WIDTH - x };
                let speed = planner.rng.between(38.0, 62.0);
                let speed = if planner.rng.below(2) == 0 { speed } else { -speed };
                planner.row(x, speed, options.people_per_minute / (2 * ROWS) as f64, false);
            }
        }
        let mut objects = planner.objects;
        objects.sort_by(|a, b| a.crosses.total_cmp(&b.crosses));
        let mut rng = SplitMix64::new(options.seed ^ 0x0070_6c61_7465);
        let mut plates = std::collections::BTreeSet::new();
        for (id, object) in (1..).zip(&mut objects) {
            object.id = id;
            object.plate = object.kind.is_vehicle().then(|| new_plate(&mut rng, &mut plates));
        }
        Ok(Truth { version: 1, scene: options.clone(), line: 0.5, objects })
    }

    /// Returns the visible objects at a time, each with the part of its box that is in the picture.
    pub fn visible(&self, seconds: f64) -> impl Iterator<Item = (&Object, Rect)> {
        let place = move |o: &Object| o.at(seconds, self.line, self.scene.seconds).clipped();
        self.objects.iter().filter_map(move |o| place(o).map(|rect| (o, rect)))
    }
}

struct Planner<'a> {
    options: &'a SceneOptions,
    rng: SplitMix64,
    objects: Vec<Object>,
}

impl Planner<'_> {
    /// Adds a row of objects one behind the other, all with the same speed (in design pixels a second), so that they do
    /// not collide.
    fn row(&mut self, x: f64, speed: f64, per_minute: f64, vehicles: bool) {
        if per_minute <= 0.0 {
            return;
        }
        let mean = 60.0 / per_minute;
        let gap = if vehicles { 44.0 } else { 22.0 };
        // Objects are never longer than the repetition: otherwise they would be in the picture twice.
        let height = self.options.height as f64 / self.scale();
        let speed = speed.signum() * speed.abs().max((height + 200.0) / self.options.seconds * 1.05);
        let mut free = self.rng.wait(mean).min(mean);
        let first = free;
        let mut before = 0.0;
        loop {
            let kind = if vehicles { self.kind() } else { Kind::Person };
            let (w, h) = kind.size(&mut self.rng);
            let at = free + (before + h / 2.0) / speed.abs();
            let last = at + (h / 2.0 + gap + 100.0) / speed.abs();
            if last > self.options.seconds + first {
                return;
            }
            let object = self.object(kind, (x, w, h), speed, at % self.options.seconds);
            self.objects.push(object);
            before = h / 2.0 + gap;
            let least = before / speed.abs();
            free = at + (self.rng.wait(mean) - least).max(0.0);
        }
    }

    fn scale(&self) -> f64 {
        self.options.width as f64 / DESIGN_WIDTH
    }

    fn kind(&mut self) -> Kind {
        match self.rng.below(10) {
            0 => Kind::Bus,
            1 | 2 => Kind::Truck,
            3 | 4 => Kind::Van,
            _ => Kind::Car,
        }
    }

    fn object(&mut self, kind: Kind, (x, w, h): (f64, f64, f64), speed: f64, crosses: f64) -> Object {
        let height = self.options.height as f64 / self.scale();
        Object {
            id: 0,
            kind,
            plate: None,
            colour: self.rng.below(8) as u8,
            crosses,
            x: (x / DESIGN_WIDTH) as f32,
            w: (w / DESIGN_WIDTH) as f32,
            h: (h / height) as f32,
            speed: (speed / height) as f32,
        }
    }
}

/// Returns a plate of three letters and three digits that is not taken.
fn new_plate(rng: &mut SplitMix64, taken: &mut std::collections::BTreeSet<String>) -> String {
    let (letters, digits) = PLATE_SIGNS.split_at(PLATE_SIGNS.len() - 10);
    loop {
        let mut sign = |signs: &str| char::from(signs.as_bytes()[rng.below(signs.len() as u64) as usize]);
        let plate: String = [letters, letters, letters, digits, digits, digits].into_iter().map(&mut sign).collect();
        if taken.insert(plate.clone()) {
            return plate;
        }
    }
}
