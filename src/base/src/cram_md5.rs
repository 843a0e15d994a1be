//! The response to a challenge of CRAM-MD5 (RFC 2195), which proves the knowledge of a secret.
//!
//! Secrets and challenges come from the caller.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;

/// Returns the HMAC-MD5 of `challenge` under `secret` (RFC 2104), as 32 lower-case hexadecimal digits.
pub fn cram_md5(secret: &[u8], challenge: &[u8]) -> String {
    let mac = Hmac::<Md5>::new_from_slice(secret).expect("HMAC takes a key of any length");
    crate::hex(&mac.chain_update(challenge).finalize().into_bytes())
}

/// Returns whether two texts are equal. The time that it takes does not reveal where they differ.
pub fn same_text(one: &str, two: &str) -> bool {
    let differ = one.bytes().zip(two.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == two.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_of_the_standards() {
        // RFC 2195, section 2.
        let challenge = b"<1896.697170952@postoffice.reston.mci.net>";
        assert_eq!(cram_md5(b"tanstaaftanstaaf", challenge), "b913a602c7eda7a495b4e6e7334d3890");
        // RFC 2202: a short key, and one that is longer than a block.
        assert_eq!(cram_md5(b"Jefe", b"what do ya want for nothing?"), "750c783e6ab0b503eaa86e310a5db738");
        let text = b"Test Using Larger Than Block-Size Key - Hash Key First";
        assert_eq!(cram_md5(&[0xaa; 80], text), "6b1ab7fe4bd7bf8f0b62e6ce61b9d0cd");
    }

    #[test]
    fn texts_are_compared_whole() {
        assert!(same_text("abc", "abc") && same_text("", ""));
        assert!(!same_text("abc", "abd") && !same_text("abc", "ab") && !same_text("", "a"));
    }
}
