//! Reads a video by an index: the position of each frame's bytes, and the frames that each one depends on.
//!
//! The formats only make the index; the codecs only turn bytes into pictures.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::codec::Decoder;
use super::{FRAMES_MAX, Info, MediaError, avi, mjpeg, mp4, y4m};
use crate::frame::{Frame, SIDE_MAX};

/// Maximum size of a stored frame, in bytes.
const PACKET_MAX: u32 = 64 << 20;

/// Position and properties of one frame's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Size of the frame in bytes.
    pub size: u32,
    /// Whether the frame can be decoded without others.
    pub key: bool,
    /// Presentation time in any unit; only the order matters.
    pub shown: i64,
}

/// Coding of the bytes of frames.
#[derive(Clone, Debug)]
pub(super) enum Coding {
    /// H.264 with length prefixes of this many bytes; sequence and picture parameter sets.
    H264 { length_bytes: usize, parameters: Vec<Vec<u8>> },
    /// One JPEG picture for each frame.
    Jpeg,
    /// Uncoded planes, one after the other.
    Planes,
}

/// Size, rate, coding and packets of a video.
#[derive(Debug)]
pub(super) struct Index {
    pub width: usize,
    pub height: usize,
    pub fps: f64,
    pub coding: Coding,
    /// Packets in decoding order.
    pub packets: Vec<Packet>,
}

/// A video file, its index, and a decoder with its position in the file.
#[derive(Debug)]
pub(super) struct Indexed {
    path: PathBuf,
    file: File,
    length: u64,
    index: Index,
    /// Display number of each packet's frame; `None` if packets are in display order.
    order: Option<Vec<u64>>,
    decoder: Decoder,
    /// Index of the next packet for the decoder.
    next_packet: usize,
    /// Number of the frame that the decoder returns next.
    next_frame: u64,
    /// Numbers of frames that were not decoded, since no requested frame needs them.
    skipped: std::collections::BTreeSet<u64>,
    /// Whether all packets were decoded and the delayed pictures were requested.
    drained: bool,
    /// Whether a packet could not be decoded: only a key frame restores the decoder.
    lost: bool,
    ready: std::collections::VecDeque<Frame>,
    decoded: u64,
    buffer: Vec<u8>,
}

/// Opens a file of a format that this process reads.
///
/// # Errors
/// Returns `Unsupported` for another format, otherwise the rule of the format that the file breaks.
pub(super) fn open(path: &Path) -> Result<Indexed, MediaError> {
    let io = |source| MediaError::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut head = Vec::with_capacity(16);
    file.by_ref().take(16).read_to_end(&mut head).map_err(io)?;
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let index = match head.as_slice() {
        [] => Err(Fault::malformed("the file is empty")),
        [b'Y', b'U', b'V', b'4', b'M', b'P', b'E', b'G', b'2', ..] => y4m::index(&mut file, length),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' ', ..] => avi::index(&mut file, length),
        [0xff, 0xd8, 0xff, ..] => mjpeg::index(&mut file),
        [_, _, _, _, b'f', b't', b'y', b'p' | b'q', ..] | [_, _, _, _, b'm', b'o', b'o', b'v', ..] => {
            mp4::index(&mut file, length)
        }
        _ => Err(Fault::Unsupported("the format is none of MP4, AVI, JPEG and Y4M".into())),
    };
    let index = index.and_then(checked).map_err(|fault| fault.of(path))?;
    let order = display_order(&index.packets);
    let decoder =
        Decoder::new(&index, order.is_some()).map_err(|error| Fault::Malformed(error.to_string()).of(path))?;
    Ok(Indexed {
        path: path.to_owned(),
        file,
        length,
        order,
        decoder,
        index,
        next_packet: 0,
        next_frame: 0,
        skipped: std::collections::BTreeSet::new(),
        drained: false,
        lost: false,
        ready: std::collections::VecDeque::new(),
        decoded: 0,
        buffer: Vec::new(),
    })
}

/// An error in a file, without its name.
#[derive(Debug)]
pub(super) enum Fault {
    Io(std::io::Error),
    Unsupported(String),
    Malformed(String),
}

impl Fault {
    pub(super) fn malformed(what: &str) -> Fault {
        Fault::Malformed(what.to_owned())
    }

    fn of(self, path: &Path) -> MediaError {
        let path = path.to_owned();
        match self {
            Fault::Io(source) => MediaError::Io { path, source },
            Fault::Unsupported(what) => MediaError::Unsupported { path, what },
            Fault::Malformed(what) => MediaError::Malformed { path, what },
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::Io(error)
    }
}

fn checked(index: Index) -> Result<Index, Fault> {
    if index.packets.is_empty() {
        return Err(Fault::malformed("the video has no frames"));
    }
    if index.packets.len() > FRAMES_MAX {
        return Err(Fault::Malformed(format!("more than {FRAMES_MAX} frames")));
    }
    if index.width < 2 || index.height < 2 || index.width > SIDE_MAX || index.height > SIDE_MAX {
        return Err(Fault::Malformed(format!("{}x{} pixels: sides are 2 to {SIDE_MAX}", index.width, index.height)));
    }
    if !(index.fps > 0.0 && index.fps <= 1000.0) {
        return Err(Fault::Malformed(format!("{} frames a second: above 0 and at most 1000", index.fps)));
    }
    Ok(index)
}

/// Returns the display numbers of packets; `None` if they are stored in display order.
fn display_order(packets: &[Packet]) -> Option<Vec<u64>> {
    if packets.is_sorted_by_key(|p| p.shown) {
        return None;
    }
    let mut by_time: Vec<usize> = (0..packets.len()).collect();
    by_time.sort_by_key(|i| packets[*i].shown);
    let mut order = vec![0; packets.len()];
    for (number, packet) in (0..).zip(by_time) {
        order[packet] = number;
    }
    Some(order)
}

impl Indexed {
    pub(super) fn info(&self) -> Info {
        let Index { width, height, fps, packets, .. } = &self.index;
        Info { width: *width & !1, height: *height & !1, fps: *fps, frames: Some(packets.len() as u64) }
    }

    pub(super) fn decoded(&self) -> u64 {
        self.decoded
    }

    /// Returns the numbers of the key frames below `end`, in rising order.
    pub(super) fn key_frames(&self, end: u64) -> Vec<u64> {
        let keys = (0..self.index.packets.len()).filter(|i| self.index.packets[*i].key).map(|i| self.shown(i));
        let mut keys: Vec<u64> = keys.filter(|n| *n < end).collect();
        // A file may show key frames in another order than it stores them.
        keys.sort_unstable();
        keys
    }

    fn shown(&self, packet: usize) -> u64 {
        self.order.as_ref().map_or(packet as u64, |order| order[packet])
    }

    pub(super) fn frame(&mut self, number: u64) -> Result<Option<Frame>, MediaError> {
        if number >= self.index.packets.len() as u64 {
            return Ok(None);
        }
        self.approach(number)?;
        loop {
            while let Some(frame) = self.ready.pop_front() {
                while self.skipped.remove(&self.next_frame) {
                    self.next_frame += 1;
                }
                self.next_frame += 1;
                if self.next_frame > number {
                    return Ok(Some(frame));
                }
            }
            if self.drained {
                return Err(self.undecodable(number, "the decoder gave no picture for it"));
            }
            self.feed(number)?;
        }
    }

    /// Restarts at the last key frame before `number`, if the decoder is before that key frame or past the frame.
    fn approach(&mut self, number: u64) -> Result<(), MediaError> {
        let key = self.key_before(number);
        let past = self.next_frame > number;
        if !past && !self.lost && (self.shown(key) < self.next_frame || key <= self.next_packet) {
            return Ok(());
        }
        self.decoder.restart().map_err(|error| self.undecodable(number, &error.to_string()))?;
        self.ready.clear();
        self.skipped.clear();
        self.drained = false;
        self.lost = false;
        self.next_packet = key;
        self.next_frame = self.shown(key);
        Ok(())
    }

    fn key_before(&self, number: u64) -> usize {
        let packets = &self.index.packets;
        if self.order.is_none() {
            let at = usize::try_from(number).unwrap_or(usize::MAX).min(packets.len() - 1);
            return (0..=at).rev().find(|i| packets[*i].key).unwrap_or(0);
        }
        let keys = (0..packets.len()).filter(|i| packets[*i].key && self.shown(*i) <= number);
        keys.max_by_key(|i| self.shown(*i)).unwrap_or(0)
    }

    fn feed(&mut self, number: u64) -> Result<(), MediaError> {
        let Some(packet) = self.index.packets.get(self.next_packet).copied() else {
            self.drained = true;
            let rest = self.decoder.finish().map_err(|error| self.undecodable(number, &error.to_string()))?;
            self.decoded += rest.len() as u64;
            self.ready.extend(rest);
            return Ok(());
        };
        self.load(packet)?;
        let shown = self.shown(self.next_packet);
        self.next_packet += 1;
        if shown < number && !packet.key && self.is_unreferenced() {
            self.skipped.insert(shown);
            return Ok(());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let frames = self.decoder.decode(&buffer);
        self.buffer = buffer;
        let frames = match frames {
            Ok(frames) => frames,
            Err(error) => {
                self.lost = true;
                return Err(self.undecodable(self.shown(self.next_packet - 1), &error.to_string()));
            }
        };
        self.decoded += frames.len() as u64;
        self.ready.extend(frames);
        Ok(())
    }

    /// Returns whether no other picture is decoded from the loaded packet: all of its slices have the `nal_ref_idc` 0
    /// (ITU-T H.264, 7.4.1).
    fn is_unreferenced(&self) -> bool {
        let Coding::H264 { length_bytes, .. } = self.index.coding else { return false };
        let (mut rest, mut slices) = (self.buffer.as_slice(), 0);
        while !rest.is_empty() {
            let Some((length, after)) = rest.split_at_checked(length_bytes) else { return false };
            let length = length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
            let Some((unit, after)) = after.split_at_checked(length) else { return false };
            rest = after;
            match unit.first().map(|byte| (byte & 0x1f, byte >> 5 & 3)) {
                Some((1, 0)) => slices += 1,
                Some((1..=5, _)) => return false,
                _ => {}
            }
        }
        slices > 0
    }

    fn load(&mut self, packet: Packet) -> Result<(), MediaError> {
        if packet.offset.saturating_add(u64::from(packet.size)) > self.length {
            return Err(MediaError::Truncated {
                path: self.path.clone(),
                frame: self.shown(self.next_packet),
                frames: self.index.packets.len() as u64,
                decoded: self.decoded,
            });
        }
        if packet.size > PACKET_MAX {
            let what = format!("{} bytes, and {PACKET_MAX} is the limit", packet.size);
            return Err(self.undecodable(self.shown(self.next_packet), &what));
        }
        self.buffer.resize(packet.size as usize, 0);
        let read = self.file.seek(SeekFrom::Start(packet.offset)).and_then(|_| self.file.read_exact(&mut self.buffer));
        read.map_err(|source| MediaError::Io { path: self.path.clone(), source })
    }

    fn undecodable(&self, frame: u64, what: &str) -> MediaError {
        MediaError::Undecodable { path: self.path.clone(), frame, decoded: self.decoded, what: what.to_owned() }
    }
}
