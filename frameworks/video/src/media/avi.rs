//! Reads AVI files with JPEG pictures, as cameras write them.
//!
//! It finds the pictures in the `movi` list, so a file without an index (cut short) is read up to its end. Other codecs
//! in AVI are left to ffmpeg.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::FRAMES_MAX;
use super::indexed::{Coding, Fault, Index, Packet};

/// Maximum depth of nested lists.
const DEPTH_MAX: usize = 8;

/// Returns the index of the pictures of a file.
pub(super) fn index(file: &mut File, length: u64) -> Result<Index, Fault> {
    let mut found = Found::default();
    walk(file, 12, length, 0, &mut found)?;
    let Some((kind, codec)) = found.video else { return Err(Fault::malformed("AVI without a video stream")) };
    if &codec.to_ascii_uppercase() != b"MJPG" {
        let codec = String::from_utf8_lossy(&codec).into_owned();
        return Err(Fault::Unsupported(format!("AVI with codec {codec:?}: MJPG is read here")));
    }
    let prefix = format!("{kind:02}d");
    let packets: Vec<Packet> = found
        .chunks
        .into_iter()
        .filter(|(id, _)| id.starts_with(prefix.as_bytes()))
        .map(|(_, packet)| packet)
        // A chunk without bytes repeats the frame before it; a picture cannot be empty.
        .filter(|packet| packet.size > 0)
        .zip(0..)
        .map(|(packet, shown)| Packet { shown, ..packet })
        .collect();
    let (width, height) = match found.size {
        Some(size) => size,
        None => super::mjpeg::first_size(file, &packets)?,
    };
    let fps = found.fps.unwrap_or(25.0);
    Ok(Index { width, height, fps, coding: Coding::Jpeg, packets })
}

#[derive(Default)]
struct Found {
    streams: usize,
    video: Option<(usize, [u8; 4])>,
    in_video: bool,
    size: Option<(usize, usize)>,
    fps: Option<f64>,
    chunks: Vec<([u8; 4], Packet)>,
}

fn walk(file: &mut File, from: u64, to: u64, depth: usize, found: &mut Found) -> Result<(), Fault> {
    if depth > DEPTH_MAX {
        return Err(Fault::malformed("AVI lists are nested too deep"));
    }
    let mut at = from;
    while at + 8 <= to && found.chunks.len() <= FRAMES_MAX {
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0; 8];
        file.read_exact(&mut head)?;
        let id = [head[0], head[1], head[2], head[3]];
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let body = at + 8;
        let end = body + u64::from(size);
        match &id {
            b"LIST" | b"RIFF" if size >= 4 => walk(file, body + 4, end.min(to), depth + 1, found)?,
            b"strh" => {
                let bytes = part(file, body, size, to)?;
                found.in_video = bytes.starts_with(b"vids") && found.video.is_none();
                if found.in_video && bytes.len() >= 28 {
                    found.video = Some((found.streams, [bytes[4], bytes[5], bytes[6], bytes[7]]));
                    let (scale, rate) = (number(&bytes, 20), number(&bytes, 24));
                    found.fps = (scale > 0 && rate > 0).then(|| f64::from(rate) / f64::from(scale));
                }
                found.streams += 1;
            }
            b"strf" if found.in_video => {
                let bytes = part(file, body, size, to)?;
                if bytes.len() >= 20 {
                    found.size = Some((number(&bytes, 4) as usize, number(&bytes, 8) as usize));
                    let codec = [bytes[16], bytes[17], bytes[18], bytes[19]];
                    found.video = found.video.map(|(stream, _)| (stream, codec));
                }
                found.in_video = false;
            }
            _ if id[0].is_ascii_digit() && id[1].is_ascii_digit() => {
                found.chunks.push((id, Packet { offset: body, size, key: true, shown: 0 }));
            }
            _ => {}
        }
        at = end + u64::from(size & 1);
    }
    Ok(())
}

fn part(file: &mut File, body: u64, size: u32, to: u64) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; u64::from(size).min(64).min(to.saturating_sub(body)) as usize];
    file.seek(SeekFrom::Start(body))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}
