//! A streaming writer for documents that are not messages: `/state`, metrics, flags.
//!
//! The caller chooses the order of keys. Brackets that the caller does not close in the right order are not detected.

use super::{Dialect, ToJson, Value, text};

/// A writer that appends JSON to a buffer. Every value may be a member of an object (after [`Writer::key`]) or an
/// element of an array.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

/// Removes the comma that follows the last value.
impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
    }
}

impl<'o> Writer<'o> {
    /// Creates a writer that appends one value to `out`. The value is complete when the writer is dropped.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Calls `write` with a writer and returns the bytes of the document.
    pub fn document(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out));
        out
    }

    /// Returns the length of the buffer, including its content before the first value.
    #[must_use]
    pub fn written(&self) -> usize {
        self.out.len()
    }

    /// Opens an object.
    pub fn begin_object(&mut self) -> &mut Self {
        self.out.push(b'{');
        self
    }

    /// Closes an object.
    pub fn end_object(&mut self) -> &mut Self {
        text::close(self.out, b'}');
        self.out.push(b',');
        self
    }

    /// Opens an array.
    pub fn begin_array(&mut self) -> &mut Self {
        self.out.push(b'[');
        self
    }

    /// Closes an array.
    pub fn end_array(&mut self) -> &mut Self {
        text::close(self.out, b']');
        self.out.push(b',');
        self
    }

    /// Writes a key; its value must follow.
    pub fn key(&mut self, key: &str) -> &mut Self {
        text::string(self.out, key);
        self.out.push(b':');
        self
    }

    /// Writes an object whose members `write` appends.
    pub fn object(&mut self, write: impl FnOnce(&mut Writer<'_>)) -> &mut Self {
        self.begin_object();
        write(&mut Writer { out: self.out });
        self.end_object()
    }

    /// Writes an array whose elements `write` appends.
    pub fn array(&mut self, write: impl FnOnce(&mut Writer<'_>)) -> &mut Self {
        self.begin_array();
        write(&mut Writer { out: self.out });
        self.end_array()
    }

    /// Writes a placeholder of one byte for a value, or several with commas between them, that the caller inserts
    /// later. Returns the offset of the placeholder.
    pub fn put_in_later(&mut self) -> usize {
        let at = self.out.len();
        self.out.push(b'0');
        self.comma();
        at
    }

    /// Writes a string.
    pub fn string(&mut self, value: &str) -> &mut Self {
        text::string(self.out, value);
        self.comma()
    }

    /// Writes a string whose bytes need not be UTF-8, such as the content of a file; they are not converted.
    pub fn string_bytes(&mut self, value: &[u8]) -> &mut Self {
        text::string_bytes(self.out, value);
        self.comma()
    }

    /// Writes `true` or `false`.
    pub fn bool(&mut self, value: bool) -> &mut Self {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        self.comma()
    }

    /// Writes a signed integer.
    pub fn int(&mut self, value: i64) -> &mut Self {
        text::integer(self.out, value);
        self.comma()
    }

    /// Writes an unsigned integer.
    pub fn uint(&mut self, value: u64) -> &mut Self {
        text::integer(self.out, value);
        self.comma()
    }

    /// Writes a double: `1.0`, `1e21`, `"Infinity"`.
    pub fn double(&mut self, value: f64) -> &mut Self {
        text::double(self.out, value);
        self.comma()
    }

    /// Writes `null`.
    pub fn null(&mut self) -> &mut Self {
        self.out.extend_from_slice(b"null");
        self.comma()
    }

    /// Writes a message, with fields in declaration order.
    pub fn message(&mut self, value: &(impl ToJson + ?Sized), dialect: Dialect) -> &mut Self {
        value.to_json(dialect, self.out);
        self.comma()
    }

    /// Writes a parsed value, with sorted keys.
    pub fn value(&mut self, value: &Value) -> &mut Self {
        value.write(self.out);
        self.comma()
    }

    /// Writes text that is JSON already, for instance cached parts of a document.
    pub fn raw(&mut self, json: &[u8]) -> &mut Self {
        self.out.extend_from_slice(json);
        self.comma()
    }

    /// Writes members that are JSON already: the text between an object's braces, with or without a comma at its end.
    pub fn raw_members(&mut self, members: &[u8]) -> &mut Self {
        self.out.extend_from_slice(members);
        if !members.is_empty() && members.last() != Some(&b',') {
            self.out.push(b',');
        }
        self
    }

    fn comma(&mut self) -> &mut Self {
        self.out.push(b',');
        self
    }
}
