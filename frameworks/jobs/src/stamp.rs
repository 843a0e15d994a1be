//! Instants in what is kept: nanoseconds since 1970 as a number.

use std::time::Duration;

use base::Time;
use serde::{Deserialize, Deserializer, Serializer};

/// As nanoseconds.
pub fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(time.as_nanos())
}

/// From nanoseconds.
///
/// # Errors
/// It is not a whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    u64::deserialize(deserializer).map(|nanos| Time::from_epoch(Duration::from_nanos(nanos)))
}

/// The same for an instant that may be missing.
pub mod optional {
    use std::time::Duration;

    use base::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// As nanoseconds, or null.
    pub fn serialize<S: Serializer>(time: &Option<Time>, serializer: S) -> Result<S::Ok, S::Error> {
        time.map(Time::as_nanos).serialize(serializer)
    }

    /// From nanoseconds, or null.
    ///
    /// # Errors
    /// It is not a whole number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
        let nanos = Option::<u64>::deserialize(deserializer)?;
        Ok(nanos.map(|nanos| Time::from_epoch(Duration::from_nanos(nanos))))
    }
}
