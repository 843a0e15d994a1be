//! Durations in scenarios: `250ms`, `5s`, `10m`, `2h`, `1d`, and the forms of the daemons' flags (`5secs`).

use std::time::Duration;

use base::numbered;
pub use base::parse_span;

/// Formats a duration so that it is short and [`parse_span`] reads it: `90s`, `1500ms`, `2h`.
pub fn show_span(span: Duration) -> String {
    // Durations that can be parsed are at most 292 years; `u64` has nanoseconds of 584.
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    if nanos == 0 {
        return "0s".to_owned();
    }
    let units = [("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000)];
    let small = [("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let fits = |unit: &&(&str, u64)| nanos.is_multiple_of(unit.1);
    let (name, size) = units.iter().chain(&small).find(fits).copied().unwrap_or(("ns", 1));
    numbered("", nanos / size, name)
}

/// A duration in a scenario file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

/// The error for a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a duration: must be such as 250ms, 5s, 10m, 2h or 1d, and at most 292 years")]
pub struct NoSpan(String);

impl TryFrom<String> for Span {
    type Error = NoSpan;

    fn try_from(text: String) -> Result<Span, NoSpan> {
        parse_span(&text).map(Span).map_err(|_| NoSpan(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        for (text, seconds) in
            [("5s", 5.0), ("1.5m", 90.0), ("2h", 7200.0), ("250ms", 0.25), ("3secs", 3.0), ("0s", 0.0)]
        {
            let span = parse_span(text).unwrap();
            assert_eq!(span.as_secs_f64(), seconds, "{text}");
            assert_eq!(parse_span(&show_span(span)), Ok(span));
        }
        assert_eq!(show_span(Duration::from_secs(90)), "90s");
        assert!(parse_span("5 s").is_err() && parse_span("s").is_err() && parse_span("5y").is_err());
    }
}
