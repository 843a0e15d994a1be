//! The stream of JPEG pictures that live views and camera uplinks send: an HTTP response of the type
//! `multipart/x-mixed-replace`, which browsers and `ffmpeg` can show, too. Chooses no pictures.

mod link;
mod reader;
mod schedule;
mod views;

use crate::abr::live::RUNGS;
use crate::frame::SIDE_MAX;

pub(crate) use link::Link;
pub(crate) use reader::{PictureReader, StreamError};
pub(crate) use schedule::{RungSchedule, divisor};
pub(crate) use views::{Picture, Views};

/// Boundary between two pictures.
const BOUNDARY: &str = "tepui-picture";
/// Content type of the response.
pub(crate) const CONTENT_TYPE: &str = "multipart/x-mixed-replace; boundary=tepui-picture";
/// Maximum number of bytes of a picture.
const PICTURE_MAX: usize = 16 << 20;

/// Header of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PictureHeader {
    /// Number of bytes of the JPEG file.
    pub(crate) bytes: usize,
    /// Time of the picture in seconds, on a clock of the sender.
    pub(crate) seconds: f64,
    /// Rung of the picture, which is one of [`RUNGS`].
    pub(crate) rung: usize,
    /// Number of pictures that were skipped for this reader so far.
    pub(crate) left_out: u64,
    /// Width and height of the source in pixels; `None` if the sender does not state it.
    pub(crate) source_size: Option<(usize, usize)>,
}

impl PictureHeader {
    /// Returns the part of a picture with this header: boundary, header, JPEG file, line end.
    pub(crate) fn part(&self, jpeg: &[u8]) -> Vec<u8> {
        let size = self.source_size.map_or_else(String::new, |(w, h)| format!("X-Tepui-Source-Size: {w}x{h}\r\n"));
        let header = format!(
            "--{BOUNDARY}\r\nContent-Type: image/jpeg\r\nContent-Length: {}\r\nX-Tepui-Seconds: {:.3}\r\nX-Tepui-Rung: \
             {}\r\nX-Tepui-Left-Out: {}\r\n{size}\r\n",
            self.bytes, self.seconds, self.rung, self.left_out
        );
        [header.as_bytes(), jpeg, b"\r\n"].concat()
    }

    /// Parses the lines between a boundary and a picture. Returns the rule that they break if they are invalid.
    fn parse(head: &str) -> Result<PictureHeader, &'static str> {
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
        };
        fn number<T: std::str::FromStr>(text: Option<&str>) -> Option<T> {
            text.and_then(|text| text.parse().ok())
        }
        let (Some(bytes), Some(seconds), Some(rung)) = (
            number(value("Content-Length")).filter(|bytes| (2..=PICTURE_MAX).contains(bytes)),
            number(value("X-Tepui-Seconds")).filter(|seconds: &f64| seconds.is_finite()),
            number(value("X-Tepui-Rung")).filter(|rung| *rung < RUNGS.len()),
        ) else {
            return Err("a picture must have its length, seconds and rung");
        };
        let source_size = match value("X-Tepui-Source-Size") {
            None => None,
            Some(text) => Some(size(text).ok_or("the size of a source must be two sides of 2 to 4096 pixels")?),
        };
        let left_out = number(value("X-Tepui-Left-Out")).unwrap_or(0);
        Ok(PictureHeader { bytes, seconds, rung, left_out, source_size })
    }
}

/// Parses a size such as `640x360`.
fn size(text: &str) -> Option<(usize, usize)> {
    let (width, height) = text.split_once('x')?;
    let size = (width.parse().ok()?, height.parse().ok()?);
    ((2..=SIDE_MAX).contains(&size.0) && (2..=SIDE_MAX).contains(&size.1)).then_some(size)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // A header is read as it was written, with the seconds rounded to thousandths.
        #[test]
        fn headers_there_and_back(
            bytes in 2_usize..PICTURE_MAX,
            millis in 0_u32..1_000_000_000,
            rung in 0..RUNGS.len(),
            left_out: u64,
            source_size in proptest::option::of((2..=SIDE_MAX, 2..=SIDE_MAX)),
        ) {
            let header = PictureHeader { bytes, seconds: f64::from(millis) / 1e3, rung, left_out, source_size };
            let part = header.part(&[]);
            let text = String::from_utf8(part).unwrap();
            let read = PictureHeader::parse(text.trim_end()).unwrap();
            prop_assert!((read.seconds - header.seconds).abs() < 1e-9);
            prop_assert_eq!(PictureHeader { seconds: header.seconds, ..read }, header);
        }

        // Any text is either a header within its limits, or an error.
        #[test]
        fn any_text_is_parsed(text in "[ -~\r\n]{0,200}") {
            if let Ok(header) = PictureHeader::parse(&text) {
                prop_assert!(header.bytes <= PICTURE_MAX && header.rung < RUNGS.len());
            }
        }
    }

    #[test]
    fn invalid_headers_name_the_rule() {
        let with = |line: &str| format!("Content-Length: 10\r\nX-Tepui-Seconds: 1\r\nX-Tepui-Rung: 0\r\n{line}");
        assert!(PictureHeader::parse(&with("")).is_ok());
        assert!(PictureHeader::parse("Content-Length: 10\r\nX-Tepui-Rung: 0").unwrap_err().contains("seconds"));
        for size in ["1x5", "5", "9999x10", "axb", "-4x4"] {
            let error = PictureHeader::parse(&with(&format!("X-Tepui-Source-Size: {size}"))).unwrap_err();
            assert!(error.starts_with("the size"), "{size}: {error}");
        }
    }
}
