//! libprocess messages as bytes: writing one, and taking one from what a connection received.

use std::io::Write;

use prost::Message;

use super::http::{find, header, is_chunked, whole_chunk};

/// Appends a message to the process `to` of the peer.
pub fn push(out: &mut Vec<u8>, from: &str, to: &str, name: &str, body: &impl Message) {
    // Writing into memory does not fail.
    let _ = write!(
        out,
        "POST /{to}/{name} HTTP/1.1\r\nUser-Agent: libprocess/{from}\r\nLibprocess-From: {from}\r\n\
         Connection: Keep-Alive\r\nHost: \r\n"
    );
    let length = body.encoded_len();
    if length == 0 {
        out.extend_from_slice(b"\r\n");
        return;
    }
    let _ = write!(out, "Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n");
    let _ = body.encode(out);
    out.extend_from_slice(b"\r\n0\r\n\r\n");
}

/// A message that came.
pub struct Received<'b> {
    /// The id of the process that it is for.
    pub to: &'b str,
    /// Its full name.
    pub name: &'b str,
    /// The id of the sending process.
    pub from: &'b str,
    /// Its body, if that came in one chunk, as every peer writes it.
    pub body: &'b [u8],
    /// How many bytes it took.
    pub length: usize,
}

/// The first message of `bytes`, if all of it is there.
pub fn next(bytes: &[u8]) -> Option<Received<'_>> {
    let end = find(bytes, b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let path = head.split(' ').nth(1)?.strip_prefix('/')?;
    let (to, name) = path.split_once('/')?;
    let from = header(head, "libprocess-from").and_then(|pid| pid.split('@').next()).unwrap_or("");
    let rest = &bytes[end + 4..];
    let (body, taken) = if is_chunked(head) {
        let (data, taken) = whole_chunk(rest)?;
        let last = rest.get(taken..taken + 5)?;
        (&rest[data], taken + last.len())
    } else {
        (&rest[..0], 0)
    };
    Some(Received { to, name, from, body, length: end + 4 + taken })
}
