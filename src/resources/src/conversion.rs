//! Conversions: resources that turn into others, as operations do it.

use crate::{Resource, Resources};

/// Why a conversion cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// What it needs is not there.
    #[error("{have} does not contain {needed}")]
    NotContained {
        /// All that is there.
        have: Resources,
        /// What is needed.
        needed: Resources,
    },
    /// A shared volume of which there are more copies than one.
    #[error("Persistent volume {0} cannot be removed due to additional shared copies")]
    CopiesLeft(Resource),
}

/// Some resources that turn into others of the same amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// What must be there, and goes.
    pub consumed: Resources,
    /// What comes.
    pub converted: Resources,
    /// What must not be there any more afterwards: the other copies of a shared volume that is destroyed.
    pub must_be_gone: Option<Resource>,
}

impl Conversion {
    /// A conversion without further conditions.
    #[must_use]
    pub const fn new(consumed: Resources, converted: Resources) -> Self {
        Self { consumed, converted, must_be_gone: None }
    }
}

impl Resources {
    /// Applies one conversion.
    ///
    /// # Errors
    /// What it consumes is not there, or copies of a destroyed volume are left.
    pub fn apply_conversion(&self, conversion: &Conversion) -> Result<Self, ConversionError> {
        if !self.contains(&conversion.consumed) {
            let needed = conversion.consumed.clone();
            return Err(ConversionError::NotContained { have: self.clone(), needed });
        }
        let result = self - &conversion.consumed;
        if let Some(volume) = conversion.must_be_gone.as_ref().filter(|volume| result.contains_resource(volume)) {
            return Err(ConversionError::CopiesLeft(volume.clone()));
        }
        Ok(result + &conversion.converted)
    }

    /// Applies conversions one after the other.
    ///
    /// # Errors
    /// The first that cannot be applied.
    pub fn apply_conversions(&self, conversions: &[Conversion]) -> Result<Self, ConversionError> {
        conversions.iter().try_fold(self.clone(), |resources, conversion| resources.apply_conversion(conversion))
    }
}
