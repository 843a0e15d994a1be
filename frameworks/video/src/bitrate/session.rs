//! A session: chunks are downloaded over a trace into a buffer that plays. It chooses no bitrate.

use std::sync::Arc;

use super::{BitrateError, Movie, Trace};
use crate::random::SplitMix64;

/// Properties of the network and the player, apart from the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Time from a request to its first byte, in seconds.
    pub round_trip: f64,
    /// Fraction of the transferred bytes that is video, without headers.
    pub payload: f64,
    /// Half of the range by which the time of a download varies, uniformly: 0.1 for 0.9 to 1.1 times that time. It is
    /// drawn from the seed.
    pub noise: f64,
    /// Capacity of the buffer in seconds of video.
    pub buffer: f64,
    /// Step by which the player waits while the buffer is full, in seconds.
    pub pause: f64,
}

impl Default for Network {
    fn default() -> Network {
        Network { round_trip: 0.08, payload: 0.95, noise: 0.0, buffer: 60.0, pause: 0.5 }
    }
}

/// Coefficients of the score of a chunk: the linear score of Pensieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreWeights {
    /// Penalty for each second of rebuffering.
    pub rebuffer: f64,
    /// Penalty for each Mbit/s of difference between the chunk and the previous one.
    pub change: f64,
}

impl Default for ScoreWeights {
    fn default() -> ScoreWeights {
        ScoreWeights { rebuffer: 4.3, change: 1.0 }
    }
}

/// Result of one downloaded chunk. Times are in seconds, rates in Mbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Number of the chunk, from 0.
    pub number: usize,
    /// Rung of the chunk.
    pub rung: usize,
    /// Size in bytes.
    pub bytes: f64,
    /// Time of the download.
    pub download: f64,
    /// Time for which the video stopped for this chunk. For the first chunk that is the whole download.
    pub rebuffer: f64,
    /// Time for which the player waited after the chunk with a full buffer.
    pub paused: f64,
    /// Seconds of video in the buffer after that wait.
    pub buffer: f64,
    /// Measured throughput of the download.
    pub throughput: f64,
    /// Bitrate of the chunk.
    pub bitrate: f64,
    /// Difference to the bitrate of the previous chunk.
    pub change: f64,
    /// Score of the chunk by [`ScoreWeights`].
    pub score: f64,
}

/// A movie that is played over a trace. The same seed and the same rungs lead to the same chunks. The bandwidth and its
/// noise do not depend on the rungs.
#[derive(Clone, Debug)]
pub struct Session {
    movie: Arc<Movie>,
    trace: Arc<Trace>,
    network: Network,
    quality: ScoreWeights,
    rng: SplitMix64,
    now: f64,
    started: f64,
    buffer: f64,
    next: usize,
    last_rung: usize,
    score: f64,
}

impl Session {
    /// Creates a session that starts at a place in the trace that the seed decides; the seed decides the noise too. The
    /// rung before the first chunk, from which its change counts, is the second one, as in Pensieve.
    ///
    /// # Errors
    /// Returns an error if a setting of the network or of the score is invalid.
    pub fn new(
        movie: Arc<Movie>,
        trace: Arc<Trace>,
        network: Network,
        quality: ScoreWeights,
        seed: u64,
    ) -> Result<Session, BitrateError> {
        let rules = [
            ("round_trip", (0.0..=10.0).contains(&network.round_trip), "must be 0 to 10 s"),
            ("payload", (0.01..=1.0).contains(&network.payload), "must be 0.01 to 1"),
            ("noise", (0.0..=0.9).contains(&network.noise), "must be 0 to 0.9"),
            (
                "buffer",
                (2.0 * movie.chunk_seconds()..=3600.0).contains(&network.buffer),
                "must be two chunks to 3600 s",
            ),
            ("pause", (0.001..=60.0).contains(&network.pause), "must be 0.001 to 60 s"),
            ("rebuffer", (0.0..=1e6).contains(&quality.rebuffer), "must be 0 to 10^6"),
            ("change", (0.0..=1e6).contains(&quality.change), "must be 0 to 10^6"),
        ];
        if let Some((setting, _, rule)) = rules.into_iter().find(|(_, holds, _)| !holds) {
            return Err(BitrateError::Setting { setting, rule });
        }
        let mut rng = SplitMix64::new(base::scramble(seed ^ 0x7365_7373_696f_6e00));
        let now = rng.between(0.0, trace.seconds());
        let last_rung = 1.min(movie.ladder().len() - 1);
        Ok(Session {
            movie,
            trace,
            network,
            quality,
            rng,
            now,
            started: now,
            buffer: 0.0,
            next: 0,
            last_rung,
            score: 0.0,
        })
    }

    /// Downloads the next chunk in this rung, or in the highest one above the ladder. Returns `None` after the last
    /// chunk.
    pub fn step(&mut self, rung: usize) -> Option<Chunk> {
        let rung = rung.min(self.movie.ladder().len() - 1);
        let bytes = *self.movie.sizes(self.next)?.get(rung)?;
        let varied = 1.0 + self.network.noise * (2.0 * self.rng.unit() - 1.0);
        let plain = self.trace.transfer(self.now, bytes, self.network.payload) + self.network.round_trip;
        let download = plain * varied;
        let rebuffer = (download - self.buffer).max(0.0);
        self.buffer = (self.buffer - download).max(0.0) + self.movie.chunk_seconds();
        self.now += download;
        let over = (self.buffer - self.network.buffer).max(0.0);
        let paused = (over / self.network.pause).ceil() * self.network.pause;
        self.buffer -= paused;
        self.now += paused;
        let bitrate = self.movie.megabits(rung);
        let change = (bitrate - self.movie.megabits(self.last_rung)).abs();
        let score = bitrate - self.quality.rebuffer * rebuffer - self.quality.change * change;
        let chunk = Chunk {
            number: self.next,
            rung,
            bytes,
            download,
            rebuffer,
            paused,
            buffer: self.buffer,
            throughput: bytes * 8e-6 / download.max(1e-9),
            bitrate,
            change,
            score,
        };
        self.last_rung = rung;
        self.next += 1;
        self.score += score;
        Some(chunk)
    }

    /// Returns the movie.
    pub fn movie(&self) -> &Movie {
        &self.movie
    }

    /// Returns the number of chunks that are not yet downloaded.
    pub fn left(&self) -> usize {
        self.movie.chunks() - self.next
    }

    /// Returns the size of the next chunk in each rung, in bytes; `None` after the last one.
    pub fn next_sizes(&self) -> Option<&[f64]> {
        self.movie.sizes(self.next)
    }

    /// Returns the rung of the last chunk.
    pub fn last_rung(&self) -> usize {
        self.last_rung
    }

    /// Returns the seconds of video in the buffer.
    pub fn buffer(&self) -> f64 {
        self.buffer
    }

    /// Returns the capacity of the buffer in seconds of video.
    pub fn buffer_limit(&self) -> f64 {
        self.network.buffer
    }

    /// Returns the time since the session started, in seconds.
    pub fn elapsed(&self) -> f64 {
        self.now - self.started
    }

    /// Returns the time in the trace in seconds, for policies that know the future.
    pub fn time_in_trace(&self) -> f64 {
        self.now
    }

    /// Returns the trace, for policies that know the future.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the properties of the network and the player.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Returns the coefficients of the score.
    pub fn quality(&self) -> ScoreWeights {
        self.quality
    }

    /// Returns the sum of the scores of all chunks so far.
    pub fn score(&self) -> f64 {
        self.score
    }
}
