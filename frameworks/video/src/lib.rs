//! Video queries: reading videos, finding and following what moves in them, and deciding what each query may cost.
//!
//! - [`media`] reads and writes video files, [`frame`] is a picture.
//! - [`scene`] makes traffic scenes whose truth is known.
#![forbid(unsafe_code)]

mod chance;
pub mod frame;
mod glyphs;
pub mod media;
pub mod pipeline;
pub mod profile;
pub mod scene;
pub mod schedule;
pub mod vision;
