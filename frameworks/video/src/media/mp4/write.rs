//! Writes a file with one H.264 track, the index first, so that a reader can start before it has the rest.

use std::io::{self, Write};

/// One coded frame.
#[derive(Debug)]
pub(in super::super) struct Sample {
    /// NAL units with length prefixes of 4 bytes.
    pub bytes: Vec<u8>,
    /// Whether the frame can be decoded without others.
    pub key: bool,
}

/// The track to write.
#[derive(Debug)]
pub(in super::super) struct Track {
    pub width: u16,
    pub height: u16,
    /// Frame rate in thousandths of a frame a second.
    pub millifps: u32,
    /// Sequence parameter set.
    pub sps: Vec<u8>,
    /// Picture parameter set.
    pub pps: Vec<u8>,
    pub samples: Vec<Sample>,
}

/// Duration of a frame in ticks; the frame rate in thousandths is then the number of ticks in a second.
const TICKS: u32 = 1000;

/// Writes the file.
///
/// # Errors
/// Returns an error if the file cannot be written, or would be larger than the 4 GB that its index can address.
pub(in super::super) fn write(track: &Track, out: &mut impl Write) -> io::Result<()> {
    let ftyp = atom(b"ftyp", &[b"isom", &0x200_u32.to_be_bytes(), b"isomiso2avc1mp41"]);
    // The index has file offsets that depend on its own length, which does not depend on the offsets.
    let head = ftyp.len() + moov(track, 0).len() + 8;
    let total: usize = track.samples.iter().map(|s| s.bytes.len()).sum();
    let size = u32::try_from(head + total).map_err(|_| io::Error::other("more than 4 GB of video"))?;
    let moov = moov(track, head as u32);
    out.write_all(&ftyp)?;
    out.write_all(&moov)?;
    out.write_all(&(size - head as u32 + 8).to_be_bytes())?;
    out.write_all(b"mdat")?;
    for sample in &track.samples {
        out.write_all(&sample.bytes)?;
    }
    Ok(())
}

fn atom(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let size = 8 + parts.iter().map(|p| p.len()).sum::<usize>();
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(&(size as u32).to_be_bytes());
    out.extend_from_slice(kind);
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Returns the numbers as consecutive 4-byte words.
fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_be_bytes()).collect()
}

const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

fn moov(track: &Track, first: u32) -> Vec<u8> {
    let frames = track.samples.len() as u32;
    let ticks = frames.saturating_mul(TICKS);
    let millis = (u64::from(ticks) * 1000 / u64::from(track.millifps.max(1))) as u32;
    let (w, h) = (u32::from(track.width), u32::from(track.height));

    let mut mvhd = vec![0, 0, 0, 1000, millis, 0x1_0000, 0x100_0000, 0, 0];
    mvhd.extend(MATRIX);
    mvhd.extend([0, 0, 0, 0, 0, 0, 2]);
    let mut tkhd = vec![3, 0, 0, 1, 0, millis, 0, 0, 0, 0];
    tkhd.extend(MATRIX);
    tkhd.extend([w << 16, h << 16]);
    let mdhd = atom(b"mdhd", &[&words(&[0, 0, 0, track.millifps, ticks, 0x55c4_0000])]);
    let hdlr = atom(b"hdlr", &[&words(&[0, 0]), b"vide", &words(&[0, 0, 0]), b"video\0"]);
    let url = atom(b"url ", &[&words(&[1])]);
    let dinf = atom(b"dinf", &[&atom(b"dref", &[&words(&[0, 1]), &url])]);
    let vmhd = atom(b"vmhd", &[&words(&[1, 0, 0])]);
    let minf = atom(b"minf", &[&vmhd, &dinf, &stbl(track, first)]);
    let mdia = atom(b"mdia", &[&mdhd, &hdlr, &minf]);
    let trak = atom(b"trak", &[&atom(b"tkhd", &[&words(&tkhd)]), &mdia]);
    atom(b"moov", &[&atom(b"mvhd", &[&words(&mvhd)]), &trak])
}

fn stbl(track: &Track, first: u32) -> Vec<u8> {
    let frames = track.samples.len() as u32;
    let mut stss = vec![0, 0];
    stss.extend((1..).zip(&track.samples).filter(|(_, s)| s.key).map(|(number, _)| number));
    stss[1] = stss.len() as u32 - 2;
    let mut stsz = vec![0, 0, frames];
    stsz.extend(track.samples.iter().map(|s| s.bytes.len() as u32));
    let stsd = atom(b"stsd", &[&words(&[0, 1]), &avc1(track)]);
    let stts = atom(b"stts", &[&words(&[0, 1, frames, TICKS])]);
    // All frames are one chunk.
    let stsc = atom(b"stsc", &[&words(&[0, 1, 1, frames, 1])]);
    let stco = atom(b"stco", &[&words(&[0, 1, first])]);
    let (stss, stsz) = (atom(b"stss", &[&words(&stss)]), atom(b"stsz", &[&words(&stsz)]));
    atom(b"stbl", &[&stsd, &stts, &stss, &stsc, &stsz, &stco])
}

fn avc1(track: &Track) -> Vec<u8> {
    let (sps, pps) = (&track.sps, &track.pps);
    // Version, profile, its constraints and level (as in the parameter set), length prefixes of 4 bytes, one set of
    // each kind.
    let mut avcc = vec![1, 0, 0, 0, 0xff, 0xe1];
    if let Some(profile) = sps.get(1..4) {
        avcc[1..4].copy_from_slice(profile);
    }
    avcc.extend_from_slice(&(sps.len() as u16).to_be_bytes());
    avcc.extend_from_slice(sps);
    avcc.push(1);
    avcc.extend_from_slice(&(pps.len() as u16).to_be_bytes());
    avcc.extend_from_slice(pps);
    let size = words(&[u32::from(track.width) << 16 | u32::from(track.height), 0x48_0000, 0x48_0000, 0]);
    let tail = [0, 1].iter().copied().chain([0; 32]).chain([0, 0x18, 0xff, 0xff]).collect::<Vec<u8>>();
    let reserved = [0, 0, 0, 0, 0, 0, 0, 1].iter().copied().chain([0; 16]).collect::<Vec<u8>>();
    atom(b"avc1", &[&reserved, &size, &tail, &atom(b"avcC", &[&avcc])])
}
