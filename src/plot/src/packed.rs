//! Compresses the parts of a page that are closed at first: pages of sweeps repeat similar content hundreds of times.
//!
//! The page's script restores the parts when the page is loaded. The content of a page is not decided here.

use std::io::Write as _;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Size of the parts, in bytes, from which on they are compressed. Smaller pages need no script.
const FROM: usize = 150_000;
/// Separator of the parts, which does not occur in HTML.
const BETWEEN: u8 = 0;
const UNPACK: &str = include_str!("unpack.js");

/// Returns the body without these parts, which must be in order, and the scripts that restore them; `None` if the parts
/// are too small.
pub(super) fn packed(body: &str, parts: &[Range<usize>]) -> Option<(String, String)> {
    if parts.iter().map(Range::len).sum::<usize>() < FROM {
        return None;
    }
    let (mut rest, mut end) = (String::new(), 0);
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for part in parts {
        rest.push_str(body.get(end..part.start)?);
        encoder.write_all(body.get(part.clone())?.as_bytes()).ok()?;
        encoder.write_all(&[BETWEEN]).ok()?;
        end = part.end;
    }
    rest.push_str(body.get(end..)?);
    let text = STANDARD.encode(encoder.finish().ok()?);
    let script = format!("<script type=\"text/plain\" id=\"packed\">{text}</script>\n<script>{UNPACK}</script>\n");
    Some((rest, script))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn parts_come_back_as_they_were() {
        let part = |n: usize| format!("<p>{n} \u{b1} {}</p>", "<td>0.5".repeat(20_000));
        let (mut body, mut parts) = ("<h1>é</h1>".to_owned(), Vec::new());
        for n in 0..3 {
            body.push_str("<div>");
            let start = body.len();
            body.push_str(&part(n));
            parts.push(start..body.len());
            body.push_str("</div>");
        }
        let (rest, script) = packed(&body, &parts).unwrap();
        assert_eq!(rest, "<h1>é</h1><div></div><div></div><div></div>");
        assert!(script.len() < 10_000, "{}", script.len());
        let text = script.split_once("id=\"packed\">").unwrap().1.split_once("</script>").unwrap().0;
        let mut all = String::new();
        flate2::read::DeflateDecoder::new(STANDARD.decode(text).unwrap().as_slice()).read_to_string(&mut all).unwrap();
        assert_eq!(all.split('\0').collect::<Vec<_>>(), [&part(0), &part(1), &part(2), ""]);
        assert!(packed(&body, &parts[..1]).is_none(), "one part is small");
    }
}
