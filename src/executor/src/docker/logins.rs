//! Logins for registries from Docker's configuration files, in the daemon's form.
//!
//! The daemon has no logins; its clients send them with each pull.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

/// Paths of a task's own configuration in its sandbox, where URIs may place it: as in `docker.tar.gz`, as in older
/// archives, and as a single file.
const FILES: [&str; 3] = [".docker/config.json", ".dockercfg", "config.json"];
/// Maximum length of a configuration file, which usually has a few hundred bytes.
const FILE_MAX: u64 = 1 << 20;
/// Registry of image names without one.
const DOCKER_HUB: &str = "docker.io";
const HUB_KEY: &str = "index.docker.io";

/// Returns the header with which the daemon pulls `image`, if a configuration file in the sandbox has a login for its
/// registry.
pub(super) fn in_sandbox(sandbox: &Path, image: &str) -> Option<String> {
    FILES.iter().filter_map(|file| read(sandbox, Path::new(file))).find_map(|text| header(&text, image))
}

/// Reads a file of the sandbox, without following a link out of it.
fn read(sandbox: &Path, file: &Path) -> Option<String> {
    let found = containers::find_beneath(sandbox, file).ok()??;
    if !found.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    containers::open_found(&found).ok()?.take(FILE_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns the header with which the daemon pulls `image`, if the configuration `text` has a login for its registry.
pub fn header(text: &str, image: &str) -> Option<String> {
    let config: Value = serde_json::from_str(text).ok()?;
    // The older file format has only what is in `auths` now.
    let logins = config.get("auths").unwrap_or(&config).as_object()?;
    let host = host_of(image);
    let is_its = |known: &str| {
        let bare = known.rsplit("://").next().unwrap_or_default();
        let bare = bare.split('/').next().unwrap_or_default();
        bare == host || host == DOCKER_HUB && [HUB_KEY, "registry-1.docker.io"].contains(&bare)
    };
    let (key, login) = logins.iter().find(|(known, _)| is_its(known))?;
    let field = |name: &str| login[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut login = json!({"serveraddress": key});
    match ["identitytoken", "registrytoken"].into_iter().find_map(|name| Some((name, field(name)?))) {
        Some((name, token)) => login[name] = token.into(),
        None => {
            let pair = field("auth").and_then(|auth| decode(&auth));
            // Docker ends the text with a NUL byte.
            let pair = pair.as_deref().and_then(|pair| pair.trim_end_matches('\0').split_once(':'));
            let pair = pair.map(|(user, password)| (user.to_owned(), password.to_owned()));
            let (user, password) = pair.or_else(|| Some((field("username")?, field("password")?)))?;
            (login["username"], login["password"]) = (user.into(), password.into());
        }
    }
    Some(encode(login.to_string().as_bytes()))
}

/// Returns the registry in an image's name.
fn host_of(image: &str) -> &str {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host,
        _ => DOCKER_HUB,
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Encodes bytes in base64 for URLs.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let number = (0..3).fold(0, |number, at| number << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = DIGITS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// Decodes a text in plain base64.
fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut number, mut bits) = (Vec::new(), 0_u32, 0);
    for byte in text.trim().trim_end_matches('=').bytes() {
        let byte = match byte {
            b'+' => b'-',
            b'/' => b'_',
            other => other,
        };
        let digit = DIGITS.iter().position(|digit| *digit == byte)?;
        number = number << 6 | u32::try_from(digit).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((number >> bits & 0xff) as u8);
            number &= (1 << bits) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(text: &str, image: &str) -> Option<Value> {
        let plain: String = header(text, image)?.replace('-', "+").replace('_', "/");
        serde_json::from_str(&decode(&plain).unwrap()).ok()
    }

    #[test]
    fn logins_of_registries() {
        // me:secret
        let config = r#"{"auths": {"https://index.docker.io/v1/": {"auth": "bWU6c2VjcmV0"},
            "host:5000": {"identitytoken": "token"}, "http://other.org/v2": {"username": "a", "password": "b:c"}}}"#;
        let hub = json!({"serveraddress": "https://index.docker.io/v1/", "username": "me", "password": "secret"});
        for image in ["app", "team/app:1", "docker.io/team/app"] {
            assert_eq!(login(config, image), Some(hub.clone()), "{image}");
        }
        assert_eq!(
            login(config, "host:5000/app"),
            Some(json!({"serveraddress": "host:5000", "identitytoken": "token"}))
        );
        let other = json!({"serveraddress": "http://other.org/v2", "username": "a", "password": "b:c"});
        assert_eq!(login(config, "other.org/x/y@sha256:0"), Some(other));
        assert_eq!(login(config, "nowhere.org/app"), None);
        let older = r#"{"host.org": {"auth": "bWU6c2VjcmV0", "email": "x"}}"#;
        assert_eq!(login(older, "host.org/app").unwrap()["password"], "secret");
        for nonsense in ["", "[]", r#"{"auths": 1}"#, r#"{"auths": {"host.org": {"auth": "%"}}}"#] {
            assert_eq!(login(nonsense, "host.org/app"), None, "{nonsense}");
        }
    }

    #[test]
    fn texts_as_base64() {
        for (plain, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("a>b?c~", "YT5iP2N-")] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(&text.replace('-', "+")).as_deref(), Some(plain));
        }
        assert_eq!(decode("a b"), None);
    }

    #[test]
    fn what_the_uris_have_brought() {
        let sandbox = std::env::temp_dir().join(format!("tepui-logins-{}", std::process::id()));
        std::fs::create_dir_all(sandbox.join(".docker")).unwrap();
        let of = |user: &str| json!({"auths": {"host.org": {"username": user, "password": "x"}}}).to_string();
        assert_eq!(in_sandbox(&sandbox, "host.org/app"), None);
        std::fs::write(sandbox.join("outside"), of("me")).unwrap();
        let outer = sandbox.join(".docker");
        std::os::unix::fs::symlink(sandbox.join("outside"), outer.join("config.json")).unwrap();
        // A link that leads out of the sandbox is not followed.
        assert_eq!(in_sandbox(&outer, "host.org/app"), None);
        std::fs::remove_file(outer.join("config.json")).unwrap();
        std::fs::write(sandbox.join("config.json"), of("bare")).unwrap();
        assert_eq!(in_sandbox(&sandbox, "host.org/app"), header(&of("bare"), "host.org/app"));
        std::fs::write(outer.join("config.json"), of("archive")).unwrap();
        assert_eq!(in_sandbox(&sandbox, "host.org/app"), header(&of("archive"), "host.org/app"));
        std::fs::remove_dir_all(&sandbox).unwrap();
    }
}
