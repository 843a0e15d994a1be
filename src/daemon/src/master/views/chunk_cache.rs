//! A cache of texts and sums of parts of the cluster's state, kept as long as those parts do not change.
//!
//! A snapshot's tables consist of chunks that never change; most chunks of a large cluster are in the next snapshot,
//! too. So their text is written once, and a document refers to it instead of copying it.

use std::sync::{Arc, Mutex, Weak};

use base::lock;
use bytes::Bytes;
use master::{Agent, Chunk, Table, Task};
use protos::json::Writer;
use resources::Resources;
use rustc_hash::FxHashMap;

/// The cache. Its size depends on the size of the cluster and on the documents that are requested.
#[derive(Default)]
pub(in crate::master) struct ChunkCache {
    /// Texts of tasks, as `/state` and `/frameworks` list them.
    pub(super) tasks: CachedByChunk<Task, Bytes>,
    /// Sums of the resources of tasks, except those that were released.
    pub(super) used: CachedByChunk<Task, Resources>,
    /// Texts of agents, as `/state` lists them.
    pub(super) agents: CachedByChunk<Agent, Bytes>,
    /// Texts of agents, as `/slaves` lists them.
    pub(super) full_agents: CachedByChunk<Agent, Bytes>,
}

impl ChunkCache {
    /// Returns the resources that the tasks of a table use, except those that were released.
    pub(super) fn used(&self, tasks: &Table<Task>) -> Resources {
        let sum = |chunk: &Chunk<Task>| {
            let mut sum = Resources::default();
            chunk.values().filter(|task| !task.released).for_each(|task| sum += &*task.resources);
            sum
        };
        let mut used = Resources::default();
        tasks.chunks().for_each(|chunk| used += &self.used.get(chunk, sum));
        used
    }

    /// Removes the pieces of chunks that no longer exist.
    pub(super) fn sweep(&self) {
        self.tasks.sweep();
        self.used.sweep();
        self.agents.sweep();
        self.full_agents.sweep();
    }
}

/// A cached value, with its chunk.
type Piece<T, P> = (Weak<Chunk<T>>, P);

/// Cached values of one kind, one for each chunk.
pub(super) struct CachedByChunk<T, P> {
    /// Values by the address of the chunk, which is not reused while there is a weak reference to it.
    by_chunk: Mutex<FxHashMap<usize, Piece<T, P>>>,
}

impl<T, P> Default for CachedByChunk<T, P> {
    fn default() -> Self {
        CachedByChunk { by_chunk: Mutex::default() }
    }
}

impl<T, P: Clone> CachedByChunk<T, P> {
    fn get(&self, chunk: &Arc<Chunk<T>>, make: impl FnOnce(&Chunk<T>) -> P) -> P {
        let address = Arc::as_ptr(chunk).addr();
        if let Some((_, piece)) = lock(&self.by_chunk).get(&address) {
            return piece.clone();
        }
        let piece = make(chunk);
        lock(&self.by_chunk).insert(address, (Arc::downgrade(chunk), piece.clone()));
        piece
    }

    fn sweep(&self) {
        lock(&self.by_chunk).retain(|_, (chunk, _)| chunk.strong_count() > 0);
    }
}

/// Texts that are inserted into a document, each with the position of the byte that it replaces.
pub(super) type Splices = Vec<(usize, Bytes)>;

impl<T> CachedByChunk<T, Bytes> {
    /// Adds a table's rows to the array that `w` has opened.
    pub(super) fn list(
        &self,
        w: &mut Writer<'_>,
        splices: &mut Splices,
        table: &Table<T>,
        row: impl Fn(&mut Writer<'_>, &T),
    ) {
        for chunk in table.chunks() {
            let text = self.get(chunk, |chunk| {
                let mut text = Vec::new();
                let mut rows = Writer::new(&mut text);
                chunk.values().for_each(|one| row(&mut rows, one));
                drop(rows);
                Bytes::from(text.into_boxed_slice())
            });
            splices.push((w.put_in_later(), text));
        }
    }
}

/// Inserts the texts, and returns the document in parts.
pub(super) fn join_parts(text: Vec<u8>, splices: Splices) -> Vec<Bytes> {
    let text = Bytes::from(text);
    let mut parts = Vec::with_capacity(2 * splices.len() + 1);
    let mut done = 0;
    for (at, piece) in splices {
        parts.push(text.slice(done..at));
        parts.push(piece);
        done = at + 1;
    }
    parts.push(text.slice(done..));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(kept: &CachedByChunk<u32, Bytes>, table: &Table<u32>) -> String {
        let (mut out, mut splices) = (Vec::new(), Splices::new());
        let row = |w: &mut Writer<'_>, n: &u32| {
            w.uint(u64::from(*n));
        };
        Writer::new(&mut out).object(|w| {
            w.key("before").uint(1);
            w.key("numbers").array(|w| kept.list(w, &mut splices, table, row));
            w.key("after").array(|_| {});
        });
        join_parts(out, splices).iter().map(|part| std::str::from_utf8(part).unwrap()).collect()
    }

    #[test]
    fn only_what_has_changed_is_written_again() {
        let kept = CachedByChunk::default();
        let mut table = Table::default();
        assert_eq!(numbers(&kept, &table), r#"{"before":1,"numbers":[],"after":[]}"#);
        let keys: Vec<u64> = (0..200).map(|n| table.insert(Arc::new(n))).collect();
        let all = |changed: u32| {
            let list: Vec<String> = (0..200).map(|n| if n == 70 { changed } else { n }.to_string()).collect();
            format!(r#"{{"before":1,"numbers":[{}],"after":[]}}"#, list.join(","))
        };
        assert_eq!(numbers(&kept, &table), all(70));
        *table.get_mut(keys[70]).unwrap() = 7;
        assert_eq!(numbers(&kept, &table), all(7));
        let chunks = table.chunks().count();
        assert_eq!(lock(&kept.by_chunk).len(), chunks + 1);
        kept.sweep();
        assert_eq!(lock(&kept.by_chunk).len(), chunks);
        drop(table);
        kept.sweep();
        assert!(lock(&kept.by_chunk).is_empty());
    }
}
