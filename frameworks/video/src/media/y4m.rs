//! Y4M (YUV4MPEG2): a line of parameters, then a line and the planes of each frame.
//!
//! Only 4:2:0 with 8 bits is supported, which is what programs write by default.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use super::indexed::{Coding, Fault, Index, Packet};
use super::{FRAMES_MAX, Info};

/// Maximum length of a line in bytes.
const LINE_MAX: u64 = 1024;

/// Parameters of the first line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Header {
    pub width: usize,
    pub height: usize,
    pub fps: f64,
}

impl Header {
    /// Returns the number of bytes of a frame's planes.
    pub(super) fn frame_bytes(&self) -> usize {
        self.width * self.height + 2 * self.width.div_ceil(2) * self.height.div_ceil(2)
    }

    pub(super) fn info(&self) -> Info {
        Info { width: self.width & !1, height: self.height & !1, fps: self.fps, frames: None }
    }
}

/// Reads a line of at most [`LINE_MAX`] bytes, without its end; `None` at the end of the file.
pub(super) fn line(reader: &mut impl BufRead) -> Result<Option<String>, Fault> {
    let mut bytes = Vec::new();
    std::io::Read::take(&mut *reader, LINE_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err(Fault::malformed("a Y4M line that does not end"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| Fault::malformed("a Y4M line that is not text"))
}

/// Parses the first line.
pub(super) fn header(text: &str) -> Result<Header, Fault> {
    let mut words = text.split(' ');
    if words.next() != Some("YUV4MPEG2") {
        return Err(Fault::malformed("Y4M starts with YUV4MPEG2"));
    }
    let mut header = Header { width: 0, height: 0, fps: 25.0 };
    for word in words.filter(|w| !w.is_empty()) {
        let (key, value) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        let number = || value.parse::<usize>().ok().filter(|n| *n <= crate::frame::SIDE_MAX);
        let bad = || Fault::Malformed(format!("Y4M parameter {word} cannot be read"));
        match key {
            "W" => header.width = number().ok_or_else(bad)?,
            "H" => header.height = number().ok_or_else(bad)?,
            "F" => header.fps = ratio(value).ok_or_else(bad)?,
            "C" if !value.starts_with("420") || value.starts_with("420p1") => {
                return Err(Fault::Unsupported(format!("Y4M with colours {value}: 420 with 8 bits is read here")));
            }
            _ => {}
        }
    }
    if header.width < 2 || header.height < 2 {
        return Err(Fault::malformed("Y4M without a width and a height of at least 2"));
    }
    Ok(header)
}

fn ratio(text: &str) -> Option<f64> {
    let (over, under) = text.split_once(':')?;
    let (over, under) = (over.parse::<f64>().ok()?, under.parse::<f64>().ok()?);
    (over > 0.0 && under > 0.0).then_some(over / under)
}

/// Returns the index of the frames of a file.
pub(super) fn index(file: &mut File, length: u64) -> Result<Index, Fault> {
    let mut reader = BufReader::new(file);
    let first = line(&mut reader)?.ok_or_else(|| Fault::malformed("the file is empty"))?;
    let header = header(&first)?;
    let bytes = header.frame_bytes() as u64;
    let size = u32::try_from(bytes).map_err(|_| Fault::malformed("a frame is too large"))?;
    let mut offset = first.len() as u64 + 1;
    let mut packets = Vec::new();
    // A truncated frame stays in the index, so that reading it fails.
    while offset < length && packets.len() <= FRAMES_MAX {
        let Some(mark) = line(&mut reader)? else { break };
        if !mark.starts_with("FRAME") {
            return Err(Fault::Malformed(format!("frame {} does not start with FRAME", packets.len())));
        }
        offset += mark.len() as u64 + 1;
        packets.push(Packet { offset, size, key: true, shown: packets.len() as i64 });
        offset += bytes;
        reader.seek_relative(bytes as i64)?;
    }
    reader.seek(SeekFrom::Start(0))?;
    Ok(Index { width: header.width, height: header.height, fps: header.fps, coding: Coding::Planes, packets })
}
