//! Counts how often one object crosses lines. A crossing counts once a quarter of the object's extent has passed the
//! line, so that an object that stands on a line, whose box changes from picture to picture, does not count.

use crate::frame::Rect;
use crate::scope::Line;

/// Least distance of an object's centre beyond a line, in extents of its box across the line, with which a crossing
/// counts.
const CLEAR: f32 = 0.25;
/// Maximum number of counted crossings of an object.
const CROSSINGS_MAX: usize = 100;

/// A crossing of a line by an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Index of the line.
    pub line: usize,
    /// Time at which the centre of the object was on the line, in seconds of the stream.
    pub at: f64,
    /// Whether the crossing was in the forward direction.
    pub forward: bool,
}

/// The crossings of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossings {
    counted: Vec<Crossing>,
    /// Crossings after which the object is not yet far enough from the line, at most one of each line.
    pending: Vec<Crossing>,
}

impl Crossings {
    /// Returns the crossings that count, in the order in which they were counted.
    pub fn counted(&self) -> &[Crossing] {
        &self.counted
    }

    /// Adds a movement of the object between two boxes, each with its time in seconds of the stream.
    pub fn add(&mut self, lines: &[Line], (since, before): (f64, &Rect), (seconds, now): (f64, &Rect)) {
        for (number, line) in lines.iter().enumerate() {
            if let Some((part, forward)) = line.crossed(before.centre(), now.centre()) {
                let at = since + f64::from(part) * (seconds - since);
                let returned = self.pending.iter().any(|p| p.line == number && p.forward != forward);
                self.pending.retain(|p| p.line != number);
                if !returned {
                    self.pending.push(Crossing { line: number, at, forward });
                }
            }
        }
        let clear = |c: &mut Crossing| lines.get(c.line).is_some_and(|line| line.beyond(now, c.forward) >= CLEAR);
        let clear: Vec<Crossing> = self.pending.extract_if(.., clear).collect();
        self.count(lines, clear);
    }

    /// Counts the pending crossings, since the object has left the picture or the stream has ended.
    pub fn finish(&mut self, lines: &[Line]) {
        let pending = std::mem::take(&mut self.pending);
        self.count(lines, pending);
    }

    fn count(&mut self, lines: &[Line], crossings: Vec<Crossing>) {
        let free = CROSSINGS_MAX.saturating_sub(self.counted.len());
        let counts = |c: &Crossing| lines.get(c.line).is_some_and(|line| line.counts(c.forward));
        self.counted.extend(crossings.into_iter().filter(counts).take(free));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scope::Count;

    /// Returns the crossings of a box of height 0.2 whose centre has these distances below the line, a second apart.
    fn crossings(line: &Line, path: &[f32]) -> Crossings {
        let boxes = path.iter().map(|y| Rect { x: 0.4, y: 0.4 + y, w: 0.1, h: 0.2 });
        let timed: Vec<(f64, Rect)> = (0_u32..).map(f64::from).zip(boxes).collect();
        let mut crossings = Crossings::default();
        for pair in timed.windows(2) {
            let ((since, before), (seconds, now)) = (&pair[0], &pair[1]);
            crossings.add(std::slice::from_ref(line), (*since, before), (*seconds, now));
        }
        crossings
    }

    fn directions(crossings: &Crossings) -> Vec<bool> {
        crossings.counted().iter().map(|c| c.forward).collect()
    }

    #[test]
    fn an_object_that_stands_on_the_line_does_not_count() {
        let middle = Line::middle();
        assert!(directions(&crossings(&middle, &[-0.02, 0.02, -0.03, 0.04, -0.04, -0.2])).is_empty());
        let late = crossings(&middle, &[-0.1, 0.02, 0.04, 0.06, 0.1]);
        assert_eq!(directions(&late), [true]);
        assert!((late.counted()[0].at - 5.0 / 6.0).abs() < 1e-3, "the time on the line");
    }

    #[test]
    fn an_object_that_returns_counts_again() {
        let path = [-0.1, 0.1, -0.1, 0.1];
        assert_eq!(directions(&crossings(&Line::middle(), &path)), [true, false, true]);
        let one_way = Line { count: Count::Forward, ..Line::middle() };
        assert_eq!(directions(&crossings(&one_way, &path)), [true, true]);
    }

    #[test]
    fn pending_crossings_count_at_the_end() {
        let middle = Line::middle();
        let mut pending = crossings(&middle, &[-0.1, 0.01]);
        assert!(directions(&pending).is_empty());
        pending.finish(std::slice::from_ref(&middle));
        pending.finish(std::slice::from_ref(&middle));
        assert_eq!(directions(&pending), [true]);
    }

    proptest! {
        // On any path along a line that has no ends, directions alternate, times increase, and the number of crossings
        // is odd exactly if the path ends on the other side, once the last one is counted.
        #[test]
        fn directions_alternate(path in proptest::collection::vec(-0.3_f32..0.3, 2..60)) {
            let middle = Line::middle();
            let mut crossings = crossings(&middle, &path);
            crossings.finish(std::slice::from_ref(&middle));
            let counted = crossings.counted();
            prop_assert!(counted.windows(2).all(|w| w[0].forward != w[1].forward && w[0].at <= w[1].at));
            let (first, last) = (path[0] >= 0.0, path[path.len() - 1] >= 0.0);
            prop_assert_eq!(counted.len() % 2 == 1, first != last);
            prop_assert!(counted.first().is_none_or(|c| c.forward != first));
        }
    }
}
