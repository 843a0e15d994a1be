//! JSON Web Tokens of executors, signed with HMAC-SHA256 (SEC-12).
//!
//! Other code decides what the claims permit. `jsonwebtoken` parses and signs; the texts of errors are Mesos's.

use agent::Claims;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{self, ErrorKind};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Map, Value};
use sha2::Sha256;

/// Maximum number of characters of an error text. Parts of it may come from the token.
const TEXT_MAX: usize = 200;

/// An error of a token. `Display` is Mesos's `error_description`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The token is malformed, was signed with another key, or has expired.
    #[error("Invalid JWT: {0}")]
    Invalid(String),
    /// The token has no claims.
    #[error("JWT claims missing")]
    NoClaims,
}

fn invalid(text: impl Into<String>) -> TokenError {
    // The text becomes a header's value.
    let shown = text.into().chars().take(TEXT_MAX).map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
    TokenError::Invalid(shown)
}

/// A key that signs tokens and verifies them.
pub struct Key {
    signs: EncodingKey,
    verifies: DecodingKey,
}

impl Key {
    /// Creates a key from a secret.
    pub fn new(secret: &[u8]) -> Key {
        // An error means that an earlier key has installed it.
        let _ = HS256.install_default();
        Key { signs: EncodingKey::from_secret(secret), verifies: DecodingKey::from_secret(secret) }
    }

    /// Creates a token with these claims. It does not expire.
    ///
    /// # Errors
    /// An error of `jsonwebtoken`; HMAC has no errors of its own.
    pub fn sign(&self, claims: &Claims) -> Result<String, errors::Error> {
        let Claims { framework, executor, container } = claims;
        let claims = serde_json::json!({"fid": framework, "eid": executor, "cid": container});
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.signs)
    }

    /// Verifies a token and returns its claims. A missing claim is empty.
    ///
    /// # Errors
    /// The token was not signed with this key, or has expired.
    pub fn verify(&self, token: &str) -> Result<Claims, TokenError> {
        check_header(token)?;
        let mut validation = Validation::new(Algorithm::HS256);
        validation.required_spec_claims.clear();
        validation.leeway = 0;
        // Tokens are for one agent.
        validation.validate_aud = false;
        let decoded = jsonwebtoken::decode::<Map<String, Value>>(token, &self.verifies, &validation);
        let claims = decoded.map_err(|error| invalid(text(error.kind())))?.claims;
        if claims.is_empty() {
            return Err(TokenError::NoClaims);
        }
        let claim = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Claims { framework: claim("fid"), executor: claim("eid"), container: claim("cid") })
    }
}

/// Checks the parts of the header that `jsonwebtoken` does not check, or for which it has other error texts.
fn check_header(token: &str) -> Result<(), TokenError> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, _, _] = parts[..] else {
        return Err(invalid(format!("Expected 3 components in token, got {}", parts.len())));
    };
    let undecoded = |why: String| invalid(format!("Failed to decode token header: {why}"));
    let header = BASE64_URL_SAFE_NO_PAD.decode(header);
    let header = header.map_err(|error| undecoded(format!("Failed to base64url-decode: {error}")))?;
    let header: Map<String, Value> =
        serde_json::from_slice(&header).map_err(|error| undecoded(format!("Failed to parse into JSON: {error}")))?;
    if header.get("typ").is_some_and(|kind| !kind.is_string()) {
        return Err(invalid("Token 'typ' is not a string"));
    }
    let algorithm = header.get("alg").ok_or_else(|| invalid("Failed to locate 'alg' in token JSON header"))?;
    match algorithm.as_str() {
        Some("HS256") => {}
        Some(other @ ("none" | "RS256")) => {
            return Err(invalid(format!("Token 'alg' value \"{other}\" does not match, expected \"HS256\"")));
        }
        Some(other) => return Err(invalid(format!("Unsupported token algorithm: {other}"))),
        None => return Err(invalid("Token 'alg' field is not a string")),
    }
    // The field names extensions that a receiver must understand. This one understands none.
    match header.contains_key("crit") {
        true => Err(invalid("Token 'crit' field is unsupported")),
        false => Ok(()),
    }
}

fn text(error: &ErrorKind) -> String {
    match error {
        ErrorKind::ExpiredSignature => "Token has expired".to_owned(),
        ErrorKind::InvalidClaimFormat(claim) => format!("JSON payload '{claim}' field is not a number"),
        ErrorKind::InvalidSignature => "Token signature does not match".to_owned(),
        // The payload is decoded after the signature was verified, so this error is of the signature.
        ErrorKind::Base64(error) => format!("Failed to base64url-decode token signature: {error}"),
        ErrorKind::Json(error) => format!("Failed to decode token payload: Failed to parse into JSON: {error}"),
        other => format!("{other:?}"),
    }
}

/// The cryptography that `jsonwebtoken` uses in this process.
static HS256: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?)),
    verifier_factory: |algorithm, key| Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// HMAC-SHA256 with a key.
struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> errors::Result<Hs256> {
        match algorithm {
            Algorithm::HS256 => Hmac::new_from_slice(key).map(Hs256).map_err(|_| ErrorKind::InvalidKeyFormat.into()),
            _ => Err(ErrorKind::InvalidAlgorithm.into()),
        }
    }

    fn over(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        Ok(self.over(message).finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        self.over(message).verify_slice(signature).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &[u8] = b"a secret of the agent";

    fn claims() -> Claims {
        Claims { framework: "f".into(), executor: "e".into(), container: "c".into() }
    }

    /// Creates a token with a valid signature, whatever its content.
    fn signed(header: &str, payload: &str) -> String {
        let encode = |text: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(text);
        let message = format!("{}.{}", encode(header.as_bytes()), encode(payload.as_bytes()));
        let signature = Hs256::new(Algorithm::HS256, SECRET).unwrap().try_sign(message.as_bytes()).unwrap();
        format!("{message}.{}", encode(&signature))
    }

    const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

    fn refused(token: &str) -> String {
        Key::new(SECRET).verify(token).unwrap_err().to_string()
    }

    #[test]
    fn what_is_signed_is_read() {
        let key = Key::new(SECRET);
        let token = key.sign(&claims()).unwrap();
        assert_eq!(key.verify(&token), Ok(claims()));
        let header = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').next().unwrap()).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        assert_eq!(header, json!({"alg": "HS256", "typ": "JWT"}));
        // The token of Mesos's agent, and one with further claims.
        assert_eq!(key.verify(&signed(HEADER, r#"{"cid":"c","eid":"e","fid":"f"}"#)), Ok(claims()));
        let later = r#"{"cid":"c","eid":"e","fid":"f","exp":99999999999,"aud":"x","n":1}"#;
        assert_eq!(key.verify(&signed(r#"{"alg":"HS256"}"#, later)), Ok(claims()));
        // RFC 7515, appendix A.1, whose key is not text and whose `exp` has passed.
        let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
        let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6\
                     Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let key = Key::new(&BASE64_URL_SAFE_NO_PAD.decode(key).unwrap());
        assert_eq!(key.verify(token).unwrap_err().to_string(), "Invalid JWT: Token has expired");
    }

    #[test]
    fn tokens_of_others_are_refused() {
        let other = Key::new(b"another secret").sign(&claims()).unwrap();
        assert_eq!(refused(&other), "Invalid JWT: Token signature does not match");
        let own = Key::new(SECRET).sign(&claims()).unwrap();
        let (message, signature) = own.rsplit_once('.').unwrap();
        for cut in ["", &signature[..1], &signature[..40]] {
            assert!(refused(&format!("{message}.{cut}")).starts_with("Invalid JWT: "), "{cut}");
        }
        let payload = BASE64_URL_SAFE_NO_PAD.encode(r#"{"fid":"f","eid":"x","cid":"c"}"#);
        let header = own.split('.').next().unwrap();
        let changed = format!("{header}.{payload}.{signature}");
        assert_eq!(refused(&changed), "Invalid JWT: Token signature does not match");
    }

    #[test]
    fn other_algorithms_are_refused() {
        let payload = r#"{"fid":"f","eid":"e","cid":"c"}"#;
        for (header, why) in [
            (r#"{"alg":"none"}"#, "Token 'alg' value \"none\" does not match, expected \"HS256\""),
            (r#"{"alg":"RS256"}"#, "Token 'alg' value \"RS256\" does not match, expected \"HS256\""),
            (r#"{"alg":"HS512"}"#, "Unsupported token algorithm: HS512"),
            ("{\"alg\":\"\\r\\nX: y\"}", "Unsupported token algorithm: ??X: y"),
            (r#"{"alg":1}"#, "Token 'alg' field is not a string"),
            (r#"{"typ":"JWT"}"#, "Failed to locate 'alg' in token JSON header"),
            (r#"{"alg":"HS256","typ":2}"#, "Token 'typ' is not a string"),
            (r#"{"alg":"HS256","crit":["exp"]}"#, "Token 'crit' field is unsupported"),
        ] {
            let token = signed(header, payload);
            assert_eq!(refused(&token), format!("Invalid JWT: {why}"));
            let unsigned = token.rsplit_once('.').unwrap().0.to_owned() + ".";
            assert_eq!(refused(&unsigned), format!("Invalid JWT: {why}"));
        }
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (token, why) in [
            ("", "Expected 3 components in token, got 1"),
            ("a.b", "Expected 3 components in token, got 2"),
            ("a.b.c.d", "Expected 3 components in token, got 4"),
            ("!.b.c", "Failed to decode token header: Failed to base64url-decode: "),
            ("e30=.b.c", "Failed to decode token header: Failed to base64url-decode: "),
            ("bm8.b.c", "Failed to decode token header: Failed to parse into JSON: "),
            ("W10.b.c", "Failed to decode token header: Failed to parse into JSON: "),
            ("eyJhbGciOiJIUzI1NiJ9.e30.!", "Failed to base64url-decode token signature: "),
        ] {
            assert!(refused(token).starts_with(&format!("Invalid JWT: {why}")), "{token}: {}", refused(token));
        }
        for (payload, why) in [
            ("{}", "JWT claims missing"),
            ("no", "Invalid JWT: Failed to decode token payload: Failed to parse into JSON: "),
            ("[]", "Invalid JWT: Failed to decode token payload: Failed to parse into JSON: "),
            (r#"{"exp":1}"#, "Invalid JWT: Token has expired"),
            (r#"{"exp":"soon"}"#, "Invalid JWT: JSON payload 'exp' field is not a number"),
            (r#"{"exp":-1}"#, "Invalid JWT: JSON payload 'exp' field is not a number"),
        ] {
            let said = refused(&signed(HEADER, payload));
            assert!(said.starts_with(why), "{payload}: {said}");
        }
        let long = refused(&signed(&format!(r#"{{"alg":"{}"}}"#, "A".repeat(10_000)), "{}"));
        assert!(long.len() < 300, "{}", long.len());
    }

    #[test]
    fn a_missing_claim_is_empty() {
        let read = Key::new(SECRET).verify(&signed(HEADER, r#"{"fid":"f","cid":3}"#));
        assert_eq!(read, Ok(Claims { framework: "f".into(), executor: String::new(), container: String::new() }));
    }
}
