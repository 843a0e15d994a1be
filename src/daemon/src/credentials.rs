//! Reads credentials: a master's `--credentials`, an agent's `--credential` and `--http_credentials`, as JSON.
//!
//! Other code checks secrets.

use std::collections::BTreeMap;
use std::path::Path;

use protos::json::{Dialect, FromJson, JsonError, UnknownKey, unknown_key};
use protos::{Described, mesos};

use crate::flags::{FlagError, json, nearest};
use crate::secrets;

/// Reads secrets by principal from a file with a list: a master's `--credentials`, an agent's `--http_credentials`.
/// `name` is the flag.
///
/// Principals without a secret are left out.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub(crate) fn of_list(name: &'static str, file: Option<&Path>) -> Result<Option<BTreeMap<String, String>>, FlagError> {
    let Some(text) = content(name, file)? else { return Ok(None) };
    const FORM: &str = r#"{"credentials": [{"principal": "NAME", "secret": "SECRET"}]}"#;
    let read = mesos::Credentials::from_json(text.as_bytes(), Dialect::V0);
    known_keys::<mesos::Credentials>(name, &text, FORM)?;
    let list = read.map_err(|error| unread(name, &error, FORM))?;
    Ok(Some(list.credentials.into_iter().filter_map(|one| Some((one.principal, one.secret?))).collect()))
}

/// Reads an agent's `--credential`.
///
/// # Errors
/// The file cannot be read, or is invalid.
pub(crate) fn of_agent(file: Option<&Path>) -> Result<Option<agent::Credential>, FlagError> {
    const NAME: &str = "credential";
    let Some(text) = content(NAME, file)? else { return Ok(None) };
    const FORM: &str = r#"{"principal": "NAME", "secret": "SECRET"}"#;
    let read = mesos::Credential::from_json(text.as_bytes(), Dialect::V0);
    known_keys::<mesos::Credential>(NAME, &text, FORM)?;
    let one = read.map_err(|error| unread(NAME, &error, FORM))?;
    Ok(Some(agent::Credential { principal: one.principal, secret: one.secret }))
}

/// Reads the key in the file that a flag names: all of its bytes, as in Mesos.
///
/// # Errors
/// The file cannot be read, is empty, or is longer than the longest key.
pub(crate) fn key(name: &'static str, file: Option<&Path>) -> Result<Option<Vec<u8>>, FlagError> {
    let Some(path) = file else { return Ok(None) };
    let key = secrets::read(name, path)?;
    match key.len() {
        0 => Err(refused(name, format!("'{}' is empty", path.display()))),
        1..=KEY_MAX => Ok(Some(key)),
        _ => Err(refused(name, format!("'{}' has more than {KEY_MAX} bytes", path.display()))),
    }
}

/// Maximum length of a key, in bytes.
const KEY_MAX: usize = 64 * 1024;

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

/// Converts an error of a JSON file. The content of the file is left out: it may be a secret.
fn unread(name: &'static str, error: &JsonError, form: &str) -> FlagError {
    match error {
        JsonError::Syntax(_) => refused(name, format!("the file is not JSON; its form is {form}")),
        JsonError::Convert(_) | JsonError::TooLarge(_) => {
            refused(name, format!("the file's JSON has no credentials; its form is {form}"))
        }
    }
}

/// Checks that the JSON has no unknown keys. The error names a key only if it is similar to a known one: otherwise it
/// may be a secret.
///
/// # Errors
/// The first unknown key.
fn known_keys<M: Described>(name: &'static str, text: &str, form: &str) -> Result<(), FlagError> {
    let Ok(Some(UnknownKey { place, key, known })) = unknown_key::<M>(text.as_bytes()) else { return Ok(()) };
    Err(refused(
        name,
        match nearest(&key, known.iter().copied()) {
            Some(_) => json::unknown(&place, &key, known),
            None => format!("the file has a key that is not known; its form is {form}"),
        },
    ))
}

/// Reads the text of the file that a flag names.
fn content(name: &'static str, file: Option<&Path>) -> Result<Option<String>, FlagError> {
    let Some(given) = file.map(Path::to_string_lossy) else { return Ok(None) };
    if given.trim_start().starts_with(['{', '[']) {
        return Err(refused(name, "names a file; credentials on the command line can be seen by all users"));
    }
    let bytes = secrets::read(name, Path::new(&*given))?;
    String::from_utf8(bytes).map(Some).map_err(|_| refused(name, "it is not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn master(text: &str) -> Result<BTreeMap<String, String>, String> {
        of_list("credentials", Some(file(text).path())).map(Option::unwrap).map_err(|error| error.to_string())
    }

    fn agent(text: &str) -> Result<(String, Option<String>), String> {
        let read = of_agent(Some(file(text).path())).map(Option::unwrap).map_err(|error| error.to_string());
        read.map(|credential| (credential.principal, credential.secret))
    }

    #[test]
    fn forms() {
        let two = BTreeMap::from([("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y z".to_owned())]);
        let json =
            r#"{"credentials":[{"principal":"a","secret":"x"},{"principal":"b","secret":"y z"},{"principal":"c"}]}"#;
        assert_eq!(master(json), Ok(two));
        let one = Ok(("a".to_owned(), Some("x".to_owned())));
        assert_eq!(agent(r#"{"principal":"a","secret":"x"}"#), one);
        assert_eq!(agent(r#"{"principal":"a"}"#), Ok(("a".to_owned(), None)));
    }

    #[test]
    fn what_is_wrong_is_named_without_secrets() {
        // Mesos no longer accepts the form of lines either.
        for text in ["a\n", "a x\n", "", r#"{"credentials":[{"secret":"x"}]}"#, "{"] {
            let error = master(text).unwrap_err();
            assert!(error.starts_with("flag '--credentials'"), "{error}");
        }
        for text in ["", "a x\n", "{}"] {
            let error = agent(text).unwrap_err();
            assert!(error.starts_with("flag '--credential'"), "{error}");
        }
        let hidden = [
            "principal s3cret more",
            r#"{"principal": "a" "secret": "s3cret"}"#,
            r#"{"principal": "a", "secret": "s3cret"} s3cret"#,
            r#"{"principal": ["s3cret"]}"#,
            r#"{"credentials": [{"principal": "a" "secret": "s3cret"}]}"#,
        ];
        for text in hidden {
            for error in std::iter::once(agent(text).unwrap_err()).chain(master(text).err()) {
                assert!(!error.contains("s3cret"), "{error}");
            }
        }
        for text in [r#"{"principal": "a", "hunter2": ""}"#, r#"{"credentials": [{"principal": "a", "hunter2": ""}]}"#]
        {
            for error in [agent(text).unwrap_err(), master(text).unwrap_err()] {
                assert!(!error.contains("hunter2"), "{error}");
            }
        }
        let slip = master(r#"{"credentials": [{"principal": "a", "secrets": "x"}]}"#).unwrap_err();
        let words = "the key 'secrets' in 'credentials[0]' is not known, did you mean 'secret'?";
        assert_eq!(slip, format!("flag '--credentials': {words}"));
        assert!(agent(r#"{"principle": "a", "principal": "a"}"#).unwrap_err().contains("did you mean 'principal'?"));
        assert!(matches!(of_agent(None), Ok(None)));
        let given = |text| of_agent(Some(Path::new(text))).unwrap_err().to_string();
        let inline = given(r#"{"principal": "a", "secret": "s3cret"}"#);
        assert!(inline.contains("names a file") && !inline.contains("s3cret"), "{inline}");
        assert!(given("/does/not/exist").contains("'/does/not/exist'"));
    }
}
