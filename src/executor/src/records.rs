//! Reads RecordIO: `<decimal length>\n<bytes>`, repeated (docs/mesos/transport.md).
//!
//! It does not interpret the records, and does not write any.

/// Maximum length of a record, larger than any event: an agent's SUBSCRIBED or LAUNCH contains what a framework sent in
/// one call.
pub(crate) const RECORD_LIMIT: usize = 256 * 1024 * 1024;
/// Maximum number of digits of a length, including leading zeros.
const DIGITS: usize = 20;

/// An error of a stream that is not RecordIO and cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record does not start with its length.
    #[error("The agent's stream has a record without a length")]
    Length,
    /// A record exceeds the limit.
    #[error("The agent's stream has a record of more than {RECORD_LIMIT} bytes")]
    TooLong,
}

/// A reader that splits a stream into records.
#[derive(Debug, Default)]
pub struct Records {
    pending: Vec<u8>,
}

impl Records {
    /// Creates a reader that expects the start of a record.
    pub fn new() -> Records {
        Records::default()
    }

    /// Reads the next bytes, and passes the records that they complete to `sink`.
    ///
    /// # Errors
    /// The bytes are not RecordIO; the stream cannot be read further.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), RecordError> {
        self.pending.extend_from_slice(bytes);
        let mut used = 0;
        while let Some((start, end)) = next(&self.pending[used..])? {
            sink(&self.pending[used + start..used + end]);
            used += end;
        }
        self.pending.drain(..used);
        Ok(())
    }
}

/// Returns the start and the end of the first record; `None` if it is incomplete.
fn next(bytes: &[u8]) -> Result<Option<(usize, usize)>, RecordError> {
    let Some(digits) = bytes.iter().position(|&b| b == b'\n') else {
        let digits_only = bytes.len() <= DIGITS && bytes.iter().all(u8::is_ascii_digit);
        return if digits_only { Ok(None) } else { Err(RecordError::Length) };
    };
    // Digits that arrive in pieces must be the same length.
    let text = std::str::from_utf8(&bytes[..digits])
        .ok()
        .filter(|text| text.len() <= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit()));
    let length: usize = text.and_then(|text| text.parse().ok()).ok_or(RecordError::Length)?;
    if length > RECORD_LIMIT {
        return Err(RecordError::TooLong);
    }
    let end = digits + 1 + length;
    Ok((bytes.len() >= end).then_some((digits + 1, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8], size: usize) -> Result<Vec<String>, RecordError> {
        let mut records = Records::new();
        let mut seen = Vec::new();
        for piece in stream.chunks(size) {
            records.feed(piece, &mut |r| seen.push(String::from_utf8(r.to_vec()).unwrap()))?;
        }
        Ok(seen)
    }

    #[test]
    fn records_in_pieces_of_every_size() {
        for size in 1..20 {
            assert_eq!(read(b"3\nabc0\n12\nfoo\nbar\nfoo\n", size).unwrap(), ["abc", "", "foo\nbar\nfoo\n"]);
        }
    }

    #[test]
    fn malformed_streams() {
        for (stream, error) in [
            (&b"abc"[..], RecordError::Length),
            (b"\nabc", RecordError::Length),
            (b"-1\n", RecordError::Length),
            (b"+1\na", RecordError::Length),
            (b" 1\na", RecordError::Length),
            (b"123456789012345678901", RecordError::Length),
            (b"999999999\n", RecordError::TooLong),
        ] {
            assert_eq!(read(stream, 100), Err(error), "{stream:?}");
        }
    }
}
