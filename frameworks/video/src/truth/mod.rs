//! Quality of detection and tracking against a ground truth of boxes: MOT files, and the measures. Performs no I/O but
//! for reading the file.

mod measure;
mod mot;

pub use measure::{DetectedBox, DetectionCounts, Measure};
pub use mot::{LabelledBox, MotError, read as read_mot};
