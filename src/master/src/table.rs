//! A table of shared rows by number, whose copy costs a fraction of its size. Snapshots consist of them.
//!
//! Rows are kept in chunks of 64. A copy shares all chunks; a change copies only its chunk and its row, if a copy still
//! refers to them. The table does not depend on the type of its rows.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of rows per chunk. Keys are assigned in order, so chunks fill up.
const CHUNK: u64 = 64;

/// Rows with neighbouring keys. A chunk never changes while there is a reference to it, even a weak one: results
/// computed from its rows stay valid as long as it exists.
#[derive(Debug)]
pub struct Chunk<T> {
    /// Rows by the last bits of their keys.
    rows: [Option<Arc<T>>; CHUNK as usize],
    len: usize,
}

impl<T> Chunk<T> {
    /// Returns the rows, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter().flatten()
    }

    fn get(&self, key: u64) -> Option<&Arc<T>> {
        self.rows[(key % CHUNK) as usize].as_ref()
    }

    /// Returns the slot of a key, which may be empty.
    fn place(&mut self, key: u64) -> &mut Option<Arc<T>> {
        &mut self.rows[(key % CHUNK) as usize]
    }
}

/// Rows by key, in the order of their keys. `clone` is cheap; keys are never used twice.
#[derive(Debug)]
pub struct Table<T> {
    /// Chunks by number, in order. Most tables have few gaps, so that a chunk is found at once: see [`Table::find`].
    chunks: VecDeque<(u64, Arc<Chunk<T>>)>,
    next: u64,
    len: usize,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        Table { chunks: self.chunks.clone(), next: self.next, len: self.len }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { chunks: VecDeque::new(), next: 0, len: 0 }
    }
}

impl<T> Table<T> {
    /// Returns the key that the next [`Table::insert`] assigns.
    pub fn next_key(&self) -> u64 {
        self.next
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the row of a key.
    pub fn get(&self, key: u64) -> Option<&Arc<T>> {
        let place = self.find(key / CHUNK).ok()?;
        self.chunks[place].1.get(key)
    }

    /// Returns the index of a chunk, or the index at which it would be inserted.
    fn find(&self, number: u64) -> Result<usize, usize> {
        let Some((first, _)) = self.chunks.front() else { return Err(0) };
        let Some(distance) = number.checked_sub(*first) else { return Err(0) };
        // Without gaps the index is the distance from the first number; with gaps it is lower.
        let last = self.chunks.len() - 1;
        let guess = usize::try_from(distance).map_or(last, |distance| distance.min(last));
        match self.chunks[guess].0.cmp(&number) {
            Ordering::Equal => Ok(guess),
            Ordering::Less => Err(guess + 1),
            Ordering::Greater => self.chunks.binary_search_by_key(&number, |(number, _)| *number),
        }
    }

    /// Returns all rows with their keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let keys = number * CHUNK..;
            keys.zip(&chunk.rows).filter_map(|(key, row)| Some((key, row.as_ref()?)))
        })
    }

    /// Returns all chunks, in the order of their keys.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk<T>>> {
        self.chunks.iter().map(|(_, chunk)| chunk)
    }

    /// Returns all rows, in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.iter().map(|(_, row)| row)
    }

    /// Adds a row and returns its key.
    pub fn insert(&mut self, row: Arc<T>) -> u64 {
        let key = self.next;
        self.next += 1;
        self.put(key, row);
        key
    }

    /// Reserves the next key without adding a row.
    pub fn take_key(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Inserts a row again under a key that it had before.
    pub fn put(&mut self, key: u64, row: Arc<T>) {
        let number = key / CHUNK;
        let place = self.find(number).unwrap_or_else(|place| {
            let empty = Chunk { rows: [const { None }; CHUNK as usize], len: 0 };
            self.chunks.insert(place, (number, Arc::new(empty)));
            place
        });
        let chunk = Arc::make_mut(&mut self.chunks[place].1);
        if chunk.place(key).replace(row).is_none() {
            chunk.len += 1;
            self.len += 1;
        }
        self.next = self.next.max(key + 1);
    }

    /// Removes a row.
    pub fn remove(&mut self, key: u64) -> Option<Arc<T>> {
        let place = self.find(key / CHUNK).ok()?;
        let chunk = &mut self.chunks[place].1;
        chunk.get(key)?;
        let chunk = Arc::make_mut(chunk);
        let row = chunk.place(key).take();
        chunk.len -= 1;
        if chunk.len == 0 {
            self.chunks.remove(place);
        }
        self.len -= 1;
        row
    }

    /// Removes the row with the lowest key.
    pub fn pop_first(&mut self) -> Option<Arc<T>> {
        let key = self.iter().next()?.0;
        self.remove(key)
    }
}

impl<T: Clone> Table<T> {
    /// Returns a mutable row, which is copied first if a snapshot shares it.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let place = self.find(key / CHUNK).ok()?;
        let chunk = &mut self.chunks[place].1;
        chunk.get(key)?;
        Arc::make_mut(chunk).place(key).as_mut().map(Arc::make_mut)
    }
}

/// Clones a chunk for a copy on write, without requiring that rows implement `Clone`.
impl<T> Clone for Chunk<T> {
    fn clone(&self) -> Chunk<T> {
        Chunk { rows: self.rows.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_copy_does_not_see_later_changes() {
        let mut table = Table::default();
        let keys: Vec<u64> = (0..200).map(|n| table.insert(Arc::new(n))).collect();
        let copy = table.clone();
        *table.get_mut(keys[70]).unwrap() = 7000;
        assert_eq!(table.remove(keys[3]).as_deref(), Some(&3));
        assert_eq!((table.len(), copy.len()), (199, 200));
        assert_eq!((**table.get(keys[70]).unwrap(), **copy.get(keys[70]).unwrap()), (7000, 70));
        assert!(table.get(keys[3]).is_none() && copy.get(keys[3]).is_some());
        assert_eq!(table.values().count(), 199);
    }

    #[test]
    fn a_chunk_that_is_referred_to_does_not_change() {
        let mut table = Table::default();
        let key = table.insert(Arc::new(1));
        let seen = Arc::downgrade(table.chunks().next().unwrap());
        assert_eq!(seen.upgrade().unwrap().values().next(), Some(&Arc::new(1)));
        *table.get_mut(key).unwrap() = 2;
        assert!(seen.upgrade().is_none(), "it has been replaced");
        let seen = Arc::downgrade(table.chunks().next().unwrap());
        let copy = table.clone();
        table.remove(key);
        assert_eq!(seen.upgrade().unwrap().values().count(), 1);
        drop(copy);
        assert!(seen.upgrade().is_none());
    }

    #[test]
    fn chunks_are_found_beside_gaps_of_any_kind() {
        // Compares with a `BTreeMap`: rows in many chunks, of which whole ones are removed and added again.
        let (mut table, mut known) = (Table::default(), BTreeMap::new());
        for n in 0..5_000_u64 {
            known.insert(table.insert(Arc::new(n)), n);
        }
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let draw = base::split_mix(&mut state);
            // Whole chunks are removed at the beginning, in the middle and at the end.
            let key = (draw >> 33) % 5_200;
            if draw >> 62 == 0 && key < 5_000 {
                table.put(key, Arc::new(key));
                known.insert(key, key);
            } else {
                for key in key / 128 * 128..key / 128 * 128 + 100 {
                    assert_eq!(table.remove(key).map(|row| *row), known.remove(&key), "{key}");
                }
            }
            assert_eq!(table.get(key).map(|row| **row), known.get(&key).copied(), "{key}");
            assert_eq!(table.get_mut(key).map(|row| *row), known.get(&key).copied(), "{key}");
            assert_eq!(table.len(), known.len());
        }
        assert!(!known.is_empty());
        assert!(table.iter().map(|(key, row)| (key, **row)).eq(known));
    }

    #[test]
    fn numbers_are_not_used_twice() {
        let mut table = Table::default();
        let one = table.insert(Arc::new('a'));
        table.remove(one);
        assert_ne!(table.insert(Arc::new('b')), one);
        assert_eq!(table.pop_first().as_deref(), Some(&'b'));
        assert!(table.is_empty() && table.pop_first().is_none());
    }
}
