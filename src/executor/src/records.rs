//! RecordIO, reading only: `<decimal length>\n<bytes>`, repeated (docs/mesos/transport.md).
//!
//! It does not look into the records.

/// Larger than any event: an agent's SUBSCRIBED or LAUNCH holds what a framework sent in one call.
pub(crate) const RECORD_LIMIT: usize = 256 * 1024 * 1024;
/// The most digits of a length, zeros before it included.
const DIGITS: usize = 20;

/// The stream is not RecordIO, and cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A record does not begin with its length.
    #[error("The agent's stream has a record without a length")]
    Length,
    /// A record exceeds the limit.
    #[error("The agent's stream has a record of more than {RECORD_LIMIT} bytes")]
    TooLong,
}

/// Takes a stream apart into records.
#[derive(Debug, Default)]
pub struct Records {
    pending: Vec<u8>,
}

impl Records {
    /// A reader at the beginning of a record.
    pub fn new() -> Records {
        Records::default()
    }

    /// Takes the next bytes and hands on the records that they complete.
    ///
    /// # Errors
    /// The bytes are not RecordIO; what follows cannot be read.
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

/// Where the first record starts and ends; `None` if it is not complete.
fn next(bytes: &[u8]) -> Result<Option<(usize, usize)>, RecordError> {
    let Some(digits) = bytes.iter().position(|&b| b == b'\n') else {
        let digits_only = bytes.len() <= DIGITS && bytes.iter().all(u8::is_ascii_digit);
        return if digits_only { Ok(None) } else { Err(RecordError::Length) };
    };
    // The same digits are a length when they come in pieces.
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
