//! libprocess messages as bytes: appends messages to a buffer, and parses received ones.

use std::io::Write;

use prost::Message;

use super::http::{find, header, is_chunked, whole_chunk};

/// Appends a message to the process `to` of the peer.
pub fn push(out: &mut Vec<u8>, from: &str, to: &str, name: &str, body: &impl Message) {
    // Writing to memory cannot fail.
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

/// A received message.
pub struct Received<'b> {
    /// Id of the receiving process.
    pub to: &'b str,
    /// Full name of the message.
    pub name: &'b str,
    /// Id of the sending process.
    pub from: &'b str,
    /// Body of the message, if it was sent in one chunk, as every peer sends it.
    pub body: &'b [u8],
    /// Number of bytes of the whole message.
    pub length: usize,
}

/// Parses the first message of `bytes`, if it is complete.
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
