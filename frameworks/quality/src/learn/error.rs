//! Errors of data, parameters and models.

/// Why a model cannot be trained, or cannot predict.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// A hyperparameter, or data and algorithm, break a rule.
    #[error("{item}: {rule}")]
    Invalid {
        /// What is wrong, such as `learning_rate`.
        item: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// Training left the numbers that a computer has.
    #[error("the loss is not a number in iteration {iteration}, also after the step was halved {halvings} times")]
    NotANumber {
        /// In which iteration.
        iteration: u64,
        /// How often a smaller step was tried.
        halvings: u32,
    },
    /// A partial result has the wrong size: it was computed from something else.
    #[error("shard {shard} gave {got} numbers instead of {want}")]
    Mismatch {
        /// Which shard.
        shard: usize,
        /// How many numbers it gave.
        got: usize,
        /// How many it should have.
        want: usize,
    },
    /// A saved model cannot be read.
    #[error("this is not a model of this program: {0}")]
    Format(#[source] serde_json::Error),
    /// A saved model has another version.
    #[error("the model has version {0}; this program reads version {1}")]
    Version(u32, u32),
}

impl LearnError {
    /// A breach of a rule.
    pub(crate) fn invalid(item: &str, rule: impl Into<String>) -> LearnError {
        LearnError::Invalid { item: item.to_owned(), rule: rule.into() }
    }
}
