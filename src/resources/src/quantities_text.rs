//! Parses quantities of flags (`cpus:0.01;mem:32`), and converts those of messages (quota guarantees and limits,
//! minimal sizes).

use std::collections::BTreeMap;

use protos::mesos::value::Scalar;

use crate::value_text::{Written, read};
use crate::{Amount, Limits, Name, Quantities};

/// An error of parsing or converting quantities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantitiesError {
    /// An entry is not `name:amount`.
    #[error("Failed to parse '{0}': missing or extra ':'")]
    Colon(String),
    /// The value of a resource is not a number.
    #[error("Failed to parse '{name}:{value}': only scalar values are allowed")]
    NotScalar {
        /// Name of the resource.
        name: String,
        /// Value as given.
        value: String,
    },
    /// The number of a resource is not a valid amount.
    #[error("Invalid amount of '{name}': {fault}")]
    Amount {
        /// Name of the resource.
        name: String,
        /// Rule that the number breaks.
        fault: crate::Fault,
    },
}

fn amount(name: &str, value: f64) -> Result<Amount, QuantitiesError> {
    match crate::validate::check_number(value) {
        Ok(()) => Ok(Amount::from_f64(value)),
        Err(fault) => Err(QuantitiesError::Amount { name: name.to_owned(), fault }),
    }
}

/// Parses `cpus:0.01;mem:32`. An empty text has no amounts; amounts of a repeated name are added.
///
/// # Errors
/// Names the first invalid entry.
pub fn parse_quantities(text: &str) -> Result<Quantities, QuantitiesError> {
    let mut sums = Quantities::new();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let Some((name, value)) = entry.split_once(':').filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(QuantitiesError::Colon(entry.to_owned()));
        };
        let name = name.trim();
        match read(value) {
            Ok(Written::Number(number)) => {
                let refused = |fault| QuantitiesError::Amount { name: name.to_owned(), fault };
                crate::validate::check_written(number).map_err(refused)?;
                sums.add(&Name::from(name), Amount::from_f64(number));
            }
            _ => return Err(QuantitiesError::NotScalar { name: name.to_owned(), value: value.to_owned() }),
        }
    }
    Ok(sums)
}

/// Parses the alternatives of `--min_allocatable_resources`: `cpus:0.01|mem:32`. An empty text is not an alternative.
///
/// # Errors
/// Names the first invalid entry.
pub fn parse_alternatives(text: &str) -> Result<Vec<Quantities>, QuantitiesError> {
    text.split('|').filter(|part| !part.trim().is_empty()).map(parse_quantities).collect()
}

impl Quantities {
    /// Converts the map of a message.
    ///
    /// # Errors
    /// Returns the first invalid quantity.
    pub fn from_map(map: &BTreeMap<String, Scalar>) -> Result<Self, QuantitiesError> {
        map.iter().map(|(name, scalar)| Ok((Name::from(name.as_str()), amount(name, scalar.value)?))).collect()
    }

    /// Converts to the map of a message, without zeros.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, Scalar> {
        self.iter().map(|(name, amount)| (name.as_str().to_owned(), Scalar { value: amount.to_f64() })).collect()
    }
}

impl Limits {
    /// Converts the map of a message; a limit of 0 is a limit.
    ///
    /// # Errors
    /// Returns the first invalid quantity.
    pub fn from_map(map: &BTreeMap<String, Scalar>) -> Result<Self, QuantitiesError> {
        map.iter().map(|(name, scalar)| Ok((Name::from(name.as_str()), amount(name, scalar.value)?))).collect()
    }

    /// Converts to the map of a message, with zeros.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, Scalar> {
        self.iter().map(|(name, limit)| (name.as_str().to_owned(), Scalar { value: limit.to_f64() })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_minimal_sizes() {
        let shown = |text: &str| {
            let all = parse_alternatives(text).unwrap();
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ")
        };
        assert_eq!(shown("cpus:0.01|mem:32"), "cpus:0.01 | mem:32");
        assert_eq!(shown("cpus:1;mem:256;cpus:1|bananas:4"), "cpus:2; mem:256 | bananas:4");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn refuses_with_a_reason() {
        for (text, why) in [
            ("cpus", "Failed to parse 'cpus': missing or extra ':'"),
            (":1", "Failed to parse ':1': missing or extra ':'"),
            ("ports:[1-2]", "Failed to parse 'ports:[1-2]': only scalar values are allowed"),
            ("cpus:a", "Failed to parse 'cpus:a': only scalar values are allowed"),
            ("mem:0.0004", "Invalid amount of 'mem': Invalid scalar resource: value rounds to 0"),
            ("cpus:-1", "Invalid amount of 'cpus': Invalid scalar resource: value < 0"),
        ] {
            assert_eq!(parse_quantities(text).unwrap_err().to_string(), why, "{text}");
        }
        let nan = [("cpus".to_owned(), Scalar { value: f64::NAN })].into();
        assert!(Quantities::from_map(&nan).is_err() && Limits::from_map(&nan).is_err());
    }

    #[test]
    fn zero_is_a_limit_but_no_quantity() {
        let map = [("cpus".to_owned(), Scalar { value: 0.0 }), ("gas".to_owned(), Scalar { value: 1.5 })].into();
        assert_eq!(Limits::from_map(&map).unwrap().to_map(), map);
        assert_eq!(Quantities::from_map(&map).unwrap().to_map().len(), 1);
    }
}
