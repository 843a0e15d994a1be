//! Why an environment cannot do what it is asked for.

/// A request to an environment is refused.
#[derive(Debug, thiserror::Error)]
pub enum LearningError {
    /// A setting breaks a rule.
    #[error("invalid '{setting}': {rule}")]
    Setting {
        /// The setting.
        setting: String,
        /// What it must be.
        rule: String,
    },
    /// Settings are not of the form that the environment reads.
    #[error("invalid settings of {environment}")]
    Settings {
        /// The environment.
        environment: &'static str,
        /// What is wrong.
        #[source]
        why: serde_json::Error,
    },
    /// There is no such environment.
    #[error("unknown environment '{name}': must be {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A file cannot be used.
    #[error("{name} cannot be used")]
    File {
        /// Its name.
        name: String,
        /// The cause.
        #[source]
        why: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An action breaks a rule.
    #[error("invalid action {item} of environment {environment}: {rule}")]
    Action {
        /// Which environment of the batch, from 0.
        environment: usize,
        /// Which number of its action, from 0.
        item: usize,
        /// What it must be.
        rule: String,
    },
    /// There is no such policy.
    #[error("unknown policy '{policy}': must be {known}")]
    Policy {
        /// What was asked for.
        policy: String,
        /// What there is.
        known: &'static str,
    },
    /// An environment is asked to step that was never reset, or whose episode is over.
    #[error("environment {0} has no episode: reset it first")]
    NoEpisode(usize),
    /// A frame cannot be read.
    #[error("invalid frame: {item} {rule}")]
    Frame {
        /// The part of the frame.
        item: &'static str,
        /// What it must be.
        rule: String,
    },
    /// A thread of a batch is gone.
    #[error("a thread of the environments has ended")]
    Thread,
}

impl LearningError {
    /// A setting that breaks a rule.
    pub(crate) fn setting(setting: impl Into<String>, rule: impl Into<String>) -> LearningError {
        LearningError::Setting { setting: setting.into(), rule: rule.into() }
    }

    /// A frame that breaks a rule.
    pub(crate) fn frame(item: &'static str, rule: impl Into<String>) -> LearningError {
        LearningError::Frame { item, rule: rule.into() }
    }

    /// All layers in a line.
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

/// The first rule of a list that does not hold.
pub(crate) fn rules<const N: usize>(rules: [(&str, bool, &str); N]) -> Result<(), LearningError> {
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        Some((setting, _, rule)) => Err(LearningError::setting(setting, rule)),
        None => Ok(()),
    }
}
