//! Parses requests from the bodies of frames. Nothing is carried out here.

use serde::Deserialize;
use serde_json::Value;

use super::{GREETING, VERSION};
use crate::LearningError;
use crate::batch::EpisodeStart;

/// Maximum number of seeds of a baseline.
const MOST_SEEDS: usize = 100_000;

/// The request for a batch of environments.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Name of the environment.
    pub name: String,
    /// Settings of the environment; the defaults if there are none.
    #[serde(default = "no_settings")]
    pub settings: Value,
    /// Number of environments.
    #[serde(default = "one")]
    pub count: usize,
    /// Number of threads.
    #[serde(default = "one")]
    pub threads: usize,
    /// Whether an environment whose episode has ended starts the next one at its next step.
    #[serde(default)]
    pub autoreset: bool,
}

fn no_settings() -> Value {
    Value::Object(serde_json::Map::new())
}

fn one() -> usize {
    1
}

/// The request for episodes that a policy plays.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Name of the policy.
    pub policy: String,
    /// Seeds of the episodes.
    pub seeds: Vec<u64>,
}

/// A request of a learner; those about a batch have its handle first.
#[derive(Clone, Debug, PartialEq)]
pub enum Request<'a> {
    /// Starts a session.
    Hello,
    /// Makes a batch of environments.
    Open(Open),
    /// Resets environments of a batch.
    Reset(u32, Vec<Option<EpisodeStart>>),
    /// Steps all environments of a batch.
    Step(u32, &'a [u8]),
    /// Plays episodes with a policy.
    Baseline(u32, Baseline),
    /// Ends a batch.
    Close(u32),
}

impl<'a> Request<'a> {
    /// Parses a request.
    ///
    /// # Errors
    /// Returns the first part that breaks its rule.
    pub fn read(kind: u8, body: &'a [u8]) -> Result<Request<'a>, LearningError> {
        match kind {
            1 => hello(body),
            2 => Ok(Request::Open(json("open", body)?)),
            3 => {
                let (handle, rest) = handle(body)?;
                Ok(Request::Reset(handle, begins(rest)?))
            }
            4 => handle(body).map(|(handle, actions)| Request::Step(handle, actions)),
            5 => {
                let (handle, rest) = handle(body)?;
                let baseline: Baseline = json("baseline", rest)?;
                if baseline.seeds.len() > MOST_SEEDS {
                    return Err(LearningError::frame("seeds", format!("must be {MOST_SEEDS} or less")));
                }
                Ok(Request::Baseline(handle, baseline))
            }
            6 => match handle(body)? {
                (handle, []) => Ok(Request::Close(handle)),
                _ => Err(LearningError::frame("close", "must have a handle only")),
            },
            other => Err(LearningError::frame("kind", format!("{other} must be 1 to 6"))),
        }
    }
}

fn hello(body: &[u8]) -> Result<Request<'_>, LearningError> {
    let version = body.strip_prefix(GREETING).and_then(|rest| <[u8; 2]>::try_from(rest).ok());
    match version.map(u16::from_le_bytes) {
        Some(VERSION) => Ok(Request::Hello),
        Some(other) => {
            let rule = format!("{other} must be {VERSION}: the package and the program are of different versions");
            Err(LearningError::frame("version", rule))
        }
        None => Err(LearningError::frame("hello", "must be TEPUI-LAB and a version")),
    }
}

fn handle(body: &[u8]) -> Result<(u32, &[u8]), LearningError> {
    let Some((handle, rest)) = body.split_first_chunk::<4>() else {
        return Err(LearningError::frame("handle", "must have 4 bytes"));
    };
    Ok((u32::from_le_bytes(*handle), rest))
}

fn begins(body: &[u8]) -> Result<Vec<Option<EpisodeStart>>, LearningError> {
    let (entries, []) = body.as_chunks::<9>() else {
        return Err(LearningError::frame("seeds", "must have 9 bytes for each environment"));
    };
    let begin = |entry: &[u8; 9]| {
        let [way, seed @ ..] = *entry;
        match way {
            0 => Ok(None),
            1 => Ok(Some(EpisodeStart::Seed(u64::from_le_bytes(seed)))),
            2 => Ok(Some(EpisodeStart::Next)),
            other => Err(LearningError::frame("way", format!("{other} must be 0, 1 or 2"))),
        }
    };
    entries.iter().map(begin).collect()
}

fn json<T: serde::de::DeserializeOwned>(item: &'static str, body: &[u8]) -> Result<T, LearningError> {
    serde_json::from_slice(body).map_err(|why| LearningError::frame(item, format!("must be as described: {why}")))
}
