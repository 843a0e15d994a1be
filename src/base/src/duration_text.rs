//! The text form of durations in flags and environments: `15secs`, `1.5mins` (docs/mesos/json.md).
//!
//! Negative durations, which Mesos can print, do not occur here.

use std::time::Duration;

/// The units from small to large, with their nanoseconds.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("secs", 1_000_000_000),
    ("mins", 60_000_000_000),
    ("hrs", 3_600_000_000_000),
    ("days", 86_400_000_000_000),
    ("weeks", 604_800_000_000_000),
];

/// An error of the text of a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationTextError {
    /// No unit follows the number, or the text is empty.
    #[error("Invalid duration '{0}': write it with a unit, such as 5secs")]
    Bare(String),
    /// The number is invalid.
    #[error("Failed to convert '{0}' to number")]
    Number(String),
    /// The text after the number is not a unit.
    #[error(
        "Unknown duration unit '{0}'; supported units are 'ns', 'us', 'ms', 'secs', 'mins', 'hrs', 'days', and 'weeks'"
    )]
    Unit(String),
    /// The duration is longer than 2^63 nanoseconds, 292 years.
    #[error("'{0}' exceeds the range of durations")]
    TooLong(String),
}

/// Parses a duration such as `15secs` or `1.5mins`: a decimal number and a unit, without a space between.
///
/// # Errors
/// Names the text and what is wrong with it.
pub fn parse_duration(text: &str) -> Result<Duration, DurationTextError> {
    let (number, unit) = split(text);
    measured(text, number, unit)
}

/// Splits a text into the number at its start and the rest.
fn split(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|c| !c.is_ascii_digit() && c != b'.').unwrap_or(text.len());
    text.split_at(end)
}

/// Returns the duration of `number` units; errors name `text`, from which they were parsed.
fn measured(text: &str, number: &str, unit: &str) -> Result<Duration, DurationTextError> {
    if unit.is_empty() {
        return Err(DurationTextError::Bare(text.to_owned()));
    }
    let number: f64 = number.parse().map_err(|_| DurationTextError::Number(number.to_owned()))?;
    let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(DurationTextError::Unit(unit.to_owned()));
    };
    let total = number * *nanos as f64;
    if total > i64::MAX as f64 {
        return Err(DurationTextError::TooLong(text.to_owned()));
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

/// Short units of files, with their names in flags.
const SHORT: [(&str, &str); 6] =
    [("s", "secs"), ("sec", "secs"), ("m", "mins"), ("min", "mins"), ("h", "hrs"), ("d", "days")];

/// Parses a duration as people write it in files: `5s`, `10m`, `2h`, `1d`, or any text that [`parse_duration`] accepts.
/// Flags follow Mesos and do not accept the short units.
///
/// # Errors
/// Names the text and what is wrong with it.
pub fn parse_span(text: &str) -> Result<Duration, DurationTextError> {
    let (number, unit) = split(text);
    let long = SHORT.iter().find(|(short, _)| *short == unit).map_or(unit, |(_, long)| long);
    measured(text, number, long)
}

/// Formats a duration with the largest unit that divides it exactly: 60 s is `1mins`, 0 is `0ns`.
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let fits = |unit: &&(&str, u64)| nanos != 0 && nanos.is_multiple_of(u128::from(unit.1));
    let (name, size) = UNITS.iter().rev().find(fits).unwrap_or(&UNITS[0]);
    format!("{}{name}", nanos / u128::from(*size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, written) in [
            ("60secs", "1mins"),
            ("90secs", "90secs"),
            ("1.5secs", "1500ms"),
            ("24hrs", "1days"),
            ("14days", "2weeks"),
            ("0secs", "0ns"),
        ] {
            assert_eq!(format_duration(parse_duration(text).unwrap()), written);
        }
    }

    #[test]
    fn reads_short_units() {
        for (text, long) in [("5s", "5secs"), ("1.5m", "90secs"), ("2h", "2hrs"), ("1d", "24hrs"), ("250ms", "250ms")] {
            assert_eq!(parse_span(text), parse_duration(long), "{text}");
        }
        assert!(parse_duration("5s").is_err() && parse_span("5y").is_err() && parse_span("s").is_err());
    }

    #[test]
    fn refuses() {
        for text in
            ["", "secs", "1", "1hr", "+1secs", "-1secs", "1e3secs", "1 secs", "1e400secs", "9999999weeks", "1.2.3secs"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
