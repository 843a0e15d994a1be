//! Conversions of resources into others, which operations consist of.

use crate::{Resource, Resources};

/// An error of applying a conversion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The resources do not contain what the conversion consumes.
    #[error("{have} does not contain {needed}")]
    NotContained {
        /// Resources that are available.
        have: Resources,
        /// Resources that are needed.
        needed: Resources,
    },
    /// A shared volume has further copies.
    #[error("Persistent volume {0} cannot be removed due to additional shared copies")]
    CopiesLeft(Resource),
}

/// A conversion of resources into others of the same amounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Resources that must be available, and are removed.
    pub consumed: Resources,
    /// Resources that are added.
    pub converted: Resources,
    /// Resource of which nothing may remain afterwards: the other copies of a shared volume that is destroyed.
    pub must_be_gone: Option<Resource>,
}

impl Conversion {
    /// Creates a conversion without further conditions.
    #[must_use]
    pub const fn new(consumed: Resources, converted: Resources) -> Self {
        Self { consumed, converted, must_be_gone: None }
    }
}

impl Resources {
    /// Applies one conversion and returns the result.
    ///
    /// # Errors
    /// The resources that it consumes are not available, or further copies of a destroyed volume remain.
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

    /// Applies conversions one after the other and returns the result.
    ///
    /// # Errors
    /// Returns the error of the first conversion that cannot be applied.
    pub fn apply_conversions(&self, conversions: &[Conversion]) -> Result<Self, ConversionError> {
        conversions.iter().try_fold(self.clone(), |resources, conversion| resources.apply_conversion(conversion))
    }
}
