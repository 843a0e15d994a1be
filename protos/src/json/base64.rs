//! Base64 in Mesos's form: the standard alphabet, padded when written, lenient when read.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

const WRITE: GeneralPurpose = GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new());
const READ: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::RequireNone),
);

/// Appends the base64 text of `bytes`.
pub(crate) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let length = bytes.len().div_ceil(3) * 4;
    out.resize(start + length, b'=');
    // The slice is exactly as long as the text, so this cannot fail.
    let written = WRITE.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Decodes `text`. Whitespace is skipped, the first `=` ends it, missing padding is tolerated.
///
/// # Errors
/// `Invalid character '<c>'`.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut clean: Vec<u8> = Vec::with_capacity(text.len());
    for c in text.chars().take_while(|c| *c != '=') {
        match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '+' | '/' => clean.push(c as u8),
            ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' => {}
            other => return Err(format!("Invalid character '{other}'")),
        }
    }
    if clean.len() % 4 == 1 {
        // A single character is less than a byte.
        clean.pop();
    }
    READ.decode(&clean).map_err(|error| error.to_string())
}
