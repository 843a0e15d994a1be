//! Times and ids in Marathon's formats.

/// Formats seconds since 1970 as `2026-11-21T23:05:01.250Z`, which is also Marathon's name of a version.
pub(super) fn iso(seconds: f64) -> String {
    let millis = (seconds.max(0.0) * 1_000.0).round() as u64;
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", rest % 1_000)
}

/// Returns year, month and day of a day since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Returns the current time in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "what a person reads carries the wall clock's time")]
pub(super) fn now() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        assert_eq!(iso(0.0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_399.25), "2000-02-28T23:59:59.250Z");
        assert_eq!(iso(951_782_400.0), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_795_302_301.999), "2026-11-21T23:05:01.999Z");
        assert_eq!(iso(4_107_542_399.0), "2100-02-28T23:59:59.000Z");
    }
}
