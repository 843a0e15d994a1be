//! Checks the tokens of executors.

use agent::Claims;
use daemon::agent::jwt::Key;

use crate::pieces::Pieces;

/// Checks an input whose first line is a token and whose other lines are claims. A token that was not signed with the
/// key is rejected. The claims are read again from the token that is made of them.
pub fn jwt(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    let mut text = || String::from_utf8_lossy(pieces.line()).into_owned();
    let key = Key::new(b"the secret of the agent");
    if let Err(error) = key.verify(&text()) {
        let text = error.to_string();
        assert!(text.len() < 300 && text.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{text}");
    }
    let claims = Claims { framework: text(), executor: text(), container: text() };
    let token = key.sign(&claims).expect("a token");
    assert_eq!(key.verify(&token), Ok(claims));
    assert!(Key::new(b"another secret").verify(&token).is_err());
    // A changed token is rejected, even if its last digit differs only in bits that belong to no byte.
    for at in [0, token.len() / 2, token.len() - 1] {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        assert!(key.verify(&changed).is_err(), "{changed}");
    }
}
