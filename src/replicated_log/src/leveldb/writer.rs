//! Writer of LevelDB files for tests, byte by byte by the format.

const BLOCK: usize = 32 << 10;
const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// A change of one key; `None` deletes it.
pub(crate) type Change<'c> = (&'c str, Option<&'c [u8]>);

fn checksum(pieces: &[&[u8]]) -> [u8; 4] {
    let sum = crc32c::crc32c(&pieces.concat());
    sum.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Returns a file of records.
pub(crate) fn records(records: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        let (mut rest, mut is_first) = (record.as_slice(), true);
        loop {
            let left = BLOCK - out.len() % BLOCK;
            if left < 7 {
                out.resize(out.len() + left, 0);
                continue;
            }
            let (data, later) = rest.split_at(rest.len().min(left - 7));
            let kind = match (is_first, later.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            out.extend_from_slice(&checksum(&[&[kind], data]));
            out.extend_from_slice(&(data.len() as u16).to_le_bytes());
            out.push(kind);
            out.extend_from_slice(data);
            (rest, is_first) = (later, false);
            if rest.is_empty() {
                break;
            }
        }
    }
    out
}

/// Returns a record of a write-ahead log.
pub(crate) fn batch(first: u64, changes: &[Change<'_>]) -> Vec<u8> {
    let mut out = first.to_le_bytes().to_vec();
    out.extend_from_slice(&(changes.len() as u32).to_le_bytes());
    for (key, value) in changes {
        out.push(u8::from(value.is_some()));
        text(key.as_bytes(), &mut out);
        if let Some(value) = value {
            text(value, &mut out);
        }
    }
    out
}

fn internal(key: &str, sequence: u64, is_value: bool) -> Vec<u8> {
    let tail = sequence << 8 | u64::from(is_value);
    [key.as_bytes(), &tail.to_le_bytes()].concat()
}

/// Returns a block whose keys share prefixes.
fn block(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    const INTERVAL: usize = 4;
    let (mut out, mut restarts, mut before) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (key, value)) in entries.iter().enumerate() {
        let is_restart = number % INTERVAL == 0;
        if is_restart {
            restarts.push(out.len() as u32);
        }
        let shared =
            if is_restart { 0 } else { key.iter().zip(&before).take_while(|(one, other)| one == other).count() };
        varint(shared as u64, &mut out);
        varint((key.len() - shared) as u64, &mut out);
        varint(value.len() as u64, &mut out);
        out.extend_from_slice(&key[shared..]);
        out.extend_from_slice(value);
        before.clone_from(key);
    }
    restarts.iter().for_each(|restart| out.extend_from_slice(&restart.to_le_bytes()));
    out.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
    out
}

/// Returns a table of entries with their numbers, in the order of their keys, several per block. `kind` 1 compresses.
pub(crate) fn table(entries: &[(u64, Change<'_>)], kind: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |block: Vec<u8>, kind: u8| {
        let data = if kind == 1 { snap::raw::Encoder::new().compress_vec(&block).unwrap() } else { block };
        let mut handle = Vec::new();
        varint(out.len() as u64, &mut handle);
        varint(data.len() as u64, &mut handle);
        out.extend_from_slice(&data);
        out.push(kind);
        out.extend_from_slice(&checksum(&[&data, &[kind]]));
        handle
    };
    let mut index = Vec::new();
    for some in entries.chunks(6) {
        let inner: Vec<(Vec<u8>, Vec<u8>)> = some
            .iter()
            .map(|(sequence, (key, value))| {
                (internal(key, *sequence, value.is_some()), value.unwrap_or_default().to_vec())
            })
            .collect();
        let last = inner.last().unwrap().0.clone();
        index.push((last, put(block(&inner), kind)));
    }
    let (metadata, index) = (put(block(&[]), 0), put(block(&index), 0));
    let mut footer = [metadata, index].concat();
    footer.resize(40, 0);
    footer.extend_from_slice(&MAGIC.to_le_bytes());
    out.extend_from_slice(&footer);
    out
}

/// An edit of a manifest.
#[derive(Default)]
pub(crate) struct Edit(pub(crate) Vec<u8>);

impl Edit {
    pub(crate) fn comparator(mut self, name: &str) -> Edit {
        varint(1, &mut self.0);
        text(name.as_bytes(), &mut self.0);
        self
    }

    /// Adds a number field: `log` is 2, `last_sequence` 4, `previous_log` 9.
    pub(crate) fn number(mut self, field: u64, number: u64) -> Edit {
        varint(field, &mut self.0);
        varint(number, &mut self.0);
        self
    }

    pub(crate) fn add(mut self, number: u64, length: usize) -> Edit {
        for number in [7, 0, number, length as u64] {
            varint(number, &mut self.0);
        }
        text(b"", &mut self.0);
        text(b"", &mut self.0);
        self
    }

    pub(crate) fn remove(mut self, number: u64) -> Edit {
        for number in [6, 0, number] {
            varint(number, &mut self.0);
        }
        self
    }
}

/// Returns a manifest of these edits.
pub(crate) fn manifest(edits: Vec<Edit>) -> Vec<u8> {
    let first = Edit::default().comparator("leveldb.BytewiseComparator");
    records(&[first].into_iter().chain(edits).map(|edit| edit.0).collect::<Vec<_>>())
}
