//! What a flag is, and the rules for its value's text.
//!
//! It knows no flag by name; the tables do.

use std::time::Duration;

/// One flag of a daemon, as Mesos 1.11 has it.
#[derive(Debug)]
pub struct Flag {
    /// Its name, without dashes in front.
    pub name: &'static str,
    /// Older names that still work.
    pub aliases: &'static [&'static str],
    /// The value if nobody gives one; none means unset.
    pub default: Option<&'static str>,
    /// What its text must look like.
    pub kind: Kind,
    /// One line for `--help`.
    pub help: &'static str,
}

/// What a flag's text must look like (mesos-features FLG-01 to FLG-04).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true`, `false`, `1`, `0`; `--name` and `--no-name` are enough.
    Bool,
    /// Any text; `file:///path` stands for the file's content.
    Text,
    /// JSON: as text, and an absolute path stands for the file's content, too.
    Json,
    /// Like text, but `file://` is left alone: the flag names a file or an address.
    Path,
    /// Such as `15secs`.
    Duration,
    /// An integer with `B`, `KB`, `MB`, `GB` or `TB`, in steps of 1024.
    Bytes,
    /// A whole number, not negative.
    Count,
    /// A decimal number.
    Number,
}

/// Why a value does not fit its flag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not one of the four words.
    #[error("'{0}' is not a boolean: use true, false, 1 or 0")]
    Bool(String),
    /// Not a duration.
    #[error(transparent)]
    Duration(#[from] base::DurationTextError),
    /// Not an amount of bytes.
    #[error("'{0}' is not an amount of bytes: write for example 512MB")]
    Bytes(String),
    /// Not a whole number.
    #[error("'{0}' is not a whole number")]
    Count(String),
    /// Not a number.
    #[error("'{0}' is not a number")]
    Number(String),
}

impl Kind {
    /// Checks `text` and gives the form in which `/flags` shows it: `60secs` becomes `1mins`.
    ///
    /// # Errors
    /// Names the text and the rule.
    pub fn normalise(self, text: &str) -> Result<String, ValueError> {
        match self {
            Kind::Bool => Ok(parse_bool(text)?.to_string()),
            Kind::Text | Kind::Json | Kind::Path => Ok(text.to_owned()),
            Kind::Duration => Ok(base::format_duration(parse_duration(text)?)),
            Kind::Bytes => Ok(base::format_bytes(parse_bytes(text)?)),
            Kind::Count => text.parse::<u64>().map(|n| n.to_string()).map_err(|_| ValueError::Count(text.to_owned())),
            Kind::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(text.to_owned()),
                _ => Err(ValueError::Number(text.to_owned())),
            },
        }
    }
}

/// Reads a boolean flag's text.
///
/// # Errors
/// Anything but `true`, `false`, `1`, `0`.
pub(super) fn parse_bool(text: &str) -> Result<bool, ValueError> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(ValueError::Bool(text.to_owned())),
    }
}

/// Reads a duration flag's text.
///
/// # Errors
/// See [`base::parse_duration`].
pub(super) fn parse_duration(text: &str) -> Result<Duration, ValueError> {
    Ok(base::parse_duration(text)?)
}

/// Reads an amount of bytes: an integer and a unit, without a blank.
///
/// # Errors
/// See [`base::parse_bytes`].
pub(super) fn parse_bytes(text: &str) -> Result<u64, ValueError> {
    base::parse_bytes(text).ok_or_else(|| ValueError::Bytes(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_forms() {
        for (kind, text, shown) in [
            (Kind::Duration, "60secs", "1mins"),
            (Kind::Bytes, "4096B", "4KB"),
            (Kind::Bytes, "0B", "0B"),
            (Kind::Bool, "1", "true"),
            (Kind::Count, "007", "7"),
            (Kind::Number, "0.8", "0.8"),
        ] {
            assert_eq!(kind.normalise(text).as_deref(), Ok(shown), "{text}");
        }
    }

    #[test]
    fn refused() {
        for (kind, text) in [
            (Kind::Duration, "60"),
            (Kind::Bytes, "1.5GB"),
            (Kind::Bytes, "99999999999TB"),
            (Kind::Bool, "yes"),
            (Kind::Count, "-1"),
            (Kind::Number, "NaN"),
        ] {
            assert!(kind.normalise(text).is_err(), "{text}");
        }
    }
}
