//! The two settings in which policies are trained and compared: a movie, and the live view. Traces for training and for
//! comparison are always different.

use std::sync::Arc;

use super::{
    BitratePolicy, PolicyResults, Setting, Training, Weights, WeightsError, compare, live, made_traces, train,
};
use crate::bitrate::{BitrateError, Markov, Trace};

/// Number of traces for training, and for comparison.
const TRACES: usize = 200;
/// Length of a live view in seconds.
const SECONDS: usize = 120;

/// Setting in which policies are trained and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Study {
    /// Pensieve's movie: chunks of 4 s, a buffer of 60 s.
    Movie,
    /// The live view: chunks of a second, a buffer of 3 s.
    Live,
}

impl Study {
    /// Returns the movie, the network and the score of the study.
    ///
    /// # Errors
    /// Returns no error as long as the rungs of the live view rise.
    pub fn setting(self) -> Result<Setting, BitrateError> {
        match self {
            Study::Movie => Ok(Setting::movie(1)),
            Study::Live => live::setting(SECONDS, 1),
        }
    }

    fn markov(self) -> Markov {
        match self {
            Study::Movie => Markov::default(),
            Study::Live => Markov { lowest: 0.1, highest: 9.0, states: 20, ..Markov::default() },
        }
    }

    /// Returns the weights of this study that are part of the program.
    ///
    /// # Errors
    /// Returns an error if their file was damaged before it was built in.
    pub fn weights(self) -> Result<Weights, WeightsError> {
        Weights::read(match self {
            Study::Movie => include_str!("weights/movie.toml"),
            Study::Live => include_str!("weights/live.toml"),
        })
    }

    /// Trains weights on the given traces, or on generated ones.
    ///
    /// # Errors
    /// Returns the errors of [`Study::setting`].
    pub fn train(
        self,
        training: Training,
        traces: Option<&[Arc<Trace>]>,
        each: impl FnMut(u32, f64),
    ) -> Result<Weights, BitrateError> {
        let setting = self.setting()?;
        match traces {
            Some(traces) => train(&setting, traces, training, each),
            None => train(&setting, &made_traces(self.markov(), TRACES, 1)?, training, each),
        }
    }

    /// Compares the baselines, all fixed rungs and the linear policy on the given traces, or on generated ones that are
    /// not used for training.
    ///
    /// # Errors
    /// Returns the errors of [`Study::setting`].
    pub fn compare(self, weights: &Weights, traces: Option<&[Arc<Trace>]>) -> Result<Vec<PolicyResults>, BitrateError> {
        let setting = self.setting()?;
        let made;
        let traces = match traces {
            Some(traces) => traces,
            None => {
                made = made_traces(self.markov(), TRACES, 2)?;
                &made
            }
        };
        let mut kinds =
            vec![BitratePolicy::Buffer, BitratePolicy::BufferSizes, BitratePolicy::Rate, BitratePolicy::Predictive];
        kinds.push(BitratePolicy::Linear(weights.clone()));
        kinds.extend((0..setting.movie.ladder().len()).map(BitratePolicy::Fixed));
        compare(&setting, &kinds, traces)
    }
}
