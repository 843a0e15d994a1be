//! Decodes the bodies of HTTP messages, with `Content-Length` or in chunks. Headers are parsed elsewhere.

use bytes::{Bytes, BytesMut};

/// Reason why a body cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    #[error("the framing of a message's body is malformed")]
    Malformed,
    #[error("a message's body is longer than {0} bytes")]
    TooLong(usize),
    #[error("the bodies in progress are too large together")]
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The size of a chunk so far, and the number of its digits.
    Size(usize, u8),
    /// The rest of the size's line: an extension, which is skipped.
    SizeEnd(usize),
    /// The number of bytes of data that are still missing.
    Data(usize),
    /// The line end after a chunk's data.
    DataEnd(u8),
    /// The empty line after the last chunk; anything else would be a trailer.
    LastEnd(u8),
    Done,
}

/// A body that is being received.
#[derive(Debug)]
pub(super) struct BodyDecoder {
    body: BytesMut,
    limit: usize,
    step: Step,
    chunked: bool,
}

/// Maximum number of bytes that are reserved before any of them has arrived.
const RESERVE: usize = 64 << 10;

impl BodyDecoder {
    /// Creates a decoder for a body of known length.
    pub(super) fn sized(length: usize, limit: usize) -> Result<BodyDecoder, BodyError> {
        if length > limit {
            return Err(BodyError::TooLong(limit));
        }
        let step = if length == 0 { Step::Done } else { Step::Data(length) };
        Ok(BodyDecoder { body: BytesMut::with_capacity(length.min(RESERVE)), limit, step, chunked: false })
    }

    /// Creates a decoder for a body in chunks.
    pub(super) fn chunked(limit: usize) -> BodyDecoder {
        BodyDecoder { body: BytesMut::new(), limit, step: Step::Size(0, 0), chunked: true }
    }

    pub(super) fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// Returns the number of bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        self.body.len()
    }

    /// Returns the body, which must be complete.
    pub(super) fn finish(self) -> Bytes {
        self.body.freeze()
    }

    /// Reads the part of the input that belongs to the body, and returns its length.
    pub(super) fn feed(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut used = 0;
        while used < input.len() && self.step != Step::Done {
            if let Step::Data(left) = self.step {
                let take = left.min(input.len() - used);
                self.body.extend_from_slice(&input[used..used + take]);
                used += take;
                self.step = match (left - take, self.chunked) {
                    (0, true) => Step::DataEnd(b'\r'),
                    (0, false) => Step::Done,
                    (left, _) => Step::Data(left),
                };
            } else {
                self.step = self.framing(input[used])?;
                used += 1;
            }
        }
        Ok(used)
    }

    /// Reads one byte of the framing between data.
    fn framing(&mut self, byte: u8) -> Result<Step, BodyError> {
        match (self.step, byte) {
            (Step::Size(size, digits), byte) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0) as usize;
                let size = size * 16 + digit;
                if self.body.len() + size > self.limit {
                    return Err(BodyError::TooLong(self.limit));
                }
                Ok(Step::Size(size, digits + 1))
            }
            (Step::Size(size, 1..), b'\r' | b';' | b' ' | b'\t') => Ok(Step::SizeEnd(size)),
            (Step::SizeEnd(0), b'\n') => Ok(Step::LastEnd(b'\r')),
            (Step::SizeEnd(size), b'\n') => {
                self.body.reserve(size.min(RESERVE));
                Ok(Step::Data(size))
            }
            (Step::SizeEnd(_), _) => Ok(self.step),
            (Step::DataEnd(b'\r'), b'\r') => Ok(Step::DataEnd(b'\n')),
            (Step::DataEnd(b'\n'), b'\n') => Ok(Step::Size(0, 0)),
            (Step::LastEnd(b'\r'), b'\r') => Ok(Step::LastEnd(b'\n')),
            (Step::LastEnd(b'\n'), b'\n') => Ok(Step::Done),
            _ => Err(BodyError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(parts: &[&[u8]], limit: usize) -> Result<(Bytes, usize), BodyError> {
        let mut decoder = BodyDecoder::chunked(limit);
        let mut used = 0;
        for part in parts {
            used += decoder.feed(part)?;
        }
        assert!(decoder.is_done());
        Ok((decoder.finish(), used))
    }

    #[test]
    fn chunks() {
        let input = b"3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\n\r\nPOST";
        assert_eq!(decode(&[input], 13).unwrap(), (Bytes::from_static(b"abc0123456789"), input.len() - 4));
        assert_eq!(decode(&[input], 12), Err(BodyError::TooLong(12)));
        for broken in ["\r\n", "x\r\n", "3\r\nabcd", "0\r\nTrailer: x\r\n\r\n", "fffffffffffffffff\r\n", "-1\r\n"] {
            assert!(BodyDecoder::chunked(usize::MAX >> 1).feed(broken.as_bytes()).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn sized() {
        let mut decoder = BodyDecoder::sized(3, 3).unwrap();
        assert_eq!(decoder.feed(b"ab"), Ok(2));
        assert_eq!(decoder.feed(b"cd"), Ok(1));
        assert!(decoder.is_done());
        assert_eq!(decoder.finish(), "abc");
        assert!(BodyDecoder::sized(0, 3).unwrap().is_done());
        assert_eq!(BodyDecoder::sized(4, 3).unwrap_err(), BodyError::TooLong(3));
    }

    proptest! {
        /// Any bytes are read or rejected; never more bytes than the limit are kept.
        #[test]
        fn any_bytes(input in prop::collection::vec(any::<u8>(), 0..200), limit in 0usize..50) {
            let mut decoder = BodyDecoder::chunked(limit);
            if let Ok(used) = decoder.feed(&input) {
                prop_assert!(used <= input.len());
                prop_assert!(decoder.body.len() <= limit);
            }
        }

        /// The body is the same however the input is cut.
        #[test]
        fn any_cut(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5), size in 1usize..9) {
            let mut input = Vec::new();
            for body in &bodies {
                input.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
                input.extend_from_slice(body);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\n\r\n");
            let parts: Vec<&[u8]> = input.chunks(size).collect();
            prop_assert_eq!(decode(&parts, 1000).unwrap().0, bodies.concat());
        }
    }
}
