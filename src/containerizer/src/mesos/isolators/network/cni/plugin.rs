//! Runs CNI plugins: programs that read a configuration and answer with JSON.
//!
//! `config.rs` makes their configurations.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use agent::ContainerName;
use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::Attachment;
use crate::external_program::{self, ExternalProgram, LIMIT, TEXT_MAX};

/// Operation of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Add,
    Del,
}

/// A call of a plugin for an interface of a container.
pub(crate) struct Call<'a> {
    pub(crate) verb: Verb,
    pub(crate) container: &'a ContainerName,
    pub(crate) namespace: &'a Path,
    pub(crate) attachment: &'a Attachment,
}

/// Directories of installed plugins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plugins {
    path: String,
}

impl Plugins {
    /// Creates the list of directories from `path`, in which colons separate them.
    pub(crate) fn new(path: &str) -> Plugins {
        Plugins { path: path.to_owned() }
    }

    /// Returns whether a plugin with this name is installed.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let directories = self.path.split(':').filter(|directory| !directory.is_empty() && !name.contains('/'));
        directories.map(|directory| Path::new(directory).join(name)).find(|path| path.is_file())
    }

    /// Calls a plugin for an interface. Returns its result, if it has one. Blocks.
    ///
    /// # Errors
    /// The plugin does not exist, takes too long, or fails.
    pub(crate) fn run(&self, call: &Call<'_>, config: &Value) -> anyhow::Result<Option<Value>> {
        let name = config["type"].as_str().unwrap_or_default();
        let program = self.find(name).with_context(|| format!("there is no plugin '{name}' in '{}'", self.path))?;
        let mut config = config.clone();
        if let Some(result) = &call.attachment.result {
            config["prevResult"] = result.clone();
        }
        let config = config.to_string();
        ensure!(config.len() <= TEXT_MAX, "the configuration of the plugin '{name}' is too long");
        let file = program.into_os_string();
        let ask =
            ExternalProgram { file, words: Vec::new(), environment: self.variables(call), input: config.as_bytes() };
        let Some((status, text)) = ask.run()? else {
            bail!("the plugin '{name}' has not answered within {LIMIT:?}");
        };
        if status.code() != Some(0) {
            bail!("the plugin '{name}' says: {}", complaint(&text));
        }
        match text.iter().all(u8::is_ascii_whitespace) {
            true => Ok(None),
            false => {
                Ok(Some(serde_json::from_slice(&text).with_context(|| format!("the plugin '{name}' gives no JSON"))?))
            }
        }
    }

    fn variables(&self, call: &Call<'_>) -> Vec<(OsString, OsString)> {
        let verb = match call.verb {
            Verb::Add => "ADD",
            Verb::Del => "DEL",
        };
        let path = external_program::path();
        let all = [
            ("CNI_COMMAND", OsString::from(verb)),
            ("CNI_CONTAINERID", call.container.as_str().into()),
            ("CNI_NETNS", call.namespace.into()),
            ("CNI_IFNAME", call.attachment.interface.clone().into()),
            ("CNI_PATH", self.path.clone().into()),
            ("PATH", path),
        ];
        all.map(|(name, value)| (name.into(), value)).into()
    }
}

/// Returns the message in the output of a plugin that has failed.
fn complaint(text: &[u8]) -> String {
    let said: Value = serde_json::from_slice(text).unwrap_or_default();
    let words: Vec<&str> = [&said["msg"], &said["details"]].into_iter().filter_map(Value::as_str).collect();
    match words.is_empty() {
        true => String::from_utf8_lossy(&text[..text.len().min(500)]).trim().to_owned(),
        false => words.join(": ").trim_end_matches(": ").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Runs a plugin that is this shell script.
    fn run(script: &str) -> Result<Option<Value>, String> {
        use std::os::unix::fs::PermissionsExt;
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("tepui-cni-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("p"), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(directory.join("p"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let attachment = Attachment {
            interface: "eth0".into(),
            plugins: Vec::new(),
            result: Some(json!({"before": 1})),
            name: "n".into(),
            addresses: Vec::new(),
        };
        let container = ContainerName::top(&base::ContainerId::new("c1").unwrap());
        let call =
            Call { verb: Verb::Add, container: &container, namespace: Path::new("/ns"), attachment: &attachment };
        let result = Plugins::new(&format!("/none:{}", directory.display())).run(&call, &json!({"type": "p"}));
        std::fs::remove_dir_all(&directory).unwrap();
        result.map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn plugins_are_called_as_the_specification_says() {
        let result = run(
            "echo \"{\\\"all\\\": \\\"$CNI_COMMAND $CNI_CONTAINERID $CNI_NETNS $CNI_IFNAME\\\", \\\"in\\\": $(cat)}\"",
        );
        let result = result.unwrap().unwrap();
        assert_eq!(result["all"], "ADD c1 /ns eth0");
        assert_eq!(result["in"], json!({"type": "p", "prevResult": {"before": 1}}));
        assert_eq!(run("cat > /dev/null"), Ok(None));
        assert_eq!(
            run("echo '{\"code\": 7, \"msg\": \"no address\"}'; exit 1"),
            Err("the plugin 'p' says: no address".into())
        );
        assert_eq!(run("echo broken; exit 1"), Err("the plugin 'p' says: broken".into()));
        assert!(run("echo broken").unwrap_err().contains("gives no JSON"));
        let none = Plugins::new("/none");
        assert!(!none.has("p") && !Plugins::new("/").has("bin/sh"));
    }
}
