//! Errors of environments and of their protocol.

/// Reason why a request to an environment failed.
#[derive(Debug, thiserror::Error)]
pub enum LearningError {
    /// A setting is invalid.
    #[error("invalid '{setting}': {rule}")]
    Setting {
        /// Name of the setting.
        setting: String,
        /// Rule that the setting breaks.
        rule: String,
    },
    /// The JSON of the settings does not have the form of the environment.
    #[error("invalid settings of {environment}")]
    Settings {
        /// Name of the environment.
        environment: &'static str,
        /// Error of the parser.
        #[source]
        why: serde_json::Error,
    },
    /// There is no environment with this name.
    #[error("unknown environment '{name}': must be {known}")]
    Unknown {
        /// Requested name.
        name: String,
        /// Names of all environments.
        known: String,
    },
    /// A file cannot be read or is invalid.
    #[error("{name} cannot be used")]
    File {
        /// Name of the file.
        name: String,
        /// Cause of the error.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An action is invalid.
    #[error("invalid action {item} of environment {environment}: {rule}")]
    Action {
        /// Index of the environment in the batch, from 0.
        environment: usize,
        /// Index of the number in the action, from 0.
        item: usize,
        /// Rule that the number breaks.
        rule: String,
    },
    /// There is no policy with this name.
    #[error("unknown policy '{policy}': must be {known}")]
    Policy {
        /// Requested name.
        policy: String,
        /// Names of all policies of the environment.
        known: &'static str,
    },
    /// A step was requested of the environment with this index, which was never reset, or whose episode is over.
    #[error("environment {0} has no episode: reset it first")]
    NoEpisode(usize),
    /// A frame is invalid.
    #[error("invalid frame: {item} {rule}")]
    Frame {
        /// Name of the invalid part of the frame.
        item: &'static str,
        /// Rule that the part breaks.
        rule: String,
    },
    /// A thread of a batch has ended.
    #[error("a thread of the environments has ended")]
    Thread,
}

impl LearningError {
    /// Returns the error of an invalid setting.
    pub(crate) fn setting(setting: impl Into<String>, rule: impl Into<String>) -> LearningError {
        LearningError::Setting { setting: setting.into(), rule: rule.into() }
    }

    /// Returns the error of an invalid frame.
    pub(crate) fn frame(item: &'static str, rule: impl Into<String>) -> LearningError {
        LearningError::Frame { item, rule: rule.into() }
    }

    /// Returns the error with its causes in one line.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(why) = cause {
            text = format!("{text}: {why}");
            cause = why.source();
        }
        text
    }
}

/// Checks rules of settings, each given as the setting, whether the rule holds, and the rule. Returns the first that
/// does not hold as an error.
pub(crate) fn rules<const N: usize>(rules: [(&str, bool, &str); N]) -> Result<(), LearningError> {
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        Some((setting, _, rule)) => Err(LearningError::setting(setting, rule)),
        None => Ok(()),
    }
}
