//! RecordIO framing: the payload's length in decimal, a newline, the payload.

use bytes::{Buf, Bytes, BytesMut};

/// One record with its header.
pub(crate) fn encode(payload: &[u8]) -> Bytes {
    let mut record = Vec::with_capacity(payload.len() + 20);
    record.extend_from_slice(payload.len().to_string().as_bytes());
    record.push(b'\n');
    record.extend_from_slice(payload);
    record.into()
}

/// Why a stream cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("a record's length is no decimal number")]
    Length,
    #[error("a record of {0} bytes is longer than the limit of {1} bytes")]
    TooLong(usize, usize),
}

/// Cuts a byte stream into records.
#[derive(Debug)]
pub(crate) struct Decoder {
    buffer: BytesMut,
    limit: usize,
}

impl Decoder {
    /// A decoder that refuses payloads of more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Decoder {
        Decoder { buffer: BytesMut::new(), limit }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, data: &[u8]) {
        self.buffer.extend_from_slice(data);
    }

    /// The next whole payload, if it is there.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(end) = self.buffer.iter().take(21).position(|b| *b == b'\n') else {
            return if self.buffer.len() > 20 { Err(DecodeError::Length) } else { Ok(None) };
        };
        let header = std::str::from_utf8(&self.buffer[..end]).map_err(|_| DecodeError::Length)?;
        if header.is_empty() || !header.bytes().all(|b| b.is_ascii_digit()) {
            return Err(DecodeError::Length);
        }
        let length: usize = header.parse().map_err(|_| DecodeError::Length)?;
        if length > self.limit {
            return Err(DecodeError::TooLong(length, self.limit));
        }
        if self.buffer.len() < end + 1 + length {
            return Ok(None);
        }
        self.buffer.advance(end + 1);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}
