//! Rotating the `stdout` and `stderr` of running containers (mesos-features.md AGT-71).
//!
//! Mesos has a process beside each container for that; here the agent looks at the files now and then. While it is away
//! they grow.

use std::path::PathBuf;
use std::time::Duration;

use super::containers::Containers;
use super::oversubscription::{Parameters, modules, refused};
use crate::flags::{FlagError, Flags};

/// The logger that rotates, by Mesos's name.
pub(super) const LOGROTATE: &str = "org_apache_mesos_LogrotateContainerLogger";
/// The one that does not.
const SANDBOX: &str = "org_apache_mesos_SandboxContainerLogger";
/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// In bytes, if no parameter says anything.
const MOST: u64 = 10 << 20;
const LEAST: u64 = 4096;
/// How many older parts are kept, if no option says anything.
const KEEP: u32 = 9;

/// How one of the two files is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    name: &'static str,
    most: u64,
    keep: u32,
}

/// How containers' output is rotated, if `--container_logger` asks for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Rotation(Option<[Rule; 2]>);

impl Rotation {
    /// Reads the flags.
    ///
    /// # Errors
    /// A logger that is not built in, or parameters that cannot be used.
    pub(super) fn read(flags: &Flags) -> Result<Rotation, FlagError> {
        match flags.text("container_logger") {
            "" | SANDBOX => return Ok(Rotation(None)),
            LOGROTATE => {}
            other => {
                let why = format!("'{other}' is not supported: {LOGROTATE} and {SANDBOX} are built in");
                return Err(refused("container_logger", why));
            }
        }
        let modules = modules(flags)?;
        let nothing = Parameters::new();
        let parameters = modules.get(LOGROTATE).unwrap_or(&nothing);
        let stdout = rule("stdout", parameters, "max_stdout_size", "logrotate_stdout_options")?;
        let stderr = rule("stderr", parameters, "max_stderr_size", "logrotate_stderr_options")?;
        Ok(Rotation(Some([stdout, stderr])))
    }

    /// Rotates from now on.
    pub(super) fn start(self, live: Containers, sandboxes: PathBuf) -> Option<tokio::task::JoinHandle<()>> {
        let rules = self.0?;
        Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let folders = live.sandboxes(&sandboxes);
                let looked = tokio::task::spawn_blocking(move || folders.iter().for_each(|folder| look(folder, rules)));
                // A failure of one look is no reason not to look again.
                let _ = looked.await;
            }
        }))
    }
}

fn look(folder: &std::path::Path, rules: [Rule; 2]) {
    for Rule { name, most, keep } in rules {
        match containers::rotate(folder, name, most, keep) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("'{}' cannot be rotated: {error}", folder.join(name).display());
            }
            _ => {}
        }
    }
}

fn rule(name: &'static str, parameters: &Parameters, size: &str, options: &str) -> Result<Rule, FlagError> {
    let most = match parameters.get(size) {
        None => MOST,
        Some(text) => crate::flags::parse_bytes(text).ok().filter(|most| *most >= LEAST).ok_or_else(|| {
            refused("modules", format!("'{size}' of {LOGROTATE} is no size of at least 4KB: '{text}'"))
        })?,
    };
    let text = parameters.get(options).map(String::as_str).unwrap_or_default();
    let mut keep = KEEP;
    for option in text.lines().map(str::trim).filter(|option| !option.is_empty()) {
        let number = option.strip_prefix("rotate ").and_then(|number| number.trim().parse().ok());
        keep = number.ok_or_else(|| {
            refused("modules", format!("'{options}' of {LOGROTATE} knows 'rotate NUMBER' only, not '{option}'"))
        })?;
    }
    Ok(Rule { name, most, keep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(logger: &str, parameters: &str) -> Result<Option<[Rule; 2]>, String> {
        let modules =
            format!(r#"{{"libraries":[{{"modules":[{{"name":"{LOGROTATE}","parameters":[{parameters}]}}]}}]}}"#);
        let words = [format!("--container_logger={logger}"), format!("--modules={modules}")];
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        Rotation::read(&flags).map(|rotation| rotation.0).map_err(|error| error.to_string())
    }

    #[test]
    fn flags() {
        let size = r#"{"key":"max_stdout_size","value":"1MB"},{"key":"logrotate_stdout_options","value":"rotate 3\n"}"#;
        let [stdout, stderr] = read(LOGROTATE, size).unwrap().unwrap();
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, MOST, KEEP));
        assert_eq!(read(SANDBOX, ""), Ok(None));
        for (logger, parameters, said) in [
            ("other", "", "not supported"),
            (LOGROTATE, r#"{"key":"max_stderr_size","value":"x"}"#, "no size"),
            (LOGROTATE, r#"{"key":"logrotate_stderr_options","value":"compress"}"#, "'compress'"),
        ] {
            assert!(read(logger, parameters).unwrap_err().contains(said), "{said}");
        }
    }
}
