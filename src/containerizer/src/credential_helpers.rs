//! Docker's credential helpers: programs that return logins to registries (`credHelpers` and `credsStore` of
//! `--docker_config`). They are run as Docker's client runs them (`docker-credential-NAME get`).
//!
//! Only the operator's configuration names programs. Logins in the configuration itself are found by the executor and
//! by the fetcher.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::external_program::{self, ExternalProgram};

/// Host names of Docker's own registry, and the key of its login.
const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
const HUB_KEY: &str = "https://index.docker.io/v1/";
/// User name in a helper's output if the secret is a token.
const TOKEN: &str = "<token>";

/// A credential helper, and the registry whose login it returns.
#[derive(Debug, PartialEq, Eq)]
struct Helper {
    name: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Login {
    username: String,
    secret: String,
}

/// Returns the registry in an image's name; `None` if the name has none.
pub(crate) fn host_of(image: &str) -> Option<&str> {
    let (host, _) = image.split_once('/')?;
    (host.contains(['.', ':']) || host == "localhost").then_some(host)
}

/// Docker's configuration with logins, read once.
#[derive(Debug)]
pub(crate) struct Logins {
    text: String,
    /// Parsed configuration; `None` if it names no credential helpers.
    config: Option<Value>,
}

impl Logins {
    pub(crate) fn of(text: &str) -> Logins {
        let config = serde_json::from_str(text).ok();
        let names_any = |config: &Value| ["credHelpers", "credsStore"].iter().any(|key| config.get(key).is_some());
        Logins { text: text.to_owned(), config: config.filter(names_any) }
    }

    /// Returns the text of the configuration.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a credential helper has the login to a registry.
    pub(crate) fn are_kept(&self, host: &str) -> bool {
        self.find(host).is_some()
    }

    /// Returns a configuration with the login that a credential helper returns for a registry; the configured text if
    /// there is none. Blocks.
    pub(crate) fn ask(&self, host: &str) -> String {
        let Some(helper) = self.find(host) else { return self.text.clone() };
        match said(&helper, &external_program::path()) {
            Ok(login) => text(&helper.key, &login),
            Err(error) => {
                tracing::warn!(
                    "docker-credential-{} returned no credentials for '{}': {error:#}",
                    helper.name,
                    helper.key
                );
                self.text.clone()
            }
        }
    }

    fn find(&self, host: &str) -> Option<Helper> {
        find(self.config.as_ref()?, host)
    }
}

fn bare(key: &str) -> &str {
    key.rsplit("://").next().unwrap_or_default().split('/').next().unwrap_or_default()
}

fn find(config: &Value, host: &str) -> Option<Helper> {
    let host = bare(host);
    if host.is_empty() {
        return None;
    }
    let is_hub = HUB.contains(&host);
    let is_its = |key: &str| bare(key) == host || is_hub && HUB.contains(&bare(key));
    let own = config.get("credHelpers").and_then(Value::as_object);
    let own = own.and_then(|all| all.iter().find(|(key, _)| is_its(key)));
    let (name, key) = match own {
        Some((key, name)) => (name.as_str()?, key.as_str()),
        None => (config.get("credsStore")?.as_str()?, if is_hub { HUB_KEY } else { host }),
    };
    (!name.is_empty() && !name.contains('/')).then(|| Helper { name: name.to_owned(), key: key.to_owned() })
}

fn said(helper: &Helper, path: &OsStr) -> anyhow::Result<Login> {
    let program = format!("docker-credential-{}", helper.name);
    let file = look_up(&program, path).context("there is no such program in PATH")?;
    let words = vec![OsString::from("get")];
    // A helper may need variables of the operator's environment to find its store.
    let environment = std::env::vars_os().collect();
    let ask = ExternalProgram { file: file.into(), words, environment, input: helper.key.as_bytes() };
    let (status, answer) = ask.run()?.context("it has not ended in time")?;
    // The output may contain a secret, so it is not logged.
    ensure!(status.success(), "{status}");
    serde_json::from_slice(&answer).ok().context("its output is not a credential")
}

/// Returns the path of a program that is found in a `PATH`.
pub(crate) fn look_up(program: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).map(|directory| directory.join(program)).find(is_program)
}

/// Returns the text of a configuration with one login.
fn text(key: &str, login: &Login) -> String {
    let mut logins = json!({});
    logins[key] = if login.username == TOKEN {
        json!({ "identitytoken": login.secret })
    } else {
        json!({ "auth": BASE64_STANDARD.encode(format!("{}:{}", login.username, login.secret)) })
    };
    json!({ "auths": logins }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(config: &str, host: &str) -> Option<(String, String)> {
        Logins::of(config).find(host).map(|helper| (helper.name, helper.key))
    }

    #[test]
    fn the_helper_of_a_registry() {
        let config = r#"{"credHelpers": {"host:5000": "ecr", "index.docker.io": "pass", "bad.org": "../x"}}"#;
        let some = |name: &str, key: &str| Some((name.to_owned(), key.to_owned()));
        assert_eq!(found(config, "host:5000"), some("ecr", "host:5000"));
        assert_eq!(found(config, "docker.io"), some("pass", "index.docker.io"));
        assert_eq!(found(config, "https://registry-1.docker.io"), some("pass", "index.docker.io"));
        assert_eq!(found(config, "bad.org"), None);
        assert_eq!(found(config, "other.org"), None);
        let store = r#"{"credsStore": "pass", "credHelpers": {"a.org": "own"}}"#;
        assert_eq!(found(store, "a.org"), some("own", "a.org"));
        assert_eq!(found(store, "docker.io"), some("pass", HUB_KEY));
        assert_eq!(found(store, "b.org"), some("pass", "b.org"));
        let kept = |config: &str| Logins::of(config).are_kept("b.org");
        assert!(kept(store) && !kept("") && !kept(r#"{"auths": {}}"#) && !kept("[]"));
        assert_eq!((found(store, ""), found(store, "/var/images")), (None, None), "a directory asks for no login");
        assert_eq!(host_of("host:5000/app"), Some("host:5000"));
        assert_eq!((host_of("team/app"), host_of("app")), (None, None));
    }

    #[test]
    fn what_a_helper_says() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, script: &str| {
            let file = directory.path().join(format!("docker-credential-{name}"));
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("good", r#"[ "$1" = get ] && printf '{"ServerURL":"x","Username":"me","Secret":"at %s"}' "$(cat)""#);
        write("token", r#"echo '{"Username":"<token>","Secret":"t"}'"#);
        write("none", "echo credentials not found in native keychain; exit 1");
        write("other", "echo hello");
        let login = |name: &str| {
            let helper = Helper { name: name.to_owned(), key: "host.org".to_owned() };
            let login = said(&helper, directory.path().as_os_str()).map_err(|error| error.to_string())?;
            Ok::<String, String>(text(&helper.key, &login))
        };
        let good = login("good").unwrap();
        // me:at host.org
        assert_eq!(good, r#"{"auths":{"host.org":{"auth":"bWU6YXQgaG9zdC5vcmc="}}}"#);
        assert!(executor::docker::login(&good, "host.org/app").is_some());
        assert_eq!(login("token").unwrap(), r#"{"auths":{"host.org":{"identitytoken":"t"}}}"#);
        assert!(login("none").unwrap_err().contains("status 1"));
        assert!(login("other").unwrap_err().contains("is not a credential"));
        assert!(login("missing").unwrap_err().contains("PATH"));
    }
}
