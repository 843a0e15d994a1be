//! Keys of the log's LevelDB: decimal numbers. Position p has the key p + 1.

/// The key of the metadata, which comes first.
pub(crate) const METADATA: u64 = 0;
/// The digits of a key at least.
const DIGITS: usize = 10;

/// The position of a key.
pub(crate) fn position_of(key: &[u8]) -> Option<u64> {
    number_of(key)?.checked_sub(1)
}

/// The number of a key.
pub(crate) fn number_of(key: &[u8]) -> Option<u64> {
    let text = str::from_utf8(key).ok()?;
    let is_number = text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { text.parse().ok()? } else { return None };
    // Each number has one key.
    (format!("{number:010}") == text).then_some(number)
}
