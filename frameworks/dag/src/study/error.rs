//! Errors of studies.

/// The reason why a study cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The bytes of a file have another format.
    #[error("expected {expected}: {found}")]
    Format {
        /// Expected format.
        expected: &'static str,
        /// Description of what was found instead.
        found: String,
    },
    /// A file of a directory cannot be used.
    #[error("{name} cannot be used")]
    File {
        /// Name of the file in the directory.
        name: String,
        /// Cause of the error.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A line of a trace cannot be used.
    #[error("line {line}: {rule}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Rule that the line breaks.
        rule: String,
    },
    /// A setting breaks a rule.
    #[error("invalid {setting}: {rule}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Rule of the setting.
        rule: &'static str,
    },
}

impl StudyError {
    pub(super) fn format(expected: &'static str, found: impl Into<String>) -> StudyError {
        StudyError::Format { expected, found: found.into() }
    }
}
