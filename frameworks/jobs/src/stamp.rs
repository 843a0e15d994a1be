//! Serialization of times in persisted state, as the number of nanoseconds since 1970.

use std::time::Duration;

use base::Time;
use serde::{Deserialize, Deserializer, Serializer};

/// Serializes a time as nanoseconds.
pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(time.as_nanos())
}

/// Deserializes a time from nanoseconds.
///
/// # Errors
/// Returns an error if the value is not a whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    u64::deserialize(deserializer).map(|nanos| Time::from_epoch(Duration::from_nanos(nanos)))
}

/// Serialization of an optional time.
pub mod optional {
    use std::time::Duration;

    use base::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serializes an optional time as nanoseconds, or null.
    pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(Time::as_nanos).serialize(serializer)
    }

    /// Deserializes an optional time from nanoseconds, or null.
    ///
    /// # Errors
    /// Returns an error if the value is not a whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        let nanos = Option::<u64>::deserialize(deserializer)?;
        Ok(nanos.map(|nanos| Time::from_epoch(Duration::from_nanos(nanos))))
    }
}
