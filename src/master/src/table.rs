//! A table of shared rows by number, whose copy costs a fraction of its size: what snapshots are made of.
//!
//! Rows are kept in chunks of 64; a copy shares all chunks, and a change copies only the chunk and the row that it
//! touches, if a copy still holds them. It does not know what a row is.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows per chunk. Numbers are given out in order, so chunks fill up.
const CHUNK: u64 = 64;

/// Some rows with neighbouring numbers. It never changes while anybody holds a reference to it, be it a weak one: what has
/// been made of its rows stays true for as long as it lives.
#[derive(Debug)]
pub struct Chunk<T> {
    /// By the last part of the number.
    rows: [Option<Arc<T>>; CHUNK as usize],
    len: usize,
}

impl<T> Chunk<T> {
    /// Its rows, in the order of their numbers.
    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.rows.iter().flatten()
    }

    fn get(&self, key: u64) -> Option<&Arc<T>> {
        self.rows[(key % CHUNK) as usize].as_ref()
    }

    /// The row of that number in the place where there is one or will be one.
    fn place(&mut self, key: u64) -> &mut Option<Arc<T>> {
        &mut self.rows[(key % CHUNK) as usize]
    }
}

/// Rows by number, in the order of their numbers. `clone` is cheap; numbers are never used twice.
#[derive(Debug)]
pub struct Table<T> {
    chunks: BTreeMap<u64, Arc<Chunk<T>>>,
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
        Table { chunks: BTreeMap::new(), next: 0, len: 0 }
    }
}

impl<T> Table<T> {
    /// The number that the next [`Table::insert`] gives.
    pub fn next_key(&self) -> u64 {
        self.next
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row of that number.
    pub fn get(&self, key: u64) -> Option<&Arc<T>> {
        self.chunks.get(&(key / CHUNK))?.get(key)
    }

    /// All rows, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Arc<T>)> {
        self.chunks.iter().flat_map(|(number, chunk)| {
            let keys = number * CHUNK..;
            keys.zip(&chunk.rows).filter_map(|(key, row)| Some((key, row.as_ref()?)))
        })
    }

    /// All rows in chunks, in the order of their numbers.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk<T>>> {
        self.chunks.values()
    }

    /// The rows alone.
    pub fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.iter().map(|(_, row)| row)
    }

    /// Adds a row and names its number.
    pub fn insert(&mut self, row: Arc<T>) -> u64 {
        let key = self.next;
        self.next += 1;
        self.put(key, row);
        key
    }

    /// Takes the next number for something that is no row.
    pub fn take_key(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Puts a row back under a number that it had before.
    pub fn put(&mut self, key: u64, row: Arc<T>) {
        let empty = || Arc::new(Chunk { rows: [const { None }; CHUNK as usize], len: 0 });
        let chunk = Arc::make_mut(self.chunks.entry(key / CHUNK).or_insert_with(empty));
        if chunk.place(key).replace(row).is_none() {
            chunk.len += 1;
            self.len += 1;
        }
        self.next = self.next.max(key + 1);
    }

    /// Takes a row out.
    pub fn remove(&mut self, key: u64) -> Option<Arc<T>> {
        let chunk = self.chunks.get_mut(&(key / CHUNK))?;
        chunk.get(key)?;
        let chunk = Arc::make_mut(chunk);
        let row = chunk.place(key).take();
        chunk.len -= 1;
        if chunk.len == 0 {
            self.chunks.remove(&(key / CHUNK));
        }
        self.len -= 1;
        row
    }

    /// Takes out the row with the lowest number.
    pub fn pop_first(&mut self) -> Option<Arc<T>> {
        let key = self.iter().next()?.0;
        self.remove(key)
    }
}

impl<T: Clone> Table<T> {
    /// The row of that number, to be changed; copied first if a snapshot shares it.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(&(key / CHUNK))?;
        chunk.get(key)?;
        Arc::make_mut(chunk).place(key).as_mut().map(Arc::make_mut)
    }
}

/// Copy on write. `Arc::make_mut` would do, but that a row need not be `Clone` for it.
impl<T> Clone for Chunk<T> {
    fn clone(&self) -> Chunk<T> {
        Chunk { rows: self.rows.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests {
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
    fn numbers_are_not_used_twice() {
        let mut table = Table::default();
        let one = table.insert(Arc::new('a'));
        table.remove(one);
        assert_ne!(table.insert(Arc::new('b')), one);
        assert_eq!(table.pop_first().as_deref(), Some(&'b'));
        assert!(table.is_empty() && table.pop_first().is_none());
    }
}
