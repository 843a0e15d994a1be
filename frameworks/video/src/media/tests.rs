//! Tests of every format that this process reads: complete, cut short, and damaged.

use std::fs;
use std::path::PathBuf;

use super::*;
use crate::frame::Colour;

const W: usize = 64;
const H: usize = 48;

/// A directory that is removed when this is dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-video-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Directory(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns frame `n`, whose brightness encodes its number.
fn picture(n: u64) -> Frame {
    Frame::filled(W, H, Colour::grey(40 + 8 * n as u8))
}

pub(super) fn number(frame: &Frame) -> u64 {
    (f64::from(frame.y[W * H / 2]) / 8.0 - 5.0).round() as u64
}

pub(super) fn mp4(path: &Path, frames: u64) {
    let mut writer = Mp4Writer::new(W, H, 10.0, 0.5).expect("an encoder");
    (0..frames).for_each(|n| writer.push(&picture(n)).expect("encodes"));
    writer.finish(path).expect("writes");
}

fn y4m(path: &Path, frames: u64) {
    let mut writer = Y4mWriter::create(path, W, H, 10.0).expect("creates");
    (0..frames).for_each(|n| writer.push(&picture(n)).expect("writes"));
    writer.finish().expect("writes");
}

fn jpeg(n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = jpeg_encoder::Encoder::new(&mut bytes, 90);
    let luma = picture(n).y;
    encoder.encode(&luma, W as u16, H as u16, jpeg_encoder::ColorType::Luma).expect("encodes");
    bytes
}

fn mjpeg(path: &Path, frames: u64) {
    fs::write(path, (0..frames).flat_map(jpeg).collect::<Vec<u8>>()).expect("writes");
}

fn avi(path: &Path, frames: u64) {
    let chunk = |id: &[u8], body: &[u8]| -> Vec<u8> {
        let mut out = [id, &(body.len() as u32).to_le_bytes(), body].concat();
        out.extend(vec![0; body.len() % 2]);
        out
    };
    let mut strh = vec![0; 56];
    strh[..8].copy_from_slice(b"vidsMJPG");
    strh[20..28].copy_from_slice(&[1, 0, 0, 0, 10, 0, 0, 0]);
    let mut strf = vec![0; 40];
    strf[4..12].copy_from_slice(&[W as u8, 0, 0, 0, H as u8, 0, 0, 0]);
    strf[16..20].copy_from_slice(b"MJPG");
    let strl = chunk(b"LIST", &[b"strl".as_slice(), &chunk(b"strh", &strh), &chunk(b"strf", &strf)].concat());
    let hdrl = chunk(b"LIST", &[b"hdrl".as_slice(), &strl].concat());
    let pictures: Vec<u8> = (0..frames).flat_map(|n| chunk(b"00dc", &jpeg(n))).collect();
    let movi = chunk(b"LIST", &[b"movi".as_slice(), &pictures].concat());
    fs::write(path, chunk(b"RIFF", &[b"AVI ".as_slice(), &hdrl, &movi].concat())).expect("writes");
}

type Make = fn(&Path, u64);
const FORMATS: [(&str, Make); 4] = [("a.mp4", mp4), ("a.y4m", y4m), ("a.mjpeg", mjpeg), ("a.avi", avi)];

#[test]
fn every_format_gives_every_frame() {
    let directory = Directory::new("formats");
    for (name, make) in FORMATS {
        let path = directory.file(name);
        make(&path, 20);
        let mut video = Video::open(&path).expect(name);
        let info = video.info();
        assert_eq!((info.width, info.height, info.frames), (W, H, Some(20)), "{name}");
        assert!(name == "a.mjpeg" || (info.fps - 10.0).abs() < 0.01, "{name}: {}", info.fps);
        for n in 0..20 {
            let frame = video.frame(n).expect(name).expect("is there");
            assert_eq!(number(&frame), n, "{name}");
        }
        assert_eq!(video.frame(20).expect("no error"), None);
    }
}

#[test]
fn frames_are_found_forwards_and_backwards_and_only_what_is_needed_is_decoded() {
    let directory = Directory::new("seek");
    for (name, make) in FORMATS {
        let path = directory.file(name);
        make(&path, 20);
        let mut video = Video::open(&path).expect(name);
        for n in [3, 4, 12, 19, 0, 7, 7, 6] {
            assert_eq!(number(&video.frame(n).expect(name).expect("is there")), n, "{name}");
        }
    }
    let mut video = Video::open(&directory.file("a.mp4")).expect("opens");
    for n in [0, 5, 10, 15] {
        video.frame(n).expect("decodes");
    }
    assert_eq!(video.decoded(), 4, "a key frame every five frames, and nothing between them was asked for");
    assert_eq!(video.cheap_frames(4, 0, 20), [0, 5, 10, 15]);
}

#[test]
fn a_file_that_is_cut_short_says_how_far_it_went() {
    let directory = Directory::new("cut");
    for (name, make) in FORMATS {
        let path = directory.file(name);
        make(&path, 20);
        let bytes = fs::read(&path).expect("reads");
        fs::write(&path, &bytes[..bytes.len() - 30]).expect("writes");
        let mut video = Video::open(&path).expect(name);
        assert_eq!(number(&video.frame(18).expect(name).expect("is there")), 18);
        let error = video.frame(19).expect_err(name);
        assert!(matches!(error, MediaError::Truncated { frame: 19, .. }), "{name}: {error}");
        assert!(error.decoded() >= 1, "{name}: {error}");
    }
}

#[test]
fn an_index_that_is_cut_short_is_an_error_at_once() {
    let directory = Directory::new("moov");
    let path = directory.file("a.mp4");
    mp4(&path, 5);
    let bytes = fs::read(&path).expect("reads");
    fs::write(&path, &bytes[..60]).expect("writes");
    let error = Video::open(&path).expect_err("has no index").to_string();
    assert!(error.contains("cut short") && error.contains("moov"), "{error}");
    // A box that ends far past the end of the file.
    let huge = [&[0, 0, 0, 16][..], b"ftypisom\0\0\0\0\0\0\0\x01free", &[0xff; 8]].concat();
    fs::write(&path, huge).expect("written");
    let error = Video::open(&path).expect_err("no index").to_string();
    assert!(error.contains("it has no MP4 index"), "{error}");
}

#[test]
fn broken_frames_are_named() {
    let directory = Directory::new("broken");
    let path = directory.file("a.mjpeg");
    let mut pictures: Vec<Vec<u8>> = (0..3).map(jpeg).collect();
    let scan = pictures[1].windows(2).position(|w| w == [0xff, 0xc0]).expect("a frame header");
    pictures[1][scan + 9] = 77;
    fs::write(&path, pictures.concat()).expect("writes");
    let mut video = Video::open(&path).expect("opens");
    video.frame(0).expect("decodes");
    let error = video.frame(1).expect_err("is broken");
    assert!(matches!(error, MediaError::Undecodable { frame: 1, decoded: 1, .. }), "{error}");
    assert!(video.frame(2).expect("decodes").is_some());
}

#[test]
fn what_is_no_video_is_refused() {
    let directory = Directory::new("none");
    let path = directory.file("a.txt");
    fs::write(&path, "just some words, and enough of them").expect("writes");
    let error = Video::open(&path).expect_err("is not a video").to_string();
    assert!(error.contains("ffmpeg"), "{error}");
    fs::write(&path, "").expect("writes");
    assert!(Video::open(&path).expect_err("is empty").to_string().contains("empty"));
    assert!(matches!(Video::open(&directory.file("none")), Err(MediaError::Io { .. })));
}

/// Bytes changed at random lead to an error or pictures, never to a panic, and in bounded time.
#[test]
fn damaged_files_never_panic() {
    let directory = Directory::new("damage");
    let mut rng = crate::random::SplitMix64::new(7);
    for (name, make) in FORMATS {
        let path = directory.file(name);
        make(&path, 6);
        let good = fs::read(&path).expect("reads");
        for _ in 0..60 {
            let mut bytes = good.clone();
            for _ in 0..1 + rng.below(8) {
                // Most changes are in the headers, whose numbers matter most to a reader.
                let range = if rng.below(3) == 0 { bytes.len() } else { bytes.len().min(700) };
                let at = rng.below(range as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            fs::write(&path, &bytes).expect("writes");
            if let Ok(mut video) = Video::open(&path) {
                (0..6).for_each(|n| drop(video.frame(n)));
            }
        }
    }
}
