//! Secrets: values, references that `--secret_resolver` resolves, and the files from which containers read secrets
//! (AGT-98).
//!
//! A user who may start containers may reference any secret: nothing is authorized here.

use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use agent::{ContainerName, ContainerSpec};
use anyhow::{Context, bail, ensure};
use containers::User;
use protos::mesos::{self, Secret, secret};

use crate::config::SecretResolver;
use crate::external_program::{self, ExternalProgram, TEXT_MAX};

/// Counter that makes the names of files unique within this process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

impl SecretResolver {
    /// Returns whether a container has references to secrets.
    pub(crate) fn is_wanted(spec: &ContainerSpec) -> bool {
        !spec.secrets.is_empty() || spec.container.as_ref().is_some_and(|info| in_container(info).any(is_reference))
    }

    /// Replaces a container's references to secrets by their values. The names of the variables with secrets are kept.
    /// Blocks.
    ///
    /// # Errors
    /// The secret that is not available, and why.
    pub(crate) fn resolve(&self, spec: &mut ContainerSpec) -> anyhow::Result<()> {
        for (variable, wanted) in &spec.secrets {
            let bytes = self.look_up(wanted).with_context(|| format!("The secret of the variable '{variable}'"))?;
            let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
            let text = text.with_context(|| format!("The secret of the variable '{variable}' is not text"))?;
            match spec.environment.iter_mut().find(|(name, _)| name == variable) {
                Some((_, old)) => *old = text,
                None => spec.environment.push((variable.clone(), text)),
            }
        }
        let Some(info) = &mut spec.container else { return Ok(()) };
        for wanted in in_container_mut(info).filter(|secret| is_reference(secret)) {
            let data = self.look_up(wanted)?;
            *wanted = Secret {
                r#type: Some(secret::Type::Value as i32),
                value: Some(secret::Value { data }),
                reference: None,
            };
        }
        Ok(())
    }

    /// Returns the value of a reference.
    fn look_up(&self, wanted: &Secret) -> anyhow::Result<Vec<u8>> {
        let reference = wanted.reference.as_ref().context("A secret of the type REFERENCE has no reference")?;
        let (name, key) = (&reference.name, reference.key.as_deref());
        let value = match self {
            SecretResolver::None => bail!("this agent accepts secrets as values only: it has no --secret_resolver"),
            SecretResolver::Directory(directory) => in_directory(directory, name, key),
            SecretResolver::Program(program) => said(program, name, key),
        };
        let value = value.with_context(|| format!("the secret '{name}' cannot be read"))?;
        ensure!(value.len() <= TEXT_MAX, "the secret '{name}' has more than {TEXT_MAX} bytes");
        Ok(value)
    }
}

/// Reads the file with this name. With a key it reads the file with that name in a directory, or the text with that key
/// in a file with a JSON object.
fn in_directory(directory: &Path, name: &str, key: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let inside = |path: &str| {
        let path = Path::new(path);
        !path.as_os_str().is_empty() && path.components().all(|part| matches!(part, Component::Normal(_)))
    };
    let name = name.trim_start_matches('/');
    ensure!(inside(name), "its name is not a path");
    let path = directory.join(name);
    let Some(key) = key else { return read(&path) };
    ensure!(inside(key) && !key.contains('/'), "its key is not a name");
    if path.is_dir() {
        return read(&path.join(key));
    }
    let all: serde_json::Value = serde_json::from_slice(&read(&path)?).context("its keys are not in a JSON object")?;
    let value = all.get(key).and_then(serde_json::Value::as_str);
    Ok(value.with_context(|| format!("it has no text with the key '{key}'"))?.as_bytes().to_vec())
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    ensure!(std::fs::metadata(path)?.is_file(), "it is not a file");
    let mut value = Vec::new();
    // One byte more than the maximum, to detect values that are too long.
    std::fs::File::open(path)?.take(TEXT_MAX as u64 + 1).read_to_end(&mut value)?;
    Ok(value)
}

fn said(program: &Path, name: &str, key: Option<&str>) -> anyhow::Result<Vec<u8>> {
    let words = [Some(name), key].into_iter().flatten().map(Into::into).collect();
    let environment = vec![("PATH".into(), external_program::path())];
    let ask = ExternalProgram { file: program.into(), words, environment, input: b"" };
    let (status, value) = ask.run()?.with_context(|| format!("'{}' has not ended in time", program.display()))?;
    // The output may be a secret, so it is not logged. The program's messages are in the agent's standard error.
    ensure!(status.success(), "'{}' {status}", program.display());
    Ok(value)
}

fn is_reference(secret: &Secret) -> bool {
    secret.r#type() == secret::Type::Reference
}

/// Returns the secrets in a container's description: files, and logins to registries.
fn in_container(info: &mesos::ContainerInfo) -> impl Iterator<Item = &Secret> {
    let own = info.mesos.iter().filter_map(|mesos| login(mesos.image.as_ref()?));
    let volumes = info.volumes.iter().flat_map(|volume| {
        let file = volume.source.as_ref().and_then(|source| source.secret.as_ref());
        [file, volume.image.as_ref().and_then(login)].into_iter().flatten()
    });
    own.chain(volumes)
}

fn login(image: &mesos::Image) -> Option<&Secret> {
    image.docker.as_ref()?.config.as_ref()
}

pub(crate) fn in_container_mut(info: &mut mesos::ContainerInfo) -> impl Iterator<Item = &mut Secret> {
    let own = info.mesos.iter_mut().filter_map(|mesos| login_mut(mesos.image.as_mut()?));
    let volumes = info.volumes.iter_mut().flat_map(|volume| {
        let file = volume.source.as_mut().and_then(|source| source.secret.as_mut());
        [file, volume.image.as_mut().and_then(login_mut)].into_iter().flatten()
    });
    own.chain(volumes)
}

fn login_mut(image: &mut mesos::Image) -> Option<&mut Secret> {
    image.docker.as_mut()?.config.as_mut()
}

/// Returns the bytes of a secret.
///
/// # Errors
/// If the secret has no value.
pub(crate) fn value(secret: &Secret) -> anyhow::Result<Vec<u8>> {
    ensure!(secret.r#type() == secret::Type::Value, "A secret is neither a value nor a reference");
    Ok(secret.value.as_ref().context("The secret has no value")?.data.clone())
}

/// Writes a secret for a container to read, below `directory`, which is in memory.
///
/// # Errors
/// An error of the system.
pub(crate) fn write(
    directory: &Path,
    container: &ContainerName,
    user: Option<&User>,
    bytes: &[u8],
) -> anyhow::Result<PathBuf> {
    let own = directory.join(container.root().as_str());
    store::create_directories(&own, store::Access::Owner).with_context(|| format!("'{}'", own.display()))?;
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = own.join(format!("{}-{number}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?;
    file.write_all(bytes)?;
    if let Some(user) = user {
        chown(&path, Some(user.uid), Some(user.gid))?;
    }
    Ok(path)
}

/// Deletes the secrets of a container and of those inside it, once the top-level one has ended.
pub(crate) fn remove(directory: &Path, container: &ContainerName) {
    let own = directory.join(container.as_str());
    if container.parent().is_none() && own.exists() {
        crate::delete(&own);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place() -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("kept/db")).unwrap();
        std::fs::write(place.path().join("outside"), "no").unwrap();
        std::fs::write(place.path().join("kept/plain"), "one\n").unwrap();
        std::fs::write(place.path().join("kept/db/password"), "two").unwrap();
        std::fs::write(place.path().join("kept/keys"), r#"{"user": "three", "number": 4}"#).unwrap();
        std::fs::write(place.path().join("kept/long"), vec![b'x'; TEXT_MAX + 1]).unwrap();
        std::fs::write(place.path().join("ask"), "#!/bin/sh\nprintf '%s/%s' \"$1\" \"$2\"\n[ \"$1\" != none ]\n")
            .unwrap();
        std::fs::set_permissions(place.path().join("ask"), std::fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn reference(name: &str, key: Option<&str>) -> Secret {
        let reference = secret::Reference { name: name.to_owned(), key: key.map(str::to_owned) };
        Secret { r#type: Some(secret::Type::Reference as i32), reference: Some(reference), value: None }
    }

    fn had(resolver: &SecretResolver, name: &str, key: Option<&str>) -> Result<String, String> {
        let value = resolver.look_up(&reference(name, key)).map_err(|error| format!("{error:#}"))?;
        Ok(String::from_utf8(value).unwrap())
    }

    #[test]
    fn files_and_nothing_outside_their_directory() {
        let place = place();
        let resolver = SecretResolver::Directory(place.path().join("kept"));
        assert_eq!(had(&resolver, "plain", None), Ok("one\n".to_owned()));
        assert_eq!(had(&resolver, "/db", Some("password")), Ok("two".to_owned()));
        assert_eq!(had(&resolver, "db/password", None), Ok("two".to_owned()));
        assert_eq!(had(&resolver, "keys", Some("user")), Ok("three".to_owned()));
        for (name, key, said) in [
            ("../outside", None, "its name is not a path"),
            ("", None, "its name is not a path"),
            ("db", Some("../plain"), "its key is not a name"),
            ("db", Some(".."), "its key is not a name"),
            ("db", None, "not a file"),
            ("none", None, "the secret 'none' cannot be read"),
            ("plain", Some("user"), "JSON"),
            ("keys", Some("number"), "no text with the key 'number'"),
            ("long", None, "more than"),
        ] {
            let error = had(&resolver, name, key).unwrap_err();
            assert!(error.contains(said), "{name} {key:?}: {error}");
        }
        assert!(had(&SecretResolver::None, "plain", None).unwrap_err().contains("--secret_resolver"));
    }

    #[test]
    fn programs() {
        let place = place();
        let resolver = SecretResolver::Program(place.path().join("ask"));
        assert_eq!(had(&resolver, "a b", Some("k")), Ok("a b/k".to_owned()));
        assert_eq!(had(&resolver, "a", None), Ok("a/".to_owned()));
        let error = had(&resolver, "none", None).unwrap_err();
        assert!(error.contains("status 1") && !error.contains("none/"), "{error}");
    }

    #[test]
    fn references_become_values() {
        let place = place();
        let resolver = SecretResolver::Directory(place.path().join("kept"));
        let source = mesos::volume::Source { secret: Some(reference("plain", None)), ..Default::default() };
        let volume = mesos::Volume { source: Some(source), ..Default::default() };
        let mut spec = ContainerSpec {
            environment: vec![("USER".to_owned(), "old".to_owned())],
            secrets: vec![
                ("USER".to_owned(), reference("keys", Some("user"))),
                ("NEW".to_owned(), reference("db/password", None)),
            ],
            container: Some(mesos::ContainerInfo { volumes: vec![volume], ..Default::default() }),
            ..ContainerSpec::default()
        };
        assert!(SecretResolver::is_wanted(&spec));
        resolver.resolve(&mut spec).unwrap();
        let variable = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(spec.environment, [variable("USER", "three"), variable("NEW", "two")]);
        let file = spec.container.unwrap().volumes[0].source.clone().unwrap().secret.unwrap();
        assert_eq!(value(&file).unwrap(), b"one\n");
    }
}
