//! Amounts of bytes as text: an integer with `B`, `KB`, `MB`, `GB` or `TB`, in steps of 1024.

/// The units with their bytes, from large to small.
const UNITS: [(&str, u64); 5] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10), ("B", 1)];

/// Parses an amount of bytes: an integer and a unit, without a space between. Returns `None` without a unit, with a
/// fraction, or from 2^64 on.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (unit, size) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    number.checked_mul(*size)
}

/// Formats an amount of bytes with the largest unit that divides it.
pub fn format_bytes(bytes: u64) -> String {
    let fits = |unit: &&(&str, u64)| bytes != 0 && bytes.is_multiple_of(unit.1);
    let (unit, size) = UNITS.iter().find(fits).unwrap_or(&UNITS[4]);
    format!("{}{unit}", bytes / size)
}
