//! The environment for video on demand: chooses the bitrate of the next chunk, over a network whose bandwidth varies.
//! The model is `video`'s, after Pensieve (SIGCOMM 2017); the reward of a step is the score of its chunk.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::Deserialize;
use video::abr::{BitratePolicy, Measured, Study};
use video::bitrate::{CHUNK_SECONDS, CHUNKS, LADDER, Markov, Movie, Network, ScoreWeights, Session, Trace};

use crate::environment::{ChosenAction, roll_out};
use crate::error::rules;
use crate::files::Files;
use crate::random::Random;
use crate::space::{Actions, Field, Row, Spaces};
use crate::{Action, Environment, LearningError, Rollout, Step};

/// Settings of the environment; the defaults are those of Pensieve's training.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Bitrates in kbit/s, from the lowest.
    pub ladder: Vec<u32>,
    /// Number of chunks.
    pub chunks: usize,
    /// Length of a chunk in seconds.
    pub chunk_seconds: f64,
    /// Seed of the sizes of chunks, which are the same in all episodes.
    pub movie: u64,
    /// Files of traces, of which the seed of an episode chooses one; with none, traces are generated.
    pub traces: Vec<String>,
    /// Lowest mean bandwidth of generated traces, in Mbit/s.
    pub lowest: f64,
    /// Highest mean bandwidth of generated traces, in Mbit/s.
    pub highest: f64,
    /// Half of the range by which the time of a download varies, uniformly: 0.1 for 0.9 to 1.1 times that time.
    pub noise: f64,
    /// Capacity of the buffer in seconds of video.
    pub buffer: f64,
    /// Penalty for each second of rebuffering.
    pub rebuffer_penalty: f64,
    /// Penalty for each Mbit/s by which the bitrate changes.
    pub change_penalty: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ladder: LADDER.to_vec(),
            chunks: CHUNKS,
            chunk_seconds: CHUNK_SECONDS,
            movie: 1,
            traces: Vec::new(),
            lowest: Markov::default().lowest,
            highest: Markov::default().highest,
            noise: 0.1,
            buffer: Network::default().buffer,
            rebuffer_penalty: ScoreWeights::default().rebuffer,
            change_penalty: ScoreWeights::default().change,
        }
    }
}

/// Maximum number of traces.
const MOST_TRACES: usize = 10_000;

/// Number of chunks whose throughput is in an observation.
const PAST: usize = 8;

/// Names of the policies of [`Environment::baseline`].
const POLICIES: &str = "random, lowest, highest, 'constant RUNG', rate, bba-0, bba-1, mpc (RobustMPC), linear";

/// The environment for video on demand.
pub struct VideoBitrate {
    spaces: Spaces,
    movie: Arc<Movie>,
    traces: Arc<[Arc<Trace>]>,
    markov: Markov,
    network: Network,
    quality: ScoreWeights,
    session: Option<Session>,
    /// Throughput in Mbit/s and download time in seconds of the last chunks, the last one last.
    past: VecDeque<(f64, f64)>,
    measured: Measured,
    bitrates: f64,
    stood: f64,
    changes: f64,
}

/// State shared by all environments of a batch.
#[derive(Clone)]
pub struct Shared {
    movie: Arc<Movie>,
    traces: Arc<[Arc<Trace>]>,
    markov: Markov,
    network: Network,
    quality: ScoreWeights,
}

impl Shared {
    /// Makes the movie and reads the traces.
    ///
    /// # Errors
    /// Returns the first invalid setting, or a file that is not a trace.
    pub fn new(settings: &Settings, files: &dyn Files) -> Result<Shared, LearningError> {
        let refused = |why: video::bitrate::BitrateError| LearningError::setting("settings", why.to_string());
        rules([("traces", settings.traces.len() <= MOST_TRACES, "must be 10,000 files or less")])?;
        let read = |name: &String| {
            let unusable =
                |why: Box<dyn std::error::Error + Send + Sync>| LearningError::File { name: name.clone(), why };
            let text = files.read(name).map_err(|why| unusable(why.into()))?;
            let text = String::from_utf8(text).map_err(|why| unusable(why.into()))?;
            Trace::read(&text).map(Arc::new).map_err(|why| unusable(why.into()))
        };
        let movie = Movie::made(&settings.ladder, settings.chunk_seconds, settings.chunks, settings.movie);
        let markov = Markov { lowest: settings.lowest, highest: settings.highest, ..Markov::default() };
        let network = Network { noise: settings.noise, buffer: settings.buffer, ..Network::default() };
        let quality = ScoreWeights { rebuffer: settings.rebuffer_penalty, change: settings.change_penalty };
        let shared = Shared {
            movie: Arc::new(movie.map_err(refused)?),
            traces: settings.traces.iter().map(read).collect::<Result<Vec<_>, _>>()?.into(),
            markov,
            network,
            quality,
        };
        // Settings that a session rejects are rejected here.
        let trace = Arc::new(Trace::made(markov, 1).map_err(refused)?);
        Session::new(shared.movie.clone(), trace, network, quality, 1).map_err(refused)?;
        Ok(shared)
    }
}

impl VideoBitrate {
    /// Creates an environment.
    pub fn new(shared: Shared) -> VideoBitrate {
        let Shared { movie, traces, markov, network, quality } = shared;
        let rungs = movie.ladder().len();
        let spaces = Spaces {
            observation: vec![
                Field::floats("state", &[4]),
                Field::floats("throughput", &[PAST]),
                Field::floats("download", &[PAST]),
                Field::floats("next_sizes", &[rungs]),
                Field::floats("ladder", &[rungs]),
            ],
            action: Actions::Choices(vec![rungs as u32]),
            info: vec!["bitrate", "rebuffer", "change", "time"],
            reward: (f64::NEG_INFINITY, movie.megabits(rungs)),
        };
        let past = VecDeque::with_capacity(PAST);
        VideoBitrate {
            spaces,
            movie,
            traces,
            markov,
            network,
            quality,
            session: None,
            past,
            measured: Measured::default(),
            bitrates: 0.0,
            stood: 0.0,
            changes: 0.0,
        }
    }

    /// Returns the rung that a policy of `video` chooses for the next chunk.
    fn by(&self, kind: &BitratePolicy) -> ChosenAction {
        let rung = self.session.as_ref().map_or(0, |session| kind.next(session, &self.measured));
        ChosenAction::Choices(vec![rung as i32])
    }
}

/// Returns the policy of `video` with this name.
fn published(policy: &str) -> Option<BitratePolicy> {
    match policy {
        "rate" => Some(BitratePolicy::Rate),
        "bba-0" => Some(BitratePolicy::Buffer),
        "bba-1" => Some(BitratePolicy::BufferSizes),
        "mpc" => Some(BitratePolicy::Predictive),
        // The weights are a part of the program, and a test of `video` reads them.
        "linear" => Study::Movie.weights().ok().map(BitratePolicy::Linear),
        _ => None,
    }
}

impl Environment for VideoBitrate {
    fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) -> Result<(), LearningError> {
        let refused = |why: video::bitrate::BitrateError| LearningError::setting("settings", why.to_string());
        let trace = match self.traces.len() {
            0 => Arc::new(Trace::made(self.markov, seed).map_err(refused)?),
            all => self.traces[Random::new(seed, "trace").below(all)].clone(),
        };
        self.session =
            Some(Session::new(self.movie.clone(), trace, self.network, self.quality, seed).map_err(refused)?);
        self.past.clear();
        self.measured = Measured::default();
        (self.bitrates, self.stood, self.changes) = (0.0, 0.0, 0.0);
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, LearningError> {
        let Some(session) = &mut self.session else { return Err(LearningError::NoEpisode(0)) };
        let Some(chunk) = session.step(action.choice(0)) else { return Err(LearningError::NoEpisode(0)) };
        if self.past.len() == PAST {
            self.past.pop_front();
        }
        self.past.push_back((chunk.throughput, chunk.download));
        self.measured.add(chunk.throughput);
        self.bitrates += chunk.bitrate;
        self.stood += chunk.rebuffer;
        self.changes += chunk.change;
        Ok(Step { reward: chunk.score, terminated: session.left() == 0, truncated: false })
    }

    fn observe(&self, row: &mut Row<'_>) {
        let Some(session) = &self.session else { return };
        let last = self.movie.megabits(session.last_rung());
        let left = session.left() as f32 / self.movie.chunks() as f32;
        let buffer = session.buffer() as f32;
        row.floats(0, 0, [last as f32, buffer, left, session.elapsed() as f32]);
        let from = PAST - self.past.len();
        row.floats(1, from, self.past.iter().map(|(rate, _)| *rate as f32));
        row.floats(2, from, self.past.iter().map(|(_, seconds)| *seconds as f32));
        row.floats(3, 0, session.next_sizes().unwrap_or_default().iter().map(|bytes| (*bytes / 1e6) as f32));
        row.floats(4, 0, self.movie.ladder().iter().map(|rate| *rate as f32 / 1000.0));
    }

    fn info(&self, values: &mut [f64]) {
        let Some(session) = &self.session else { return };
        let chunks = (self.movie.chunks() - session.left()).max(1) as f64;
        values.copy_from_slice(&[self.bitrates / chunks, self.stood, self.changes / chunks, session.elapsed()]);
    }

    fn policies(&self) -> &'static str {
        POLICIES
    }

    fn baseline(&mut self, policy: &str, seed: u64) -> Result<Rollout, LearningError> {
        let rungs = self.movie.ladder().len();
        let constant = policy.strip_prefix("constant ").and_then(|rung| rung.parse::<usize>().ok());
        let mut random = Random::new(seed, "policy");
        if let Some(kind) = published(policy) {
            return roll_out(self, seed, |video| video.by(&kind));
        }
        match (policy, constant.filter(|rung| *rung < rungs)) {
            ("random", _) => roll_out(self, seed, |_| ChosenAction::Choices(vec![random.below(rungs) as i32])),
            ("lowest", _) => roll_out(self, seed, |_| ChosenAction::Choices(vec![0])),
            ("highest", _) => roll_out(self, seed, |_| ChosenAction::Choices(vec![rungs as i32 - 1])),
            (_, Some(rung)) => roll_out(self, seed, |_| ChosenAction::Choices(vec![rung as i32])),
            _ => Err(LearningError::Policy { policy: policy.to_owned(), known: POLICIES }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::NoFiles;

    #[test]
    fn the_rate_policy_beats_constants_and_the_return_is_the_sum_of_scores() {
        let mut video = VideoBitrate::new(Shared::new(&Settings::default(), &NoFiles).unwrap());
        let mut of = |policy: &str| (1..20).map(|seed| video.baseline(policy, seed).unwrap().total).sum::<f64>();
        let (rate, highest, random) = (of("rate"), of("highest"), of("random"));
        assert!(rate > highest && rate > random, "{rate} {highest} {random}");
        assert_eq!(of("constant 0"), of("lowest"));
        let [buffer, sizes, mpc, linear] = ["bba-0", "bba-1", "mpc", "linear"].map(&mut of);
        assert!(buffer != sizes && mpc > buffer && linear > rate, "{buffer} {sizes} {mpc} {linear} {rate}");
        assert!(video.baseline("constant 6", 1).is_err());
        let wrong = Settings { traces: vec!["no.log".into()], ..Settings::default() };
        assert_eq!(Shared::new(&wrong, &NoFiles).err().unwrap().to_string(), "no.log cannot be used");
    }
}
