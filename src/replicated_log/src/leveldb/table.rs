//! Sorted tables: blocks of entries, an index of blocks, and a footer.
//!
//! Every block of entries is read and its checksum verified. Filters and metadata are not needed.

use super::batch::Change;
use super::bytes::{Bytes, is_checksum};

const FOOTER: usize = 48;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;
/// Length of the trailer of a block: its compression, and a checksum.
const TRAILER: usize = 5;
/// Maximum length of a block after decompression, in bytes. A block has at least one entry, whose value may be a whole
/// registry.
const BLOCK_MAX: usize = 512 << 20;

/// Reason why a table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Offset of the fault in bytes.
    pub(super) at: usize,
    /// Last key before the fault.
    pub(super) after: Option<Vec<u8>>,
    pub(super) why: &'static str,
}

/// Position and length of a block in the file.
#[derive(Clone, Copy, Debug)]
struct Handle {
    at: usize,
    length: usize,
}

impl Handle {
    fn read(bytes: &mut Bytes<'_>) -> Option<Handle> {
        Some(Handle { at: bytes.length()?, length: bytes.length()? })
    }
}

/// Passes the entries of a table to `visit`, in the order of their keys.
///
/// # Errors
/// A fault of the file, or an error of `visit`.
pub(super) fn read<E: From<Fault>>(file: &[u8], mut visit: impl FnMut(&Change<'_>) -> Result<(), E>) -> Result<(), E> {
    let index = index(file)?;
    let mut last: Option<Vec<u8>> = None;
    let mut error = None;
    let index_block = block(file, index, None)?;
    let walked = entries(&index_block, |_, value| {
        let outcome = (|| {
            let fault = |at, why| Fault { at, after: last.clone(), why };
            let handle = Handle::read(&mut Bytes(value)).ok_or_else(|| fault(index.at, "its index is invalid"))?;
            let data = block(file, handle, last.as_deref())?;
            let mut inner = None;
            let walked = entries(&data, |key, value| {
                let Some(change) = change(key, value) else { return false };
                last = Some(change.key.to_vec());
                inner = visit(&change).err();
                inner.is_none()
            });
            match (inner, walked) {
                (Some(error), _) => Err(error),
                (None, Some(())) => Ok(()),
                (None, None) => Err(E::from(Fault { at: handle.at, after: last.clone(), why: "an entry is invalid" })),
            }
        })();
        error = outcome.err();
        error.is_none()
    });
    match (error, walked) {
        (Some(error), _) => Err(error),
        (None, Some(())) => Ok(()),
        (None, None) => Err(Fault { at: index.at, after: last, why: "its index is invalid" }.into()),
    }
}

/// Returns the handle of the index.
fn index(file: &[u8]) -> Result<Handle, Fault> {
    let fault = |why| Fault { at: file.len().saturating_sub(FOOTER), after: None, why };
    let (_, footer) = file.split_last_chunk::<FOOTER>().ok_or_else(|| fault("it is too short for a table"))?;
    let (handles, magic) = footer.split_at(FOOTER - 8);
    if Bytes(magic).u64() != Some(MAGIC) {
        return Err(fault("its footer is not that of a table"));
    }
    let mut handles = Bytes(handles);
    let (_, index) = Handle::read(&mut handles)
        .zip(Handle::read(&mut handles))
        .ok_or_else(|| fault("its footer is not that of a table"))?;
    Ok(index)
}

/// Returns the content of a block.
fn block<'f>(
    file: &'f [u8],
    Handle { at, length }: Handle,
    after: Option<&[u8]>,
) -> Result<std::borrow::Cow<'f, [u8]>, Fault> {
    let fault = |why| Fault { at, after: after.map(<[u8]>::to_vec), why };
    let whole = length.checked_add(TRAILER).and_then(|all| file.get(at..)?.get(..all));
    let (data, trailer) = whole
        .and_then(|whole| whole.split_at_checked(length))
        .ok_or_else(|| fault("a block is outside of the file"))?;
    let mut trailer = Bytes(trailer);
    let (Some(kind), Some(stored)) = (trailer.byte(), trailer.u32()) else {
        return Err(fault("a block is outside of the file"));
    };
    if !is_checksum(stored, &[data, &[kind]]) {
        return Err(fault("the checksum does not match"));
    }
    match kind {
        0 => Ok(data.into()),
        1 => match snap::raw::decompress_len(data) {
            Ok(length) if length <= BLOCK_MAX => {
                let whole = snap::raw::Decoder::new().decompress_vec(data);
                whole.map(Into::into).map_err(|_| fault("a block cannot be decompressed"))
            }
            _ => Err(fault("a block cannot be decompressed, or has more than 512 MiB")),
        },
        _ => Err(fault("a block is compressed by another method than Snappy")),
    }
}

/// Passes a block's keys and values to `visit` for as long as that returns true. Returns `None` if it did not, or if
/// the block is invalid.
fn entries(block: &[u8], mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Option<()> {
    // The end has the offsets at which keys are complete, and their number.
    let (rest, count) = block.split_last_chunk()?;
    let restarts = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(4)?;
    let mut bytes = Bytes(rest.get(..rest.len().checked_sub(restarts)?)?);
    let mut key = Vec::new();
    while !bytes.is_empty() {
        let (shared, own, length) = (bytes.length()?, bytes.length()?, bytes.length()?);
        if shared > key.len() {
            return None;
        }
        key.truncate(shared);
        key.extend_from_slice(bytes.take(own)?);
        if !visit(&key, bytes.take(length)?) {
            return None;
        }
    }
    Some(())
}

/// Decodes an entry, whose key is followed by the number and the kind of its change.
fn change<'b>(key: &'b [u8], value: &'b [u8]) -> Option<Change<'b>> {
    let (key, tail) = key.split_last_chunk()?;
    let tail = u64::from_le_bytes(*tail);
    let value = match tail & 0xff {
        0 => None,
        1 => Some(value),
        _ => return None,
    };
    Some(Change { sequence: tail >> 8, key, value })
}
