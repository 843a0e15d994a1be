//! MP4 (ISO 14496-12): reads the index of one video track, and writes files with one track.
//!
//! Fragmented files have no single index and are left to ffmpeg.

mod boxes;
mod read;
mod write;

pub(super) use read::index;
pub(super) use write::{Sample, Track, write};
