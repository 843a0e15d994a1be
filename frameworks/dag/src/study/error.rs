//! Why a study cannot be run.

/// A study's input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// Some bytes are not what they should be.
    #[error("expected {expected}: {found}")]
    Format {
        /// What is read.
        expected: &'static str,
        /// What was found instead.
        found: String,
    },
    /// A file of a directory cannot be used.
    #[error("{name} cannot be used")]
    File {
        /// Its name in the directory.
        name: String,
        /// The cause.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A line of a trace cannot be used.
    #[error("line {line}: {rule}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What it must be.
        rule: String,
    },
    /// A setting breaks a rule.
    #[error("invalid {setting}: {rule}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// What it must be.
        rule: &'static str,
    },
}

impl StudyError {
    pub(super) fn format(expected: &'static str, found: impl Into<String>) -> StudyError {
        StudyError::Format { expected, found: found.into() }
    }
}
