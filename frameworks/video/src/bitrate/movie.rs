//! A video in chunks and bitrates: the size of each chunk in bytes. It has no pictures.

use super::{BitrateError, CHUNK_SECONDS, CHUNKS, LADDER};
use crate::random::SplitMix64;

/// Maximum number of chunks of a movie.
const MOST_CHUNKS: usize = 100_000;

/// Maximum number of rungs of a ladder.
const MOST_RUNGS: usize = 32;

/// A movie as the sizes of its chunks in each bitrate.
#[derive(Clone, Debug, PartialEq)]
pub struct Movie {
    ladder: Vec<u32>,
    /// Bitrates of the ladder in Mbit/s.
    bitrates: Vec<f64>,
    seconds: f64,
    /// Sizes in bytes, by chunk, then by rung.
    sizes: Vec<Vec<f64>>,
}

impl Movie {
    /// Creates a movie with these sizes: for each chunk its bytes in each rung of the ladder (kbit/s, from the lowest).
    ///
    /// # Errors
    /// Returns an error if
    ///
    /// - the ladder does not rise, or has no or more than 32 rungs;
    /// - there are no chunks or more than 100,000, or chunks have no length;
    /// - a chunk does not have a size above 0 for each rung.
    pub fn new(ladder: &[u32], seconds: f64, sizes: Vec<Vec<f64>>) -> Result<Movie, BitrateError> {
        let invalid = |setting, rule| Err(BitrateError::Setting { setting, rule });
        if !(1..=MOST_RUNGS).contains(&ladder.len()) || ladder[0] == 0 || !ladder.is_sorted_by(|a, b| a < b) {
            return invalid("ladder", "must be 1 to 32 bitrates above 0, each above the one before");
        }
        if !(0.1..=60.0).contains(&seconds) {
            return invalid("chunk_seconds", "must be 0.1 to 60");
        }
        if !(1..=MOST_CHUNKS).contains(&sizes.len()) {
            return invalid("chunks", "must be 1 to 100,000");
        }
        let usable =
            |chunk: &Vec<f64>| chunk.len() == ladder.len() && chunk.iter().all(|size| (1.0..1e12).contains(size));
        if !sizes.iter().all(usable) {
            return invalid("sizes", "must have bytes, 1 to 10^12, for each rung of each chunk");
        }
        Ok(Movie::valid(ladder, seconds, sizes))
    }

    fn valid(ladder: &[u32], seconds: f64, sizes: Vec<Vec<f64>>) -> Movie {
        let bitrates = ladder.iter().map(|kilobits| f64::from(*kilobits) / 1000.0).collect();
        Movie { ladder: ladder.to_vec(), bitrates, seconds, sizes }
    }

    /// Makes a movie of this ladder whose chunk sizes vary about their bitrate, by about a tenth between rungs and
    /// twice that between scenes. The same seed makes the same movie.
    ///
    /// # Errors
    /// Returns the errors of [`Movie::new`].
    pub fn made(ladder: &[u32], seconds: f64, chunks: usize, seed: u64) -> Result<Movie, BitrateError> {
        Movie::new(ladder, seconds, made(ladder, seconds, chunks.min(MOST_CHUNKS + 1), seed))
    }

    /// Makes a movie with Pensieve's ladder, length and number of chunks.
    pub fn like_pensieve(seed: u64) -> Movie {
        Movie::valid(&LADDER, CHUNK_SECONDS, made(&LADDER, CHUNK_SECONDS, CHUNKS, seed))
    }

    /// Returns the bitrates in kbit/s, from the lowest.
    pub fn ladder(&self) -> &[u32] {
        &self.ladder
    }

    /// Returns the bitrates in Mbit/s, from the lowest.
    pub fn bitrates(&self) -> &[f64] {
        &self.bitrates
    }

    /// Returns the bitrate of a rung in Mbit/s; above the ladder, that of the highest rung.
    pub fn megabits(&self, rung: usize) -> f64 {
        self.bitrates[rung.min(self.bitrates.len() - 1)]
    }

    /// Returns the length of a chunk in seconds.
    pub fn chunk_seconds(&self) -> f64 {
        self.seconds
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the size of a chunk in each rung, in bytes; `None` after the last chunk.
    pub fn sizes(&self, chunk: usize) -> Option<&[f64]> {
        self.sizes.get(chunk).map(Vec::as_slice)
    }
}

/// Makes the sizes of a generated movie.
fn made(ladder: &[u32], seconds: f64, chunks: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = SplitMix64::new(base::scramble(seed ^ 0x6d6f_7669_6500));
    let chunk = |_| {
        let scene = (0.2 * rng.normal()).exp().clamp(0.5, 2.0);
        let size = |rate: &u32| f64::from(*rate) * 125.0 * seconds * scene * (0.05 * rng.normal()).exp();
        let mut sizes: Vec<f64> = ladder.iter().map(size).collect();
        // A chunk is never smaller in a higher rung.
        for at in 1..sizes.len() {
            sizes[at] = sizes[at].max(sizes[at - 1]);
        }
        sizes
    };
    (0..chunks).map(chunk).collect()
}
