//! MP4 (ISO 14496-12): the index of one video track, and writing a file with one.
//!
//! Fragmented files have no index in one place and are left to ffmpeg.

mod boxes;
mod read;
mod write;

pub(super) use read::index;
pub(super) use write::{Sample, Track, write};
