//! Divides a stage's input into parts for tasks.
//!
//! Files are cut into pieces that are never cut further (`scan`, feature `service`, reads the files); a task gets
//! consecutive pieces. How many it gets is decided elsewhere.

#[cfg(feature = "service")]
pub mod scan;

use serde::{Deserialize, Serialize};

/// Maximum number of pieces of a stage's input.
pub const PIECES_MAX: usize = 200_000;

/// A file at the time when it was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Path of the file.
    pub path: String,
    /// Length of the file in bytes.
    pub size: u64,
}

/// A piece of a file that is never cut further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece(
    /// Index of the file.
    pub u32,
    /// Offset of the piece in the file, in bytes.
    pub u64,
    /// Length of the piece, in bytes.
    pub u64,
    /// Number of units in the piece.
    pub u64,
);

/// The files of a stage, in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pieces {
    /// Files in the order of their names.
    pub files: Vec<File>,
    /// Pieces in the order of the files.
    pub pieces: Vec<Piece>,
}

/// A task's part of an input: consecutive pieces, numbers, or tasks whose outputs it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part(
    /// Index of the first piece, number or task.
    pub u64,
    /// Number of pieces, numbers or tasks.
    pub u64,
    /// Number of units of the part.
    pub u64,
    /// Requested number of units; 0 if the part is too small to be a measurement of that size.
    pub u64,
);

/// Limit of the bytes of the paths of one task's files, which are passed in its environment.
const PATHS_MAX: usize = 64 << 10;
/// Bytes of an extent's text besides its path.
const EXTENT_TEXT: usize = 64;

/// A range of a file that belongs to a task's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Path of the file.
    pub path: String,
    /// Offset of the range, in bytes.
    pub offset: u64,
    /// Length of the range, in bytes.
    pub length: u64,
    /// Length of the file when it was examined, in bytes.
    pub size: u64,
}

impl Pieces {
    /// Returns the number of units from this piece on.
    pub fn units_from(&self, first: u64) -> u64 {
        let first = usize::try_from(first).unwrap_or(usize::MAX).min(self.pieces.len());
        self.pieces[first..].iter().map(|piece| piece.3).sum()
    }

    /// Returns the next part: as many pieces from `first` on as have `units` at most, or one that has more. All are of
    /// one file unless the part may span files.
    pub fn part(&self, first: u64, units: u64, spans_files: bool) -> Option<Part> {
        let start = usize::try_from(first).ok()?;
        let head = self.pieces.get(start)?;
        let (mut count, mut sum, mut paths, mut file) = (0, 0, 0, None);
        for piece in &self.pieces[start..] {
            if file != Some(piece.0) {
                file = Some(piece.0);
                paths += self.files.get(piece.0 as usize).map_or(0, |file| file.path.len() + EXTENT_TEXT);
            }
            let other = !spans_files && piece.0 != head.0;
            if other || (count > 0 && (sum + piece.3 > units || paths > PATHS_MAX)) {
                break;
            }
            count += 1;
            sum += piece.3;
        }
        // A part that is far smaller, as at the end of a file, does not measure the requested size.
        Some(Part(first, count, sum, if sum >= units / 2 { units } else { 0 }))
    }

    /// Returns the files of a part, each once.
    pub fn extents(&self, part: Part) -> Vec<Extent> {
        let range =
            usize::try_from(part.0).unwrap_or(usize::MAX)..usize::try_from(part.0 + part.1).unwrap_or(usize::MAX);
        let mut extents: Vec<(u32, Extent)> = Vec::new();
        for piece in self.pieces.get(range).unwrap_or_default() {
            match extents.last_mut() {
                Some((file, extent)) if *file == piece.0 => extent.length += piece.2,
                _ => {
                    let Some(file) = self.files.get(piece.0 as usize) else { continue };
                    let extent = Extent { path: file.path.clone(), offset: piece.1, length: piece.2, size: file.size };
                    extents.push((piece.0, extent));
                }
            }
        }
        extents.into_iter().map(|(_, extent)| extent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(lengths: &[Vec<u64>]) -> Pieces {
        let mut all = Pieces::default();
        for (place, file) in (0..).zip(lengths) {
            let mut at = 0;
            for length in file {
                all.pieces.push(Piece(place, at, *length, *length));
                at += length;
            }
            all.files.push(File { path: format!("/f{place}"), size: at });
        }
        all
    }

    proptest! {
        /// Checks that the parts of any sizes together are all bytes of all files, each once and in order.
        #[test]
        fn parts_are_all_of_the_input(
            lengths in prop::collection::vec(prop::collection::vec(1..50u64, 1..8), 1..6),
            sizes in prop::collection::vec(1..120u64, 1..50),
            spans in any::<bool>(),
        ) {
            let all = pieces(&lengths);
            let (mut next, mut seen, mut turn) = (0, vec![0; all.files.len()], 0);
            while let Some(part) = all.part(next, sizes[turn % sizes.len()], spans) {
                prop_assert!(part.1 > 0);
                let extents = all.extents(part);
                prop_assert!(spans || extents.len() == 1);
                prop_assert_eq!(extents.iter().map(|e| e.length).sum::<u64>(), part.2);
                for extent in extents {
                    let file: usize = extent.path[2..].parse().unwrap();
                    prop_assert_eq!(extent.offset, seen[file]);
                    seen[file] += extent.length;
                }
                next += part.1;
                turn += 1;
            }
            prop_assert_eq!(next as usize, all.pieces.len());
            let sizes: Vec<u64> = all.files.iter().map(|f| f.size).collect();
            prop_assert_eq!(seen, sizes);
        }
    }
}
