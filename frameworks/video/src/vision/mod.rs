//! Computer vision: detects changes against a still background, boxes, kinds, and plates, and tracks objects.
//!
//! All functions depend on pictures and times only: no clocks, and no files but for [`Network::open`].

mod appearance;
mod assign;
mod background;
mod blobs;
mod crossings;
mod groups;
mod kinds;
mod mixture;
mod network;
mod plates;
mod resize;
mod signs;
mod softmax;
mod track;

pub use appearance::Appearance;
pub use assign::assign;
pub use background::{Background, Detector, still_of};
pub use blobs::{Mask, blobs};
pub use crossings::{Crossing, Crossings};
pub use kinds::KindReader;
pub use network::{Network, NetworkError, Object};
pub use plates::read_plate;
pub use resize::{enlarge, shrink};
pub use signs::SignReader;
pub use softmax::{Classify, Softmax};
pub use track::{Step, Track, Tracker};

#[cfg(test)]
mod tests;
