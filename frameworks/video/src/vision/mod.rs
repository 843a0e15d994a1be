//! Seeing: what has changed against a still background, where, what it is, and what its plate says.
//!
//! Everything here is a function of pictures and times: no files, no clocks.

mod assign;
mod background;
mod blobs;
mod kinds;
mod plates;
mod resize;
mod signs;
mod softmax;
mod track;

pub use assign::assign;
pub use background::{Background, Detector, still_of};
pub use blobs::{Mask, blobs};
pub use kinds::KindReader;
pub use plates::read_plate;
pub use resize::shrink;
pub use signs::SignReader;
pub use softmax::{Classify, Softmax};
pub use track::{Direction, Step, Track, Tracker};

#[cfg(test)]
mod tests;
