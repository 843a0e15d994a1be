//! A session: chunks come over a trace into a buffer that plays. It chooses no bitrate.

use std::sync::Arc;

use super::{BitrateError, Movie, Trace};
use crate::chance::Chance;

/// A network and a player beside the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Seconds from a request to its first byte.
    pub round_trip: f64,
    /// The part of what is carried that is video, without headers.
    pub payload: f64,
    /// How far the time of a download varies, evenly: 0.1 for 0.9 to 1.1 of it. Drawn from the seed.
    pub noise: f64,
    /// Seconds of video that the buffer holds.
    pub buffer: f64,
    /// The seconds by which the player waits while the buffer is full.
    pub pause: f64,
}

impl Default for Network {
    fn default() -> Network {
        Network { round_trip: 0.08, payload: 0.95, noise: 0.0, buffer: 60.0, pause: 0.5 }
    }
}

/// What a chunk is worth: the linear score of Pensieve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quality {
    /// Less for each second that the video stands.
    pub rebuffer: f64,
    /// Less for each Mbit/s between the chunk and the one before.
    pub change: f64,
}

impl Default for Quality {
    fn default() -> Quality {
        Quality { rebuffer: 4.3, change: 1.0 }
    }
}

/// What came of one chunk. Times are seconds, rates Mbit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chunk {
    /// Which one it is, from 0.
    pub number: usize,
    /// Its rung of the ladder.
    pub rung: usize,
    /// Its bytes.
    pub bytes: f64,
    /// How long it took.
    pub download: f64,
    /// How long the video stood for it. Before the first chunk that is the whole download.
    pub rebuffer: f64,
    /// How long the player waited after it, with a full buffer.
    pub paused: f64,
    /// Seconds of video in the buffer after that.
    pub buffer: f64,
    /// What the download measured.
    pub throughput: f64,
    /// Its bitrate.
    pub bitrate: f64,
    /// The difference to the bitrate before it.
    pub change: f64,
    /// Its score by [`Quality`].
    pub score: f64,
}

/// A movie that is watched over a trace. The same seed and the same rungs lead to the same chunks; what the network
/// carries and how much it varies does not depend on the rungs.
#[derive(Clone, Debug)]
pub struct Session {
    movie: Arc<Movie>,
    trace: Arc<Trace>,
    network: Network,
    quality: Quality,
    chance: Chance,
    now: f64,
    started: f64,
    buffer: f64,
    next: usize,
    last_rung: usize,
    score: f64,
}

impl Session {
    /// A session that begins somewhere in the trace. The seed decides where, and the noise. The rung before the first
    /// chunk, from which its change counts, is the second one, as in Pensieve.
    ///
    /// # Errors
    /// A setting of the network or of the score that breaks its rule.
    pub fn new(
        movie: Arc<Movie>,
        trace: Arc<Trace>,
        network: Network,
        quality: Quality,
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
        let mut chance = Chance::new(base::scramble(seed ^ 0x7365_7373_696f_6e00));
        let now = chance.between(0.0, trace.seconds());
        let last_rung = 1.min(movie.ladder().len() - 1);
        Ok(Session {
            movie,
            trace,
            network,
            quality,
            chance,
            now,
            started: now,
            buffer: 0.0,
            next: 0,
            last_rung,
            score: 0.0,
        })
    }

    /// Downloads the next chunk in this rung, or in the highest one above the ladder; none after the last chunk.
    pub fn step(&mut self, rung: usize) -> Option<Chunk> {
        let rung = rung.min(self.movie.ladder().len() - 1);
        let bytes = *self.movie.sizes(self.next)?.get(rung)?;
        let varied = 1.0 + self.network.noise * (2.0 * self.chance.unit() - 1.0);
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

    /// The movie.
    pub fn movie(&self) -> &Movie {
        &self.movie
    }

    /// Chunks that are still to come.
    pub fn left(&self) -> usize {
        self.movie.chunks() - self.next
    }

    /// Bytes of the next chunk in each rung; none after the last one.
    pub fn next_sizes(&self) -> Option<&[f64]> {
        self.movie.sizes(self.next)
    }

    /// The rung of the last chunk.
    pub fn last_rung(&self) -> usize {
        self.last_rung
    }

    /// Seconds of video in the buffer.
    pub fn buffer(&self) -> f64 {
        self.buffer
    }

    /// Seconds of video that the buffer holds.
    pub fn buffer_limit(&self) -> f64 {
        self.network.buffer
    }

    /// Seconds since the beginning.
    pub fn elapsed(&self) -> f64 {
        self.now - self.started
    }

    /// The time in the trace, for policies that know the future.
    pub fn time_in_trace(&self) -> f64 {
        self.now
    }

    /// The trace, for policies that know the future.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The network and the player.
    pub fn network(&self) -> Network {
        self.network
    }

    /// What chunks are worth.
    pub fn quality(&self) -> Quality {
        self.quality
    }

    /// The scores of all chunks until now, together.
    pub fn score(&self) -> f64 {
        self.score
    }
}
