//! Boxes of an MP4 file: finds them in bytes, and reads numbers with bounds checks.

use super::super::indexed::Fault;

/// A view of a box's body.
#[derive(Clone, Copy)]
pub(super) struct Body<'a>(pub &'a [u8]);

impl<'a> Body<'a> {
    /// Returns a big-endian number of 4 bytes.
    pub(super) fn u32(&self, at: usize) -> Result<u32, Fault> {
        let bytes = at.checked_add(4).and_then(|end| self.0.get(at..end)).ok_or_else(short)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Returns a big-endian number of 2 bytes.
    pub(super) fn u16(&self, at: usize) -> Result<u16, Fault> {
        let bytes = at.checked_add(2).and_then(|end| self.0.get(at..end)).ok_or_else(short)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Returns a big-endian number of 8 bytes.
    pub(super) fn u64(&self, at: usize) -> Result<u64, Fault> {
        Ok(u64::from(self.u32(at)?) << 32 | u64::from(self.u32(at + 4)?))
    }

    /// Returns the rest of the body from this offset.
    pub(super) fn from(&self, at: usize) -> Result<Body<'a>, Fault> {
        self.0.get(at..).map(Body).ok_or_else(short)
    }

    /// Returns the boxes in this body, as type and body. The last may be cut off by the end of this one.
    pub(super) fn boxes(self) -> impl Iterator<Item = ([u8; 4], Body<'a>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let head = rest.get(..8)?;
            let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let kind = [head[4], head[5], head[6], head[7]];
            let size = if size == 0 { rest.len() } else { size.clamp(8, rest.len()) };
            let body = &rest[8..size];
            rest = &rest[size..];
            Some((kind, Body(body)))
        })
    }

    /// Returns the first box of this type in the body.
    pub(super) fn child(self, kind: &[u8; 4]) -> Result<Body<'a>, Fault> {
        let found = self.boxes().find(|(k, _)| k == kind).map(|(_, body)| body);
        found.ok_or_else(|| Fault::Malformed(format!("MP4 without its box {:?}", String::from_utf8_lossy(kind))))
    }

    /// Returns the first box at the end of a path of types.
    pub(super) fn descendant(self, kinds: &[&[u8; 4]]) -> Result<Body<'a>, Fault> {
        kinds.iter().try_fold(self, |body, kind| body.child(kind))
    }

    /// Returns the rows of a table, each of `row` bytes, whose number is stored before them. It is an error if rows are
    /// missing.
    pub(super) fn rows(self, at: usize, row: usize) -> Result<impl ExactSizeIterator<Item = Body<'a>>, Fault> {
        let count = self.u32(at)? as usize;
        let bytes = count.checked_mul(row).and_then(|n| self.0.get(at + 4..)?.get(..n)).ok_or_else(short)?;
        Ok(bytes.chunks_exact(row).map(Body))
    }
}

fn short() -> Fault {
    Fault::malformed("an MP4 box is shorter than its content")
}
