//! Keys of the log's LevelDB: decimal numbers. Position p has the key p + 1.

/// Number of the key of the metadata, which is the first one.
pub(crate) const METADATA: u64 = 0;
/// Minimum number of digits of a key.
const DIGITS: usize = 10;

/// Returns the position of a key, or `None` if the key is not one of a position.
pub(crate) fn position_of(key: &[u8]) -> Option<u64> {
    number_of(key)?.checked_sub(1)
}

/// Returns the number of a key, or `None` if it is invalid.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    let text = str::from_utf8(key).ok()?;
    let is_number = text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().ok()? } else { return None };
    // Each number has exactly one key.
    (format!("{number:010}") == text).then_some(number)
}
