//! Reads files with consecutive JPEG pictures.
//!
//! The format has no rate; 25 frames a second are assumed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use super::FRAMES_MAX;
use super::indexed::{Coding, Fault, Index, Packet};

const FPS: f64 = 25.0;

/// Returns the index of a file's pictures, found by their start and end markers. Bytes in a picture's data never look
/// like a marker: JPEG puts a zero after each 0xff. A small picture inside another (a preview) is skipped with its
/// segment.
pub(super) fn index(file: &mut File) -> Result<Index, Fault> {
    let mut reader = Scanner { reader: BufReader::with_capacity(1 << 16, &mut *file), at: 0 };
    let mut packets: Vec<Packet> = Vec::new();
    while packets.len() <= FRAMES_MAX {
        let Some(start) = reader.find_start()? else { break };
        let whole = reader.pass_picture()?;
        // A truncated frame stays in the index with a size past the end, so that reading it fails.
        let size = u32::try_from(reader.at - start).unwrap_or(u32::MAX).saturating_add(u32::from(!whole));
        packets.push(Packet { offset: start, size, key: true, shown: packets.len() as i64 });
        if !whole {
            break;
        }
    }
    let (width, height) = first_size(file, &packets)?;
    Ok(Index { width, height, fps: FPS, coding: Coding::Jpeg, packets })
}

/// Returns the size of the first picture from its header; it is assumed for all pictures.
pub(super) fn first_size(file: &mut File, packets: &[Packet]) -> Result<(usize, usize), Fault> {
    let Some(first) = packets.first() else { return Err(Fault::malformed("the video has no frames")) };
    file.seek(SeekFrom::Start(first.offset))?;
    let mut bytes = Vec::new();
    file.take(u64::from(first.size.min(1 << 20))).read_to_end(&mut bytes)?;
    let mut at = 2;
    while let Some([0xff, kind, high, low]) = bytes.get(at..at + 4) {
        let length = usize::from(*high) << 8 | usize::from(*low);
        let is_frame = matches!(kind, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf);
        if is_frame && let Some([h1, h0, w1, w0]) = bytes.get(at + 5..at + 9) {
            let side = |a: &u8, b: &u8| usize::from(*a) << 8 | usize::from(*b);
            return Ok((side(w1, w0), side(h1, h0)));
        }
        at += 2 + length.max(2);
    }
    Err(Fault::malformed("the first picture has no size"))
}

struct Scanner<'a> {
    reader: BufReader<&'a mut File>,
    at: u64,
}

impl Scanner<'_> {
    fn byte(&mut self) -> Result<Option<u8>, Fault> {
        let byte = self.reader.fill_buf()?.first().copied();
        if byte.is_some() {
            self.reader.consume(1);
            self.at += 1;
        }
        Ok(byte)
    }

    /// Moves past the next 0xff, and returns the byte after it.
    fn mark(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.byte()? {
                Some(0xff) => {}
                Some(_) => continue,
                None => return Ok(None),
            }
            loop {
                match self.byte()? {
                    Some(0xff) => {}
                    other => return Ok(other),
                }
            }
        }
    }

    /// Skips to the next start marker, and returns its position.
    fn find_start(&mut self) -> Result<Option<u64>, Fault> {
        while let Some(mark) = self.mark()? {
            if mark == 0xd8 {
                return Ok(Some(self.at - 2));
            }
        }
        Ok(None)
    }

    /// Moves past the end marker. Returns whether there is one.
    fn pass_picture(&mut self) -> Result<bool, Fault> {
        while let Some(mark) = self.mark()? {
            match mark {
                0xd9 => return Ok(true),
                0x00 | 0x01 | 0xd0..=0xd8 => {}
                _ => {
                    let (Some(high), Some(low)) = (self.byte()?, self.byte()?) else { return Ok(false) };
                    let skip = (u64::from(high) << 8 | u64::from(low)).saturating_sub(2);
                    self.reader.seek_relative(skip as i64)?;
                    self.at += skip;
                }
            }
        }
        Ok(false)
    }
}
