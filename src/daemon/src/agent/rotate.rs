//! Rotating the `stdout` and `stderr` of running containers (mesos-features.md AGT-71).
//!
//! Mesos has a process beside each container for that; here the agent looks at the files now and then. While it is away
//! they grow.

use std::path::PathBuf;
use std::sync::Arc;
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

/// How the names of variables begin that are about a container's own output, if no parameter says anything.
const PREFIX: &str = "CONTAINER_LOGGER_";

/// How one of the two files is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    name: &'static str,
    most: u64,
    keep: u32,
}

/// How `stdout` and `stderr` of a container are rotated.
pub(super) type Rules = [Rule; 2];

/// Variables of a container by their names.
pub(super) type Variables = Vec<(String, String)>;

/// How containers' output is rotated, if `--container_logger` asks for it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Rotation(Option<Arc<Inner>>);

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    rules: Rules,
    prefix: String,
}

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
        let given = |name: &str| parameters.get(name).map(String::as_str);
        let default = |name| Rule { name, most: MOST, keep: KEEP };
        let rules = rules([default("stdout"), default("stderr")], given)
            .map_err(|why| refused("modules", format!("{LOGROTATE}: {why}")))?;
        let prefix = given("environment_variable_prefix").unwrap_or(PREFIX).to_owned();
        Ok(Rotation(Some(Arc::new(Inner { rules, prefix }))))
    }

    /// What of a container's environment is about its output.
    pub(super) fn variables(&self, environment: &[(String, String)]) -> Variables {
        let Some(inner) = &self.0 else { return Variables::new() };
        let ours = |name: &str| {
            let rest = name.strip_prefix(&inner.prefix).unwrap_or_default();
            PARAMETERS.iter().flatten().any(|known| rest == known.to_ascii_uppercase())
        };
        environment.iter().filter(|(name, _)| ours(name)).cloned().collect()
    }

    /// How a container's output is rotated that has these variables; none if nothing is rotated.
    ///
    /// # Errors
    /// Which variable cannot be used, and why.
    pub(super) fn rules(&self, variables: &[(String, String)]) -> Result<Option<Rules>, String> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let given = |name: &str| {
            let name = format!("{}{}", inner.prefix, name.to_ascii_uppercase());
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        };
        rules(inner.rules, given).map(Some)
    }

    /// Rotates from now on.
    pub(super) fn start(self, live: Containers, sandboxes: PathBuf) -> Option<tokio::task::JoinHandle<()>> {
        let rules = self.0?.rules;
        Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let folders = live.sandboxes(&sandboxes);
                let look_at_all = move || folders.iter().for_each(|(folder, own)| look(folder, own.unwrap_or(rules)));
                // A failure of one look is no reason not to look again.
                let _ = tokio::task::spawn_blocking(look_at_all).await;
            }
        }))
    }
}

fn look(folder: &std::path::Path, rules: Rules) {
    for Rule { name, most, keep } in rules {
        match containers::rotate(folder, name, most, keep) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("'{}' cannot be rotated: {error}", folder.join(name).display());
            }
            _ => {}
        }
    }
}

/// The parameters of each file: its size, and the options of its older parts.
const PARAMETERS: [[&str; 2]; 2] =
    [["max_stdout_size", "logrotate_stdout_options"], ["max_stderr_size", "logrotate_stderr_options"]];

/// The rules, changed by what is given.
fn rules<'a>([stdout, stderr]: Rules, given: impl Fn(&str) -> Option<&'a str>) -> Result<Rules, String> {
    let [out, err] = PARAMETERS;
    Ok([rule(stdout, out, &given)?, rule(stderr, err, &given)?])
}

fn rule<'a>(rule: Rule, [size, options]: [&str; 2], given: impl Fn(&str) -> Option<&'a str>) -> Result<Rule, String> {
    let Rule { name, mut most, mut keep } = rule;
    if let Some(text) = given(size) {
        let parsed = crate::flags::parse_bytes(text).ok().filter(|most| *most >= LEAST);
        most = parsed.ok_or_else(|| format!("'{size}' is no size of at least 4KB: '{text}'"))?;
    }
    if let Some(text) = given(options) {
        keep = KEEP;
        for option in text.lines().map(str::trim).filter(|option| !option.is_empty()) {
            let number = option.strip_prefix("rotate ").and_then(|number| number.trim().parse().ok());
            keep = number.ok_or_else(|| format!("'{options}' knows 'rotate NUMBER' only, not '{option}'"))?;
        }
    }
    Ok(Rule { name, most, keep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(logger: &str, parameters: &str) -> Result<Rotation, String> {
        let modules =
            format!(r#"{{"libraries":[{{"modules":[{{"name":"{LOGROTATE}","parameters":[{parameters}]}}]}}]}}"#);
        let words = [format!("--container_logger={logger}"), format!("--modules={modules}")];
        let flags = Flags::load(Part::Agent, &words, std::iter::empty()).map_err(|error| error.to_string())?;
        Rotation::read(&flags).map_err(|error| error.to_string())
    }

    const SIZE: &str =
        r#"{"key":"max_stdout_size","value":"1MB"},{"key":"logrotate_stdout_options","value":"rotate 3\n"}"#;

    fn variables(all: &[(&str, &str)]) -> Variables {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn flags() {
        let [stdout, stderr] = read(LOGROTATE, SIZE).unwrap().rules(&[]).unwrap().unwrap();
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, MOST, KEEP));
        assert_eq!(read(SANDBOX, "").unwrap().rules(&[]), Ok(None));
        for (logger, parameters, said) in [
            ("other", "", "not supported"),
            (LOGROTATE, r#"{"key":"max_stderr_size","value":"x"}"#, "no size"),
            (LOGROTATE, r#"{"key":"logrotate_stderr_options","value":"compress"}"#, "'compress'"),
        ] {
            assert!(read(logger, parameters).unwrap_err().contains(said), "{said}");
        }
    }

    #[test]
    fn variables_of_a_container_go_before_parameters() {
        let rotation = read(LOGROTATE, SIZE).unwrap();
        let own =
            [("CONTAINER_LOGGER_MAX_STDERR_SIZE", "5KB"), ("CONTAINER_LOGGER_LOGROTATE_STDERR_OPTIONS", "rotate 1")];
        let all = variables(&[own[0], ("PATH", "/bin"), ("CONTAINER_LOGGER_UNKNOWN", "x"), own[1]]);
        assert_eq!(rotation.variables(&all), variables(&own));
        let [stdout, stderr] = rotation.rules(&all).unwrap().unwrap();
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, 5 << 10, 1));
        let bad = variables(&[("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "1")]);
        assert!(rotation.rules(&bad).unwrap_err().contains("'max_stdout_size'"));
        // Without rotation nobody looks at them; another prefix may be wanted.
        assert_eq!(read(SANDBOX, "").unwrap().rules(&bad), Ok(None));
        let other = read(LOGROTATE, r#"{"key":"environment_variable_prefix","value":"LOG_"}"#).unwrap();
        assert!(other.rules(&bad).is_ok() && other.variables(&bad).is_empty());
        assert!(other.rules(&variables(&[("LOG_MAX_STDOUT_SIZE", "1")])).is_err());
    }
}
