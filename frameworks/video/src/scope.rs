//! The scope of a query: lines that objects cross, and a region outside of which no object is tracked. Performs no I/O.
//!
//! Coordinates are fractions of the picture from its upper left corner, so that they mean the same at every resolution.

use serde::{Deserialize, Serialize};

use crate::frame::Rect;

/// Maximum number of lines of a query.
pub const LINES_MAX: usize = 16;
/// Maximum number of corners of a query's region.
pub const CORNERS_MAX: usize = 64;
/// Maximum length of the name of a line or a direction, in bytes.
const NAME_MAX: usize = 32;

/// A point: the distance from the left and from the top, each 0 to 1.
pub type Point = [f32; 2];

/// Directions in which crossings of a line count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// Both directions.
    #[default]
    Both,
    /// Only to the right-hand side, seen from the first point to the second.
    Forward,
    /// Only to the left-hand side.
    Backward,
}

/// A line at which crossings are counted. An object crosses a line where the centre of its box does, and again when it
/// comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Name of the line in findings.
    pub name: String,
    /// First point of the line.
    pub from: Point,
    /// Second point of the line.
    pub to: Point,
    /// Name of the direction to the right-hand side, seen from the first point to the second.
    #[serde(default = "forward")]
    pub forward: String,
    /// Name of the other direction.
    #[serde(default = "backward")]
    pub backward: String,
    /// Directions that count.
    #[serde(default)]
    pub count: Count,
}

fn forward() -> String {
    "forward".to_owned()
}

fn backward() -> String {
    "backward".to_owned()
}

/// Lines and region of a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// Lines of the query. Empty for a single line across the middle of the picture, with the directions `down` and
    /// `up`.
    pub lines: Vec<Line>,
    /// Corners of the region in which objects are tracked; empty for the whole picture.
    pub region: Vec<Point>,
}

impl Line {
    /// Returns the line across the middle of the picture.
    pub fn middle() -> Line {
        Line {
            name: String::new(),
            from: [0.0, 0.5],
            to: [1.0, 0.5],
            forward: "down".to_owned(),
            backward: "up".to_owned(),
            count: Count::Both,
        }
    }

    /// Returns how far a point is to the right of the line, as twice the area of the triangle between them.
    fn side(&self, (x, y): (f32, f32)) -> f32 {
        (self.to[0] - self.from[0]) * (y - self.from[1]) - (self.to[1] - self.from[1]) * (x - self.from[0])
    }

    /// Returns where a straight path crosses the line (0 to 1 along the path), and whether it goes forward; `None` if
    /// it does not cross.
    pub fn crossed(&self, before: (f32, f32), now: (f32, f32)) -> Option<(f32, bool)> {
        let (a, b) = (self.side(before), self.side(now));
        if (a < 0.0) == (b < 0.0) {
            return None;
        }
        let part = (a / (a - b)).clamp(0.0, 1.0);
        let (x, y) = (before.0 + (now.0 - before.0) * part, before.1 + (now.1 - before.1) * part);
        let (dx, dy) = (self.to[0] - self.from[0], self.to[1] - self.from[1]);
        let along = ((x - self.from[0]) * dx + (y - self.from[1]) * dy) / (dx * dx + dy * dy);
        (0.0..=1.0).contains(&along).then_some((part, b >= 0.0))
    }

    /// Returns whether crossings in a direction count.
    pub fn counts(&self, forward: bool) -> bool {
        match self.count {
            Count::Both => true,
            Count::Forward => forward,
            Count::Backward => !forward,
        }
    }

    /// Returns how far the centre of a box is beyond the line in a direction, in extents of the box across the line:
    /// with 0.5 or more, the whole box is beyond it. Negative before the line.
    pub fn beyond(&self, place: &Rect, forward: bool) -> f32 {
        let (dx, dy) = (self.to[0] - self.from[0], self.to[1] - self.from[1]);
        let distance = self.side(place.centre()) / (dx.abs() * place.h + dy.abs() * place.w);
        if forward { distance } else { -distance }
    }

    /// Returns the name of a direction.
    pub fn direction(&self, forward: bool) -> &str {
        if forward { &self.forward } else { &self.backward }
    }
}

/// The rule that an invalid scope breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// There are too many lines.
    #[error("line: at most {LINES_MAX} lines")]
    Lines,
    /// A name or a direction is empty, too long, or has control characters.
    #[error("line {0:?}: names and directions have 1 to {NAME_MAX} bytes")]
    Name(String),
    /// Two lines have this name.
    #[error("line {0:?}: there is a line with this name already")]
    Duplicate(String),
    /// A point of this line is outside of the picture.
    #[error("line {0:?}: coordinates are fractions of the picture, 0 to 1")]
    Point(String),
    /// This line is too short to have a direction.
    #[error("line {0:?}: its points are closer than a hundredth of the picture")]
    Short(String),
    /// Both directions of this line have the same name.
    #[error("line {0:?}: forward and backward have the same name")]
    Directions(String),
    /// A corner is outside of the picture.
    #[error("region: coordinates are fractions of the picture, 0 to 1")]
    Corner,
    /// There are too few or too many corners.
    #[error("region: 3 to {CORNERS_MAX} corners")]
    Corners,
}

impl Scope {
    /// Returns the lines, or the one across the middle if there are none.
    pub fn all_lines(&self) -> Vec<Line> {
        if self.lines.is_empty() { vec![Line::middle()] } else { self.lines.clone() }
    }

    /// Returns whether the centre of a box is in the region.
    pub fn contains(&self, place: &Rect) -> bool {
        let (x, y) = place.centre();
        let corners = &self.region;
        let mut inside = corners.is_empty();
        for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
            let between = (a[1] > y) != (b[1] > y);
            if between && x < (b[0] - a[0]) * (y - a[1]) / (b[1] - a[1]) + a[0] {
                inside = !inside;
            }
        }
        inside
    }

    /// Checks whether the scope is valid.
    ///
    /// # Errors
    /// Returns the rule that it breaks.
    pub fn check(&self) -> Result<(), ScopeError> {
        if self.lines.len() > LINES_MAX {
            return Err(ScopeError::Lines);
        }
        let inside = |p: &Point| p.iter().all(|c| (0.0..=1.0).contains(c));
        for (number, line) in self.lines.iter().enumerate() {
            let name = &line.name;
            let broken = |rule: fn(String) -> ScopeError| Err(rule(name.clone()));
            for text in [name, &line.forward, &line.backward] {
                if text.is_empty() || text.len() > NAME_MAX || text.chars().any(char::is_control) {
                    return broken(ScopeError::Name);
                }
            }
            if self.lines[..number].iter().any(|other| other.name == *name) {
                return broken(ScopeError::Duplicate);
            }
            if !inside(&line.from) || !inside(&line.to) {
                return broken(ScopeError::Point);
            }
            if (line.from[0] - line.to[0]).hypot(line.from[1] - line.to[1]) < 0.01 {
                return broken(ScopeError::Short);
            }
            if line.forward == line.backward {
                return broken(ScopeError::Directions);
            }
        }
        match self.region.len() {
            0 => Ok(()),
            3..=CORNERS_MAX if self.region.iter().all(inside) => Ok(()),
            3..=CORNERS_MAX => Err(ScopeError::Corner),
            _ => Err(ScopeError::Corners),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(from: Point, to: Point) -> Line {
        Line { name: "door".to_owned(), from, to, ..Line::middle() }
    }

    #[test]
    fn only_what_crosses_between_the_points_counts() {
        let door = line([0.4, 0.5], [0.6, 0.5]);
        let (part, forward) = door.crossed((0.5, 0.4), (0.5, 0.6)).expect("crosses");
        assert!(forward && (part - 0.5).abs() < 1e-5);
        assert!(!door.crossed((0.5, 0.6), (0.5, 0.4)).expect("crosses back").1);
        assert_eq!(door.crossed((0.7, 0.4), (0.7, 0.6)), None);
        assert_eq!(door.crossed((0.5, 0.1), (0.5, 0.4)), None);
        let one_way = Line { count: Count::Backward, ..door };
        assert!(!one_way.counts(true) && one_way.counts(false));
        // A vertical line from the top to the bottom: its right-hand side is on the left of the picture.
        let upright = line([0.5, 0.0], [0.5, 1.0]);
        assert!(upright.crossed((0.6, 0.5), (0.4, 0.5)).expect("crosses").1);
    }

    #[test]
    fn distance_from_a_line_is_in_extents_of_the_box() {
        // A diagonal line: the corner of a square that touches it from below is half an extent away.
        let diagonal = line([0.0, 0.0], [1.0, 1.0]);
        let below = Rect { x: 0.4, y: 0.6, w: 0.2, h: 0.2 };
        assert!((diagonal.beyond(&below, true) - 0.5).abs() < 1e-5);
        assert!((diagonal.beyond(&below, false) + 0.5).abs() < 1e-5);
        let level = line([0.2, 0.5], [0.4, 0.5]);
        assert!((level.beyond(&Rect { x: 0.0, y: 0.5, w: 0.3, h: 0.1 }, true) - 0.5).abs() < 1e-5);
    }

    #[test]
    fn a_region_is_a_polygon() {
        let region = vec![[0.0, 0.0], [0.5, 0.0], [0.5, 1.0], [0.0, 1.0]];
        let scope = Scope { region, ..Default::default() };
        let at = |x: f32| Rect { x, y: 0.4, w: 0.1, h: 0.1 };
        assert!(scope.contains(&at(0.2)) && !scope.contains(&at(0.7)));
        assert!(Scope::default().contains(&at(0.7)));
    }

    #[test]
    fn rules_are_named() {
        let named = |line: Line| Scope { lines: vec![line], ..Default::default() }.check();
        assert_eq!(named(line([0.1, 0.1], [0.9, 0.9])), Ok(()));
        for (bad, says) in [
            (line([0.1, 0.1], [1.9, 0.9]), "fractions"),
            (line([0.1, f32::NAN], [0.9, 0.9]), "fractions"),
            (line([0.1, 0.1], [0.1, 0.1]), "closer"),
            (Line { name: String::new(), ..line([0.1, 0.1], [0.9, 0.9]) }, "1 to 32"),
            (Line { forward: "up".to_owned(), ..line([0.1, 0.1], [0.9, 0.9]) }, "same name"),
        ] {
            assert!(named(bad).expect_err(says).to_string().contains(says));
        }
        let two = Scope { region: vec![[0.0, 0.0], [1.0, 1.0]], ..Default::default() };
        assert!(two.check().expect_err("two corners").to_string().contains("3 to"));
    }

    proptest! {
        // A path crosses a line in one direction, and the reverse path in the other, at the same place.
        #[test]
        fn the_way_back_is_the_other_direction(p in proptest::array::uniform8(0.0_f32..1.0)) {
            let line = line([p[0], p[1]], [p[2], p[3]]);
            prop_assume!((p[0] - p[2]).hypot(p[1] - p[3]) > 0.05);
            let (a, b) = ((p[4], p[5]), (p[6], p[7]));
            prop_assume!(line.side(a).abs() > 1e-3 && line.side(b).abs() > 1e-3);
            match (line.crossed(a, b), line.crossed(b, a)) {
                (Some((there, forward)), Some((back, again))) => {
                    prop_assert!(forward != again && (there + back - 1.0).abs() < 1e-2);
                }
                (None, None) => {}
                // Rounding may decide only if the crossing is at an end of the line.
                (one, other) => {
                    let part = one.or(other).expect("one of them").0;
                    prop_assert!(part.is_finite());
                }
            }
        }
    }
}
