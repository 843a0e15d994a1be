//! Learns the still background of a live source from its first seconds. Performs no I/O.

use crate::frame::Frame;
use crate::vision::still_of;

use super::run::STILL_FRAMES;

/// Least distance between two pictures, in seconds.
const APART: f64 = 0.25;
/// Time after which learning ends with the pictures that were collected, in seconds.
const LONGEST: f64 = 8.0;
/// Least number of pictures: the median of fewer would contain moving objects.
const FRAMES_MIN: usize = 3;

/// Collects pictures of a stream until they suffice for a background.
#[derive(Debug, Default)]
pub struct Learner {
    frames: Vec<Frame>,
    first: Option<f64>,
    last: Option<f64>,
}

impl Learner {
    /// Adds a picture of a stream, and returns the background when there are enough. A picture of another size than the
    /// first starts again.
    pub fn push(&mut self, seconds: f64, frame: &Frame) -> Option<Frame> {
        let size = |f: &Frame| (f.width(), f.height());
        if self.frames.first().is_some_and(|first| size(first) != size(frame)) {
            *self = Learner::default();
        }
        if self.last.is_some_and(|last| seconds - last < APART) {
            return None;
        }
        let first = *self.first.get_or_insert(seconds);
        self.last = Some(seconds);
        self.frames.push(frame.clone());
        let late = seconds - first >= LONGEST && self.frames.len() >= FRAMES_MIN;
        if self.frames.len() < STILL_FRAMES && !late {
            return None;
        }
        let still = still_of(&self.frames);
        *self = Learner::default();
        still
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Colour;

    #[test]
    fn what_moves_is_not_in_the_background_and_another_size_begins_anew() {
        let mut learner = Learner::default();
        assert_eq!(learner.push(0.0, &Frame::filled(8, 8, Colour::grey(9))), None);
        let mut still = None;
        for number in 0..60 {
            let mut frame = Frame::filled(16, 16, Colour::grey(90));
            frame.y[number * 4] = 255;
            still = still.or(learner.push(1.0 + number as f64 * 0.1, &frame));
        }
        assert_eq!(still, Some(Frame::filled(16, 16, Colour::grey(90))));
    }
}
