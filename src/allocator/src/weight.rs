//! Weight of a role: the factor by which its share may exceed that of its siblings.

/// Error of a number that is not a valid weight.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("Invalid weight '{0}': Weights must be positive")]
pub struct WeightError(pub f64);

/// A weight of a role: finite and above 0. A role without one has 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Weight(f64);

impl Weight {
    /// The weight of a role for which none was set.
    pub const ONE: Weight = Weight(1.0);

    /// Checks a weight.
    ///
    /// # Errors
    /// The value is not finite or not above 0.
    pub fn new(value: f64) -> Result<Weight, WeightError> {
        if value.is_finite() && value > 0.0 { Ok(Weight(value)) } else { Err(WeightError(value)) }
    }

    /// Returns the weight as a number.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Weight {
        Weight::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_positive_and_finite() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Weight::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Weight::new(2.5).unwrap().value(), 2.5);
        assert_eq!(Weight::new(0.0).unwrap_err().to_string(), "Invalid weight '0': Weights must be positive");
    }
}
