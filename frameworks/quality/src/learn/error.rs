//! Errors of data, parameters and models.

/// An error of a training or of a prediction.
#[derive(Debug, thiserror::Error)]
pub enum LearnError {
    /// A hyperparameter is invalid, or the data does not fit the algorithm.
    #[error("{item}: {rule}")]
    Invalid {
        /// Name of the item that breaks a rule, such as `learning_rate`.
        item: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// The loss overflowed or is not a number.
    #[error("the loss is not a number in iteration {iteration}, also after the step was halved {halvings} times")]
    NotANumber {
        /// Number of the iteration.
        iteration: u64,
        /// Number of times that a smaller step was tried.
        halvings: u32,
    },
    /// A partial result has the wrong size: it was computed from other data or parameters.
    #[error("shard {shard} gave {got} numbers instead of {want}")]
    Mismatch {
        /// Number of the shard.
        shard: usize,
        /// Number of numbers in the partial result.
        got: usize,
        /// Number of numbers that it should have.
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
    /// Creates an error for an item that breaks a rule.
    pub(crate) fn invalid(item: &str, rule: impl Into<String>) -> LearnError {
        LearnError::Invalid { item: item.to_owned(), rule: rule.into() }
    }
}
