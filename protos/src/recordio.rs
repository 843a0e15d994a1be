//! RecordIO: the framing of event streams. A record is its length in decimal, a newline, and that many bytes.
//!
//! It handles neither HTTP chunks, which have no relation to records, nor the content of records.

use std::collections::VecDeque;

/// Appends one record.
pub fn encode(payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(payload.len()).as_bytes());
    out.push(b'\n');
    out.extend_from_slice(payload);
}

/// An error of a stream of records. The stream cannot be read further and must be closed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// The length is empty or contains something other than digits.
    #[error("a record's length is not a decimal number: '{0}'")]
    BadLength(String),
    /// The length has more digits than any allowed record needs.
    #[error("a record's length has more than {0} digits")]
    LongLength(usize),
    /// The record is longer than the reader allows.
    #[error("a record of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// Length that the record has.
        length: u64,
        /// Length that the reader allows.
        limit: usize,
    },
}

/// Maximum number of digits of a length, including leading zeros.
const MAX_DIGITS: usize = 20;

/// A decoder of records from bytes that arrive in pieces of any size.
///
/// Push received bytes, then pull until there is no record. It holds at most one incomplete record, which is at most as
/// long as the limit, and the records that were pushed and not yet pulled.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    /// Digits of the length that is being read.
    header: Vec<u8>,
    /// Number of missing bytes of the current record; `None` while its length is being read.
    wanted: Option<usize>,
    body: Vec<u8>,
    ready: VecDeque<Vec<u8>>,
    broken: Option<RecordError>,
}

impl Decoder {
    /// Creates a decoder that rejects records longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, header: Vec::new(), wanted: None, body: Vec::new(), ready: VecDeque::new(), broken: None }
    }

    /// Adds the next bytes of the stream. After an error it ignores them.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.broken.is_none() {
            match self.wanted {
                None => bytes = self.length(bytes),
                Some(wanted) => {
                    let (now, later) = bytes.split_at(wanted.min(bytes.len()));
                    self.body.extend_from_slice(now);
                    self.wanted = Some(wanted - now.len());
                    bytes = later;
                    self.complete();
                }
            }
        }
    }

    /// Returns the next complete record; `None` if more bytes are needed.
    ///
    /// # Errors
    /// A bad length, after all records before it were returned. The error is returned by all further calls.
    pub fn pull(&mut self) -> Result<Option<Vec<u8>>, RecordError> {
        match (self.ready.pop_front(), &self.broken) {
            (Some(record), _) => Ok(Some(record)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(None),
        }
    }

    /// Returns whether the stream may end here: no record is incomplete.
    #[must_use]
    pub fn at_boundary(&self) -> bool {
        self.wanted.is_none() && self.header.is_empty() && self.broken.is_none()
    }

    /// Reads digits up to the newline and returns the bytes after it.
    fn length<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        for (i, b) in bytes.iter().enumerate() {
            match b {
                b'\n' => {
                    self.start();
                    return &bytes[i + 1..];
                }
                b'0'..=b'9' if self.header.len() >= MAX_DIGITS => {
                    self.broken = Some(RecordError::LongLength(MAX_DIGITS));
                    return &[];
                }
                b'0'..=b'9' => self.header.push(*b),
                _ => {
                    self.header.push(*b);
                    return self.bad_length();
                }
            }
        }
        &[]
    }

    fn bad_length(&mut self) -> &'static [u8] {
        let text = self.header.escape_ascii().to_string();
        self.broken = Some(RecordError::BadLength(text));
        &[]
    }

    /// Starts the record whose length is complete.
    fn start(&mut self) {
        let digits = std::mem::take(&mut self.header);
        let length = std::str::from_utf8(&digits).ok().and_then(|text| text.parse::<u64>().ok());
        let Some(length) = length else {
            self.header = digits;
            self.bad_length();
            return;
        };
        match usize::try_from(length) {
            Ok(wanted) if wanted <= self.limit => {
                self.wanted = Some(wanted);
                self.complete();
            }
            _ => self.broken = Some(RecordError::TooLong { length, limit: self.limit }),
        }
    }

    fn complete(&mut self) {
        if self.wanted == Some(0) {
            self.wanted = None;
            self.ready.push_back(std::mem::take(&mut self.body));
        }
    }
}
