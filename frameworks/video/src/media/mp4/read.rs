//! Reads the index of a file's first video track that this process can decode.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use super::super::FRAMES_MAX;
use super::super::indexed::{Coding, Fault, Index, Packet};
use super::boxes::Body;

/// Maximum size of the index in bytes: enough for [`FRAMES_MAX`] frames.
const MOOV_MAX: u64 = 128 << 20;

/// Returns the index of the frames of a file.
pub(in super::super) fn index(file: &mut File, length: u64) -> Result<Index, Fault> {
    let moov = find_moov(file, length)?;
    let moov = Body(&moov);
    let mut other = None;
    for (_, trak) in moov.boxes().filter(|(kind, _)| kind == b"trak") {
        if trak.descendant(&[b"mdia", b"hdlr"])?.0.get(8..12) != Some(b"vide") {
            continue;
        }
        match track(trak) {
            Err(Fault::Unsupported(what)) => other = Some(Fault::Unsupported(what)),
            done => return done,
        }
    }
    Err(other.unwrap_or_else(|| Fault::malformed("MP4 without a video track")))
}

/// Reads the box `moov`, wherever it is, without reading the pictures.
fn find_moov(file: &mut File, length: u64) -> Result<Vec<u8>, Fault> {
    let mut at = 0;
    while length.saturating_sub(at) >= 8 {
        file.seek(SeekFrom::Start(at))?;
        let mut head = [0; 16];
        let have = (length - at).min(16) as usize;
        file.read_exact(&mut head[..have])?;
        let (small, kind) = (Body(&head).u32(0)?, &head[4..8]);
        let (size, skip) = match small {
            0 => (length - at, 8),
            1 => (Body(&head).u64(8)?, 16),
            n => (u64::from(n), 8),
        };
        if size < skip {
            return Err(Fault::malformed("an MP4 box is shorter than its header"));
        }
        if kind == b"moov" {
            let size = size - skip;
            if size > MOOV_MAX {
                return Err(Fault::Malformed(format!("an MP4 index of {size} bytes: {MOOV_MAX} is the limit")));
            }
            if at + skip + size > length {
                return Err(Fault::malformed("the file is cut short: its MP4 index (moov) is not whole"));
            }
            let mut bytes = vec![0; size as usize];
            file.seek(SeekFrom::Start(at + skip))?;
            file.read_exact(&mut bytes)?;
            return Ok(bytes);
        }
        at = at.saturating_add(size);
    }
    Err(Fault::malformed("the file is cut short or was never finished: it has no MP4 index (moov)"))
}

fn track(trak: Body<'_>) -> Result<Index, Fault> {
    let mdhd = trak.descendant(&[b"mdia", b"mdhd"])?;
    let version = mdhd.u32(0)? >> 24;
    let scale = mdhd.u32(if version == 1 { 20 } else { 12 })?;
    let stbl = trak.descendant(&[b"mdia", b"minf", b"stbl"])?;
    let entry = stbl.child(b"stsd")?.from(8)?;
    let Some((kind, entry)) = entry.boxes().next() else {
        return Err(Fault::malformed("an MP4 track without a description"));
    };
    let (width, height) = (usize::from(entry.u16(24)?), usize::from(entry.u16(26)?));
    let coding = coding(kind, entry)?;
    let sizes = sizes(stbl.child(b"stsz")?)?;
    if sizes.is_empty() {
        return Err(Fault::Unsupported("fragmented MP4: only files with one index are read here".to_owned()));
    }
    let offsets = offsets(stbl, &sizes)?;
    let (shown, seconds) = times(stbl, sizes.len(), scale)?;
    let keys = keys(stbl, sizes.len())?;
    let packets = (0..sizes.len())
        .map(|i| Packet { offset: offsets[i], size: sizes[i], key: keys[i], shown: shown[i] })
        .collect();
    let fps = sizes.len() as f64 / seconds;
    Ok(Index { width, height, fps, coding, packets })
}

/// Returns the coding of the frames, from the sample description.
fn coding(kind: [u8; 4], entry: Body<'_>) -> Result<Coding, Fault> {
    match &kind {
        b"avc1" | b"avc3" => {
            let avcc = entry.from(78)?.child(b"avcC")?;
            let bytes = avcc.0;
            let mut parameters = Vec::new();
            let mut at = 5;
            for mask in [0x1f, 0xff] {
                let count = bytes.get(at).ok_or_else(|| Fault::malformed("avcC is too short"))? & mask;
                at += 1;
                for _ in 0..count {
                    let size = usize::from(avcc.u16(at)?);
                    let unit = bytes.get(at + 2..at + 2 + size);
                    parameters.push(unit.ok_or_else(|| Fault::malformed("avcC is too short"))?.to_vec());
                    at += 2 + size;
                }
            }
            Ok(Coding::H264 { length_bytes: usize::from(bytes[4] & 3) + 1, parameters })
        }
        b"jpeg" | b"mjpa" | b"mjpg" => Ok(Coding::Jpeg),
        // ffmpeg uses MPEG-4's entry, with the codec's number in a descriptor (0x6c is JPEG).
        b"mp4v" if entry.from(78)?.child(b"esds").is_ok_and(|e| e.0.windows(2).any(|w| w == [0x6c, 0x11])) => {
            Ok(Coding::Jpeg)
        }
        _ => {
            let kind = String::from_utf8_lossy(&kind).into_owned();
            Err(Fault::Unsupported(format!("MP4 with codec {kind:?}: H.264 and JPEG are read here")))
        }
    }
}

fn sizes(stsz: Body<'_>) -> Result<Vec<u32>, Fault> {
    let (all, count) = (stsz.u32(4)?, stsz.u32(8)? as usize);
    if count > FRAMES_MAX {
        return Err(Fault::Malformed(format!("more than {FRAMES_MAX} frames")));
    }
    if all > 0 {
        return Ok(vec![all; count]);
    }
    stsz.rows(8, 4)?.map(|row| row.u32(0)).collect()
}

/// Returns the offset of each sample, from the offsets of chunks and the numbers of samples in them.
fn offsets(stbl: Body<'_>, sizes: &[u32]) -> Result<Vec<u64>, Fault> {
    let chunks: Vec<u64> = match stbl.child(b"stco") {
        Ok(stco) => stco.rows(4, 4)?.map(|row| row.u32(0).map(u64::from)).collect::<Result<_, _>>()?,
        Err(_) => stbl.child(b"co64")?.rows(4, 8)?.map(|row| row.u64(0)).collect::<Result<_, _>>()?,
    };
    let runs: Vec<(u32, u32)> =
        stbl.child(b"stsc")?.rows(4, 12)?.map(|r| Ok((r.u32(0)?, r.u32(4)?))).collect::<Result<_, Fault>>()?;
    let mut run = 0;
    let mut offsets = Vec::with_capacity(sizes.len());
    for (number, chunk) in (1..).zip(chunks) {
        while runs.get(run + 1).is_some_and(|(first, _)| *first <= number) {
            run += 1;
        }
        let per_chunk = runs.get(run).map_or(0, |(_, samples)| *samples);
        let mut at = chunk;
        for _ in 0..per_chunk {
            let Some(size) = sizes.get(offsets.len()) else { break };
            offsets.push(at);
            at = at.saturating_add(u64::from(*size));
        }
    }
    if offsets.len() < sizes.len() {
        return Err(Fault::malformed("MP4 frames without a place (stsc, stco)"));
    }
    Ok(offsets)
}

/// Returns the presentation time of each sample in the track's unit, and the total length in seconds.
fn times(stbl: Body<'_>, count: usize, scale: u32) -> Result<(Vec<i64>, f64), Fault> {
    let mut shown = Vec::with_capacity(count);
    let mut at: i64 = 0;
    for row in stbl.child(b"stts")?.rows(4, 8)? {
        let (samples, length) = (row.u32(0)? as usize, row.u32(4)?);
        for _ in 0..samples.min(count - shown.len()) {
            shown.push(at);
            at += i64::from(length);
        }
    }
    if shown.len() < count || scale == 0 || at <= 0 {
        return Err(Fault::malformed("MP4 frames without times (stts, mdhd)"));
    }
    let seconds = at as f64 / f64::from(scale);
    if let Ok(ctts) = stbl.child(b"ctts") {
        let mut frame = 0;
        for row in ctts.rows(4, 8)? {
            // Version 0 is unsigned by the standard, but files with negative numbers are common.
            let (samples, offset) = (row.u32(0)? as usize, row.u32(4)? as i32);
            for _ in 0..samples.min(count - frame) {
                shown[frame] += i64::from(offset);
                frame += 1;
            }
        }
    }
    Ok((shown, seconds))
}

/// Returns for each sample whether it is a key frame; all are, if the file has no such table.
fn keys(stbl: Body<'_>, count: usize) -> Result<Vec<bool>, Fault> {
    let Ok(stss) = stbl.child(b"stss") else { return Ok(vec![true; count]) };
    let mut keys = vec![false; count];
    for row in stss.rows(4, 4)? {
        if let Some(key) = (row.u32(0)? as usize).checked_sub(1).and_then(|i| keys.get_mut(i)) {
            *key = true;
        }
    }
    Ok(keys)
}
