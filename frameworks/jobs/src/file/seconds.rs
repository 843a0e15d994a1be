//! Durations in job files: a number of seconds, or a text such as `1.5s`, `500ms`, `2m`, `1h`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

/// Longest duration in a job file: a year.
pub const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// Parses a duration, with the usual units (`s`, `ms`, `m`, `min`, `h`, `d`) and those of Mesos (`secs`).
pub fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit.trim_start() {
        "" | "s" | "sec" => "secs",
        "m" | "min" => "mins",
        "h" => "hrs",
        "d" => "days",
        other => other,
    };
    base::parse_duration(&format!("{number}{unit}")).ok().filter(|d| *d <= LONGEST)
}

/// Serializes a duration as seconds.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Deserializes a duration from seconds.
///
/// # Errors
/// Returns an error if the value is not a number of seconds.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
}

/// Serialization of an optional duration as seconds.
pub mod optional {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Serializes an optional duration as seconds, or null.
    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|d| d.as_secs_f64()).serialize(serializer)
    }

    /// Deserializes an optional duration from seconds, or null.
    ///
    /// # Errors
    /// Returns an error if the value is not a number of seconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let seconds = Option::<f64>::deserialize(deserializer)?;
        seconds.map(Duration::try_from_secs_f64).transpose().map_err(serde::de::Error::custom)
    }
}
