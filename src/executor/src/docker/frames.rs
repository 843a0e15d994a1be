//! Splits the output that the Docker daemon sends into standard output and standard error.

use std::io::{self, Write};

/// A parser of output with both streams in one: frames with a head of eight bytes each, the first of which is the
/// stream.
#[derive(Default)]
pub(super) struct Frames {
    head: Vec<u8>,
    left: usize,
    to_stderr: bool,
}

impl Frames {
    /// Parses further data and writes the output in it.
    pub(super) fn feed(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.left == 0 {
                let missing = 8 - self.head.len();
                let taken = missing.min(data.len());
                self.head.extend_from_slice(&data[..taken]);
                data = &data[taken..];
                if let [stream, _, _, _, a, b, c, d] = self.head[..] {
                    self.to_stderr = stream == 2;
                    self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                    self.head.clear();
                }
                continue;
            }
            let taken = self.left.min(data.len());
            let (piece, rest) = data.split_at(taken);
            // With a full disk output is lost; that does not end the container.
            let _ = match self.to_stderr {
                true => io::stderr().write_all(piece),
                false => io::stdout().write_all(piece).and_then(|()| io::stdout().flush()),
            };
            self.left -= taken;
            data = rest;
        }
    }
}
