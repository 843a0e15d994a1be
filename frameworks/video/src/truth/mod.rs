//! How good detection and tracking are against a truth of boxes: MOT files, and the measures of them. Pure but for
//! reading the file.

mod measure;
mod mot;

pub use measure::{Figures, Measure, Seen};
pub use mot::{Labelled, MotError, read as read_mot};
