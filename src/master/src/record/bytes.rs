//! Numbers and texts of a recording as bytes: seven bits per byte, lengths before contents.

use super::RecordError;

/// Encoder of numbers and texts.
#[derive(Debug, Default)]
pub(super) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub fn maybe(&mut self, text: Option<&str>) {
        self.tag(u8::from(text.is_some()));
        if let Some(text) = text {
            self.bytes(text.as_bytes());
        }
    }
}

/// Decoder of numbers and texts.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(RecordError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn tag(&mut self) -> Result<u8, RecordError> {
        Ok(self.take(1)?[0])
    }

    pub fn number(&mut self) -> Result<u64, RecordError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.tag()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(RecordError::Invalid("a number of more than 64 bits".to_owned()))
    }

    /// Reads eight bytes as a number.
    pub fn word(&mut self) -> Result<u64, RecordError> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub fn slice(&mut self) -> Result<&'a [u8], RecordError> {
        let count = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        self.take(count)
    }

    pub fn text(&mut self) -> Result<String, RecordError> {
        let text = std::str::from_utf8(self.slice()?);
        text.map(str::to_owned).map_err(|_| RecordError::Invalid("text that is not UTF-8".to_owned()))
    }

    pub fn maybe(&mut self) -> Result<Option<String>, RecordError> {
        if self.tag()? == 1 { self.text().map(Some) } else { Ok(None) }
    }

    pub fn message<M: prost::Message + Default>(&mut self) -> Result<M, RecordError> {
        M::decode(self.slice()?).map_err(|why| RecordError::Invalid(format!("a message ({why})")))
    }
}

/// Hash that is the same on every machine and in every version: FNV-1a over words.
pub(super) struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.number(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.number(u64::from(*byte)));
    }
}
