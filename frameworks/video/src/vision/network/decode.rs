//! Boxes from the output of a network: its form, the scores, and the suppression of boxes of one object.

use super::Object;
use crate::frame::Rect;
use crate::vision::groups::share;

/// Numbers of classes that a model can have: people alone, or the 80 classes of COCO.
const CLASSES: [usize; 2] = [1, 80];
/// Class of people, in both cases; the vehicles of COCO follow: bicycle, car, motorcycle, bus, truck.
const PERSON: usize = 0;
const VEHICLES: [usize; 5] = [1, 2, 3, 5, 7];
/// Least score of a box in the forms with one box for each row or column.
const SCORE_MIN: f32 = 0.4;
/// Least score in the form of a grid, where scores are higher.
const GRID_SCORE_MIN: f32 = 0.75;
/// Exponents of the certainty that there is an object, and of its class, in the score of a grid (FastestDet).
const GRID_EXPONENTS: (f32, f32) = (0.6, 0.4);
/// Overlap of two boxes from which on they are of one object.
const SAME: f32 = 0.45;
/// Part of the smaller box inside another from which on both are of one object, if they are of different tiles.
const PART: f32 = 0.7;
/// Maximum number of boxes that are compared; those with the lowest scores are left out.
const BOXES_MAX: usize = 1000;

/// The form of a network's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// `[1, boxes, 5 + classes]`: centre, size, certainty, classes.
    Rows { boxes: usize, classes: usize },
    /// `[1, 4 + classes, boxes]`: centre, size, classes.
    Columns { boxes: usize, classes: usize },
    /// `[1, 5 + classes, rows, columns]`: for each cell certainty, offset of the centre, size, classes.
    Grid { classes: usize, rows: usize, columns: usize },
}

impl Layout {
    /// Returns whether networks with this output are trained on pictures in blue, green and red, the order of OpenCV.
    pub(super) fn is_blue_first(&self) -> bool {
        matches!(self, Layout::Grid { .. })
    }

    /// Returns the layout of an output of this shape.
    ///
    /// # Errors
    /// Returns the rule that the shape breaks.
    pub(super) fn of(shape: &[usize]) -> Result<Layout, String> {
        let known = |values: usize, other: usize| values.checked_sub(other).filter(|classes| CLASSES.contains(classes));
        let layout = match *shape {
            [1, boxes, values] if known(values, 5).is_some() => {
                known(values, 5).map(|classes| Layout::Rows { boxes, classes })
            }
            [1, values, boxes] => known(values, 4).map(|classes| Layout::Columns { boxes, classes }),
            [1, values, rows, columns] => known(values, 5).map(|classes| Layout::Grid { classes, rows, columns }),
            _ => None,
        };
        layout.ok_or_else(|| {
            format!(
                "its output has the form {shape:?}, which is not that of a detector: [1, boxes, 5 + classes], \
                 [1, 4 + classes, boxes] or [1, 5 + classes, rows, columns], with 1 or 80 classes"
            )
        })
    }
}

/// A box that a network has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    score: f32,
    object: Object,
    /// Number of the tile.
    tile: usize,
}

impl Candidate {
    /// Converts a box in a tile to one in the picture; `None` if it is outside.
    pub(super) fn within(self, tile: &Rect, number: usize) -> Option<Candidate> {
        let Rect { x, y, w, h } = self.object.place;
        let place = Rect { x: tile.x + x * tile.w, y: tile.y + y * tile.h, w: w * tile.w, h: h * tile.h };
        let place = place.clipped()?;
        Some(Candidate { object: Object { place, ..self.object }, tile: number, ..self })
    }
}

/// Returns the people and vehicles in an output. `size` is the size of the network's input. Boxes are fractions of the
/// input.
pub(super) fn decode(layout: &Layout, values: &[f32], size: (usize, usize)) -> Vec<Candidate> {
    let (width, height) = (size.0 as f32, size.1 as f32);
    let pixels = |[x, y, w, h]: [f32; 4]| [x / width, y / height, w / width, h / height];
    match *layout {
        Layout::Rows { boxes, classes } => {
            let rows = values.chunks_exact(5 + classes).take(boxes);
            let one = |row: &[f32]| {
                let (class, certainty) = best(row[5..].iter().copied());
                candidate(row[4] * certainty, SCORE_MIN, class, pixels([row[0], row[1], row[2], row[3]]))
            };
            rows.filter_map(one).collect()
        }
        Layout::Columns { boxes, classes } => {
            let at = |value: usize, number: usize| values.get(value * boxes + number).copied().unwrap_or_default();
            let one = |number: usize| {
                let (class, certainty) = best((0..classes).map(|class| at(4 + class, number)));
                let place = [at(0, number), at(1, number), at(2, number), at(3, number)];
                candidate(certainty, SCORE_MIN, class, pixels(place))
            };
            (0..boxes).filter_map(one).collect()
        }
        Layout::Grid { classes, rows, columns } => {
            let cells = rows * columns;
            let at = |value: usize, cell: usize| values.get(value * cells + cell).copied().unwrap_or_default();
            let one = |cell: usize| {
                let (class, certainty) = best((0..classes).map(|class| at(5 + class, cell)));
                let score = at(0, cell).max(0.0).powf(GRID_EXPONENTS.0) * certainty.max(0.0).powf(GRID_EXPONENTS.1);
                let x = ((cell % columns) as f32 + at(1, cell).tanh()) / columns as f32;
                let y = ((cell / columns) as f32 + at(2, cell).tanh()) / rows as f32;
                candidate(score, GRID_SCORE_MIN, class, [x, y, logistic(at(3, cell)), logistic(at(4, cell))])
            };
            (0..cells).filter_map(one).collect()
        }
    }
}

fn logistic(value: f32) -> f32 {
    1.0 / (1.0 + (-value).exp())
}

/// Returns the class with the highest value, and the value.
fn best(values: impl Iterator<Item = f32>) -> (usize, f32) {
    values.enumerate().fold((PERSON, f32::MIN), |best, one| if one.1 > best.1 { one } else { best })
}

/// Returns a box with this centre and size, if its score is high enough, its class is wanted, and it is a box.
fn candidate(score: f32, least: f32, class: usize, [x, y, w, h]: [f32; 4]) -> Option<Candidate> {
    let vehicle = match class {
        PERSON => false,
        class if VEHICLES.contains(&class) => true,
        _ => return None,
    };
    let place = Rect { x: x - w / 2.0, y: y - h / 2.0, w, h };
    let sane = w > 0.0 && h > 0.0 && [x, y, w, h].iter().all(|value| value.is_finite());
    (score >= least && sane).then_some(Candidate { score, object: Object { place, vehicle: Some(vehicle) }, tile: 0 })
}

/// Returns one box for each object: the one with the highest score.
pub(super) fn suppress(mut found: Vec<Candidate>) -> Vec<Object> {
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found.truncate(BOXES_MAX);
    let mut kept: Vec<Candidate> = Vec::new();
    for one in found {
        if !kept.iter().any(|other| is_same(&one, other)) {
            kept.push(one);
        }
    }
    kept.into_iter().map(|one| one.object).collect()
}

fn is_same(one: &Candidate, other: &Candidate) -> bool {
    let (a, b) = (&one.object.place, &other.object.place);
    // Of an object at the edge of a tile, the tile contains a part.
    let is_part = || one.tile != other.tile && share(a, b).max(share(b, a)) >= PART;
    one.object.vehicle == other.object.vehicle && (a.iou(b) >= SAME || is_part())
}

#[cfg(test)]
mod tests;
