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
pub struct Session([u8; BYTES]);

/// Error for a text that is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session is {} lower-case hexadecimal digits", 2 * BYTES)]
pub struct SessionInvalid;

impl Session {
    /// Name of the header.
    pub const HEADER: &'static str = "Tepui-Session";

    /// Creates a token from random bytes.
    pub const fn new(random: [u8; BYTES]) -> Session {
        Session(random)
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

impl PartialEq for Session {
    /// Compares in constant time, wherever the first difference is.
    fn eq(&self, other: &Session) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}

impl Eq for Session {}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

impl FromStr for Session {
    type Err = SessionInvalid;

    fn from_str(text: &str) -> Result<Session, SessionInvalid> {
        if text.len() != 2 * BYTES || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(SessionInvalid);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| SessionInvalid)?;
        Ok(Session(number.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let session = Session::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(session.digits(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(session.digits().parse(), Ok(session));
        assert_ne!("000102030405060708090a0b0c0d0efe".parse(), Ok(session));
        for text in ["", "00", "000102030405060708090A0b0c0d0eff", "+00102030405060708090a0b0c0d0eff"] {
            assert_eq!(text.parse::<Session>(), Err(SessionInvalid), "{text}");
        }
        assert_eq!(format!("{session:?}"), "Session(..)");
    }
}
