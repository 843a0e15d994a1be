//! Environments by name: their settings as JSON, and the files that these name. It opens no file itself.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::balance::LoadBalance;
use crate::bitrate::VideoBitrate;
use crate::dag::DagScheduling;
use crate::files::Files;
use crate::offers::OfferPolicies;
use crate::sizing::TaskSizing;
use crate::{Environment, LearningError, balance, bitrate, dag, offers, sizing};

/// The names of all environments.
pub const NAMES: [&str; 5] = ["DagScheduling", "OfferPolicies", "TaskSizing", "VideoBitrate", "LoadBalance"];

/// What makes an environment, in any thread. It was checked: making one fails only if a file has changed.
#[derive(Clone)]
pub enum Maker {
    /// [`DagScheduling`].
    Dag(dag::Shared),
    /// [`OfferPolicies`].
    Offers(offers::Shared),
    /// [`TaskSizing`].
    Sizing(sizing::Settings),
    /// [`VideoBitrate`].
    Bitrate(bitrate::Shared),
    /// [`LoadBalance`].
    Balance(balance::Settings),
}

impl Maker {
    /// Checks the settings of an environment, and reads the files that they name.
    ///
    /// # Errors
    /// An unknown name, settings that break a rule, or a file that cannot be used.
    pub fn new(name: &str, settings: Value, files: &dyn Files) -> Result<Maker, LearningError> {
        let maker = match name {
            "DagScheduling" => Maker::Dag(dag::Shared::new(read(NAMES[0], settings)?, files)?),
            "OfferPolicies" => Maker::Offers(offers::Shared::new(read(NAMES[1], settings)?, files)?),
            "TaskSizing" => Maker::Sizing(read(NAMES[2], settings)?),
            "VideoBitrate" => Maker::Bitrate(bitrate::Shared::new(&read(NAMES[3], settings)?, files)?),
            "LoadBalance" => Maker::Balance(read(NAMES[4], settings)?),
            other => return Err(LearningError::Unknown { name: other.to_owned(), known: NAMES.join(", ") }),
        };
        maker.make()?;
        Ok(maker)
    }

    /// Makes an environment.
    ///
    /// # Errors
    /// A setting breaks its rule.
    pub fn make(&self) -> Result<Box<dyn Environment>, LearningError> {
        Ok(match self {
            Maker::Dag(shared) => Box::new(DagScheduling::new(shared.clone())),
            Maker::Offers(shared) => Box::new(OfferPolicies::new(shared.clone())),
            Maker::Sizing(settings) => Box::new(TaskSizing::new(settings.clone())?),
            Maker::Bitrate(shared) => Box::new(VideoBitrate::new(shared.clone())),
            Maker::Balance(settings) => Box::new(LoadBalance::new(settings.clone())?),
        })
    }
}

fn read<T: DeserializeOwned>(environment: &'static str, settings: Value) -> Result<T, LearningError> {
    serde_json::from_value(settings).map_err(|why| LearningError::Settings { environment, why })
}
