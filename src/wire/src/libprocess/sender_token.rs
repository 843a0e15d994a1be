//! The header `Tepui-Session`: a token that an agent chooses and that only its master sends back.
//!
//! A process that listens at an address of this host can name any sender. A message that carries the token comes from
//! a process that has received it, whatever connection it comes over. Mesos's processes ignore the header.

use std::fmt::{self, Write as _};
use std::str::FromStr;

/// Number of bytes of a token.
const BYTES: usize = 16;

/// A token of 128 random bits, written as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy)]
pub struct SenderToken([u8; BYTES]);

/// Error for a text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session is {} lower-case hexadecimal digits", 2 * BYTES)]
pub struct InvalidSenderToken;

impl SenderToken {
    /// Name of the header.
    pub const HEADER: &'static str = "Tepui-Session";

    /// Creates a token from random bytes.
    pub const fn new(random: [u8; BYTES]) -> SenderToken {
        SenderToken(random)
    }

    /// Returns the digits of the token. It is a secret: it must not be logged.
    pub fn digits(&self) -> String {
        self.0.iter().fold(String::with_capacity(2 * BYTES), |mut text, byte| {
            // Writing into memory does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl PartialEq for SenderToken {
    /// Compares in constant time, wherever the first difference is.
    fn eq(&self, other: &SenderToken) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

impl Eq for SenderToken {}

impl fmt::Debug for SenderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

impl FromStr for SenderToken {
    type Err = InvalidSenderToken;

    fn from_str(text: &str) -> Result<SenderToken, InvalidSenderToken> {
        if text.len() != 2 * BYTES || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidSenderToken);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| InvalidSenderToken)?;
        Ok(SenderToken(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let sender_token = SenderToken::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(sender_token.digits(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(sender_token.digits().parse(), Ok(sender_token));
        assert_ne!("000102030405060708090a0b0c0d0efe".parse(), Ok(sender_token));
        for text in ["", "00", "000102030405060708090A0b0c0d0eff", "+00102030405060708090a0b0c0d0eff"] {
            assert_eq!(text.parse::<SenderToken>(), Err(InvalidSenderToken), "{text}");
        }
        assert_eq!(format!("{sender_token:?}"), "Session(..)");
    }
}
