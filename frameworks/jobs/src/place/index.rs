//! An index of rooms that finds the first room, in the order of a key, with enough free amounts.
//!
//! Rooms are stored in blocks, sorted by their key. A block has the maximum of each amount over its rooms, so that a
//! block without enough free amounts is skipped at once. The policy defines the key.

use crate::Need;

/// Maximum number of rooms of a block. A block is searched from its start, so it is short.
const BLOCK_MAX: usize = 32;

/// A room in the index. No block is ever empty.
#[derive(Clone, Debug)]
struct Entry {
    key: f64,
    room: u32,
    free: Need,
}

impl Entry {
    /// Returns whether the entry precedes a key and a room: by key, and by the number of the room where keys are equal.
    fn is_before(&self, key: f64, room: u32) -> bool {
        self.key.total_cmp(&key).then(self.room.cmp(&room)).is_lt()
    }
}

#[derive(Clone, Debug, Default)]
struct Block {
    entries: Vec<Entry>,
    /// Upper bound of each amount over all entries.
    most: Need,
}

impl Block {
    /// Updates the bound after an entry with these amounts was reduced or removed.
    fn without(&mut self, before: &Need) {
        if (0..crate::need::KINDS).any(|k| before.0[k] >= self.most.0[k]) {
            self.renew_most();
        }
    }

    fn renew_most(&mut self) {
        self.most = self.entries.iter().fold(Need([i64::MIN; crate::need::KINDS]), |most, e| most.upper(&e.free));
    }
}

/// Rooms in the order of their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    blocks: Vec<Block>,
}

impl Index {
    /// Creates an index of these keys and free amounts; rooms are numbered from 0.
    pub(super) fn new(rooms: impl IntoIterator<Item = (f64, Need)>) -> Index {
        let mut entries: Vec<Entry> = (0..).zip(rooms).map(|(room, (key, free))| Entry { key, room, free }).collect();
        entries.sort_by(|a, b| a.key.total_cmp(&b.key).then(a.room.cmp(&b.room)));
        let mut blocks = Vec::new();
        // Blocks are half full, so that the first moves split none.
        for part in entries.chunks(BLOCK_MAX / 2) {
            let mut block = Block { entries: part.to_vec(), most: Need::default() };
            block.renew_most();
            blocks.push(block);
        }
        Index { blocks }
    }

    /// Returns the first room with a key of at least `least` that `need` fits into and `allowed` accepts.
    pub(super) fn first(&self, need: &Need, least: f64, mut allowed: impl FnMut(usize) -> bool) -> Option<usize> {
        let start = self.blocks.partition_point(|b| b.entries.last().is_some_and(|e| e.key < least));
        let blocks = self.blocks[start..].iter().filter(|b| need.fits(&b.most));
        let mut entries = blocks.flat_map(|b| &b.entries);
        entries.find(|e| e.key >= least && need.fits(&e.free) && allowed(e.room as usize)).map(|e| e.room as usize)
    }

    /// Moves a room from one key to another, with its present free amounts.
    pub(super) fn change(&mut self, room: usize, from: f64, to: f64, free: Need) {
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        if let Some((at, place)) = self.find(room, from) {
            let block = &mut self.blocks[at];
            if from == to {
                let before = std::mem::replace(&mut block.entries[place].free, free);
                block.without(&before);
                block.most = block.most.upper(&free);
                return;
            }
            let before = block.entries.remove(place);
            block.without(&before.free);
            if block.entries.is_empty() {
                self.blocks.remove(at);
            }
        }
        self.insert(Entry { key: to, room, free });
    }

    fn find(&self, room: u32, key: f64) -> Option<(usize, usize)> {
        let block = self.blocks.partition_point(|b| b.entries.last().is_some_and(|e| e.is_before(key, room)));
        let entries = &self.blocks.get(block)?.entries;
        let place = entries.partition_point(|e| e.is_before(key, room));
        entries.get(place).filter(|e| e.room == room).map(|_| (block, place))
    }

    fn insert(&mut self, entry: Entry) {
        if self.blocks.is_empty() {
            self.blocks.push(Block { entries: Vec::new(), most: entry.free });
        }
        let after =
            self.blocks.partition_point(|b| b.entries.last().is_some_and(|e| e.is_before(entry.key, entry.room)));
        let at = after.min(self.blocks.len() - 1);
        let block = &mut self.blocks[at];
        let place = block.entries.partition_point(|e| e.is_before(entry.key, entry.room));
        block.most = block.most.upper(&entry.free);
        block.entries.insert(place, entry);
        if block.entries.len() > BLOCK_MAX {
            let mut upper = Block { entries: block.entries.split_off(BLOCK_MAX / 2), most: Need::default() };
            upper.renew_most();
            block.renew_most();
            self.blocks.insert(at + 1, upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Invariant: after any moves, the index returns the same rooms as a sorted list.
        #[test]
        fn answers_as_a_sorted_list(
            starts in prop::collection::vec(0..50i64, 1..300),
            moves in prop::collection::vec((any::<prop::sample::Index>(), 0..50i64), 0..300),
            asked in 0..50i64,
            least in 0..50i64,
        ) {
            let need = |n| Need([n, 50 - n, 0, 0, 0]);
            let mut rooms = starts.clone();
            let mut index = Index::new(starts.iter().map(|&n| (n as f64, need(n))));
            for (which, to) in moves {
                let room = which.index(rooms.len());
                index.change(room, rooms[room] as f64, to as f64, need(to));
                rooms[room] = to;
            }
            let mut sorted: Vec<(i64, usize)> = rooms.iter().copied().zip(0..).collect();
            sorted.sort_unstable();
            let wanted = Need([asked, 0, 0, 0, 0]);
            let odd = |room: usize| room % 2 == 1;
            let expected = sorted.iter().find(|(n, room)| *n >= least && wanted.fits(&need(*n)) && odd(*room));
            prop_assert_eq!(index.first(&wanted, least as f64, odd), expected.map(|(_, room)| *room));
        }
    }
}
