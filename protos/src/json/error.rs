//! Errors of reading JSON, with Mesos's messages.

/// An error of reading JSON. `Display` gives the text that follows `Failed to parse body into JSON: ` for
/// [`JsonError::Syntax`] and `Failed to convert JSON into Call protobuf: ` for the others.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error("{0}")]
    Syntax(String),
    /// The JSON is not the expected message: a wrong type, or required fields are missing.
    #[error("{0}")]
    Convert(String),
    /// The message would take far more memory than its text.
    #[error("Message too large: its lists need more than {0} bytes of memory")]
    TooLarge(usize),
}

impl JsonError {
    /// Returns whether the text was not JSON at all.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax(_))
    }
}
