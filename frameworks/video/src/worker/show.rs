//! Pictures for the live view: the working thread passes on the last picture, and the reporting thread draws and
//! encodes it. Viewers cost the query only copies of pictures, at the highest rate that a viewer requests.

use super::Shared;
use crate::abr::live::RUNGS;
use crate::frame::Frame;
use crate::output::{annotate, draw_scope, jpeg};
use crate::picture_stream::{RungSchedule, divisor};
use crate::pipeline::Scope;
use crate::vision::{Track, shrink};

/// Whether each rung has viewers.
pub(super) type ViewedRungs = [bool; RUNGS.len()];

/// The last picture that was examined.
#[derive(Debug)]
pub(super) struct ExaminedPicture {
    frame: Frame,
    tracks: Vec<Track>,
    seconds: f64,
}

/// A picture of a rung as a JPEG file.
#[derive(Debug)]
pub(super) struct RungPicture {
    pub(super) rung: usize,
    pub(super) seconds: f64,
    pub(super) jpeg: Vec<u8>,
}

/// Draws pictures for viewers when they are due.
#[derive(Debug, Default)]
pub(super) struct PictureSchedule {
    due: RungSchedule,
}

impl Shared {
    /// Passes a picture on if one is due for a viewer. It replaces one that was not drawn yet.
    pub(super) fn show(&self, frame: &Frame, tracks: &[Track], seconds: f64, now: f64) {
        let widest = {
            let state = self.lock();
            if now < state.show_after {
                return;
            }
            match (0..RUNGS.len()).rev().find(|rung| state.viewers[*rung]) {
                Some(rung) => RUNGS[rung],
                None => return,
            }
        };
        let smaller = shrink(frame, divisor(frame.width(), widest.width)).into_owned();
        let mut state = self.lock();
        // The fastest viewer decides the rate. The next picture is due slightly earlier, or every other one would come
        // too early.
        let most = (0..RUNGS.len()).filter(|rung| state.viewers[*rung]).map(|rung| RUNGS[rung].rate);
        state.show_after = now + 0.8 / most.fold(0.1, f64::max);
        state.seen = Some(ExaminedPicture { frame: smaller, tracks: tracks.to_vec(), seconds });
        drop(state);
        self.changed.notify_all();
    }
}

impl PictureSchedule {
    /// Draws the picture for each rung that has viewers and is due.
    pub(super) fn draw(
        &mut self,
        seen: &ExaminedPicture,
        viewed: &ViewedRungs,
        scope: &Scope,
        now: f64,
    ) -> Vec<RungPicture> {
        let mut shown = Vec::new();
        for rung in (0..RUNGS.len()).filter(|rung| viewed[*rung]) {
            if !self.due.take(rung, now) {
                continue;
            }
            let mut frame = shrink(&seen.frame, divisor(seen.frame.width(), RUNGS[rung].width)).into_owned();
            annotate(&mut frame, &seen.tracks, seen.seconds, |_| None, &format!("{:.1} s", seen.seconds));
            draw_scope(&mut frame, scope);
            if let Ok(jpeg) = jpeg(&frame, RUNGS[rung].quality) {
                shown.push(RungPicture { rung, seconds: seen.seconds, jpeg });
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Colour;

    #[test]
    fn pictures_come_at_the_rate_of_their_rung() {
        let seen =
            ExaminedPicture { frame: Frame::filled(640, 360, Colour::grey(90)), tracks: Vec::new(), seconds: 1.0 };
        let mut viewed = [false; RUNGS.len()];
        (viewed[0], viewed[2]) = (true, true);
        let (mut pictures, mut counts) = (PictureSchedule::default(), [0_u32; RUNGS.len()]);
        for n in 0..1000 {
            for shown in pictures.draw(&seen, &viewed, &Scope::default(), 100.0 + f64::from(n) / 100.0) {
                counts[shown.rung] += 1;
                assert_eq!(shown.jpeg[..2], [0xff, 0xd8]);
            }
        }
        let rates = [counts[0], counts[2]].map(|count| f64::from(count) / 10.0);
        assert!((rates[0] - RUNGS[0].rate).abs() < 0.3 && (rates[1] - RUNGS[2].rate).abs() < 0.5, "{rates:?}");
        assert_eq!(counts[1] + counts[3] + counts[4] + counts[5], 0);
    }
}
