//! Decompresses zstd layers: any number of frames one after the other, with skippable ones in between.
//!
//! A library decodes each frame.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// First bytes of a frame. Those of a skippable frame are any byte from 0x50 to 0x5f and then `SKIPPED`.
pub(super) const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];
/// Maximum window size of a frame in bytes, as compressors use it with their largest settings.
const WINDOW_MAX: u64 = 128 << 20;

/// A reader of the decompressed content of all frames.
pub(super) struct Zstd<R: Read> {
    state: State<R>,
}

/// A frame, including the bytes of it that were read already.
type Whole<R> = io::Chain<io::Cursor<[u8; 4]>, R>;

enum State<R: Read> {
    Between(R),
    Within(Box<StreamingDecoder<Whole<R>, FrameDecoder>>),
    /// The state after an error.
    Broken,
}

impl<R: BufRead> Zstd<R> {
    pub(super) fn new(reader: R) -> Zstd<R> {
        Zstd { state: State::Between(reader) }
    }

    /// Begins the next frame with content. Returns `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        let State::Between(mut reader) = std::mem::replace(&mut self.state, State::Broken) else { return Ok(true) };
        loop {
            if reader.fill_buf()?.is_empty() {
                self.state = State::Between(reader);
                return Ok(false);
            }
            let mut magic = [0; 4];
            reader.read_exact(&mut magic)?;
            if magic[0] & 0xf0 == 0x50 && magic[1..] == SKIPPED {
                let mut length = [0; 4];
                reader.read_exact(&mut length)?;
                io::copy(&mut (&mut reader).take(u32::from_le_bytes(length).into()), &mut io::sink())?;
                continue;
            }
            if magic != MAGIC {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "what follows is not a zstd frame"));
            }
            let whole = io::Cursor::new(magic).chain(reader);
            let decoder = StreamingDecoder::new_with_max_window_size(whole, WINDOW_MAX).map_err(io::Error::other)?;
            self.state = State::Within(Box::new(decoder));
            return Ok(true);
        }
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            match &mut self.state {
                State::Broken => return Err(io::Error::new(io::ErrorKind::InvalidData, "the zstd frame is broken")),
                State::Between(_) => {
                    if !self.begin()? {
                        return Ok(0);
                    }
                }
                State::Within(decoder) => match decoder.read(buffer) {
                    Ok(0) => {
                        let State::Within(decoder) = std::mem::replace(&mut self.state, State::Broken) else { break };
                        self.state = State::Between(decoder.into_inner().into_inner().1);
                    }
                    other => return other,
                },
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `printf 'hello ' | zstd`, then a skippable frame, then `printf 'world' | zstd`; raw blocks, without
    /// checksums.
    fn packed() -> Vec<u8> {
        let frame = |text: &[u8]| {
            let length = u8::try_from(text.len()).unwrap();
            // Single segment, with its size in one byte; one last raw block.
            [&MAGIC[..], &[0x20, length], &[length << 3 | 1, 0, 0], text].concat()
        };
        [frame(b"hello "), vec![0x5a, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], frame(b"world")].concat()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Zstd::new(bytes).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn frames_follow_each_other() {
        assert_eq!(unpacked(&packed()).unwrap(), "hello world");
        assert_eq!(unpacked(b"").unwrap(), "");
    }

    #[test]
    fn damage_is_reported() {
        let all = packed();
        assert!(unpacked(&all[..all.len() - 1]).is_err());
        assert!(unpacked(&[&all[..], b"tail"].concat()).is_err());
        assert!(unpacked(b"nonsense").is_err());
    }
}
