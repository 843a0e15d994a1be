//! Environments by name: parses their settings as JSON, and reads the files that these name. It opens no file itself.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::balance::LoadBalance;
use crate::bitrate::VideoBitrate;
use crate::dag::DagScheduling;
use crate::files::Files;
use crate::offers::OfferPolicies;
use crate::sizing::TaskSizing;
use crate::{Environment, LearningError, balance, bitrate, dag, offers, sizing};

/// Names of all environments.
pub const NAMES: [&str; 5] = ["DagScheduling", "OfferPolicies", "TaskSizing", "VideoBitrate", "LoadBalance"];

/// Checked settings from which an environment is made, in any thread. Making one fails only if a file has changed.
#[derive(Clone)]
pub enum EnvironmentFactory {
    /// Makes a [`DagScheduling`].
    Dag(dag::Shared),
    /// Makes an [`OfferPolicies`].
    Offers(offers::Shared),
    /// Makes a [`TaskSizing`].
    Sizing(sizing::Settings),
    /// Makes a [`VideoBitrate`].
    Bitrate(bitrate::Shared),
    /// Makes a [`LoadBalance`].
    Balance(balance::Settings),
}

impl EnvironmentFactory {
    /// Checks the settings of an environment, and reads the files that they name.
    ///
    /// # Errors
    /// Returns an error for an unknown name, invalid settings, or an invalid file.
    pub fn new(name: &str, settings: Value, files: &dyn Files) -> Result<EnvironmentFactory, LearningError> {
        let factory = match name {
            "DagScheduling" => EnvironmentFactory::Dag(dag::Shared::new(read(NAMES[0], settings)?, files)?),
            "OfferPolicies" => EnvironmentFactory::Offers(offers::Shared::new(read(NAMES[1], settings)?, files)?),
            "TaskSizing" => EnvironmentFactory::Sizing(read(NAMES[2], settings)?),
            "VideoBitrate" => EnvironmentFactory::Bitrate(bitrate::Shared::new(&read(NAMES[3], settings)?, files)?),
            "LoadBalance" => EnvironmentFactory::Balance(read(NAMES[4], settings)?),
            other => return Err(LearningError::Unknown { name: other.to_owned(), known: NAMES.join(", ") }),
        };
        factory.make()?;
        Ok(factory)
    }

    /// Makes an environment.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid.
    pub fn make(&self) -> Result<Box<dyn Environment>, LearningError> {
        Ok(match self {
            EnvironmentFactory::Dag(shared) => Box::new(DagScheduling::new(shared.clone())),
            EnvironmentFactory::Offers(shared) => Box::new(OfferPolicies::new(shared.clone())),
            EnvironmentFactory::Sizing(settings) => Box::new(TaskSizing::new(settings.clone())?),
            EnvironmentFactory::Bitrate(shared) => Box::new(VideoBitrate::new(shared.clone())),
            EnvironmentFactory::Balance(settings) => Box::new(LoadBalance::new(settings.clone())?),
        })
    }
}

fn read<T: DeserializeOwned>(environment: &'static str, settings: Value) -> Result<T, LearningError> {
    serde_json::from_value(settings).map_err(|why| LearningError::Settings { environment, why })
}
