//! Daemon flags with Mesos's names and defaults: from a file, the environment and the command line.
//!
//! The command line takes precedence over the environment (`MESOS_*`, then `TEPUI_*`), that over `--config`, that over
//! the defaults. [`MasterFlags`] and [`AgentFlags`] are the typed values; `flags/master.rs`, `flags/agent.rs` and
//! `flags/shared.rs` define all flags with their defaults. Readers check rules that concern more than one value.

pub(crate) mod agent;
pub(crate) mod json;
pub(crate) mod master;
mod shared;
mod shown;
mod spec;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

pub use agent::AgentFlags;
pub use master::MasterFlags;
pub use shared::{AuditFlags, LoggingFlags, NetworkFlags, TlsFlags};
pub(crate) use spec::Json;
use spec::{Effect, FlagValue};
pub use spec::{Flag, Group, Kind, ValueError};

/// Maximum size in bytes of a file that a flag's `file://` value or `--config` names.
const FILE_LIMIT: u64 = 16 << 20;

/// A daemon that has flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The daemon of `tepui master`.
    Master,
    /// The daemon of `tepui agent`.
    Agent,
}

impl Part {
    /// Returns the flags of this daemon, in groups.
    pub fn groups(self) -> &'static [Group] {
        match self {
            Part::Master => master::MASTER,
            Part::Agent => agent::AGENT,
        }
    }

    /// Returns all flags of this daemon.
    pub fn flags(self) -> impl Iterator<Item = &'static Flag> {
        self.groups().iter().flat_map(|group| group.flags)
    }

    /// Returns the subcommand that runs this daemon.
    pub fn command(self) -> &'static str {
        match self {
            Part::Master => "master",
            Part::Agent => "agent",
        }
    }

    fn find(self, name: &str) -> Option<&'static Flag> {
        self.flags().find(|flag| flag.name == name || flag.aliases.contains(&name))
    }

    /// Returns the name of a flag that is most similar to `name`; `None` if none is similar enough to be meant.
    fn nearest(self, name: &str) -> Option<&'static str> {
        nearest(name, self.flags().map(|flag| flag.name))
    }
}

/// Returns the name among `known` that is most similar to `name`; `None` if none is similar enough to be meant.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let (likeness, nearest) = near.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness > 0.8).then_some(nearest)
}

/// An error of a daemon's flags.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    /// No flag has this name.
    #[error("unknown flag '--{name}'{}; see 'tepui {part} --help'", nearest.map(|n| format!(", did you mean '--{n}'?")).unwrap_or_default())]
    Unknown {
        /// The unknown name.
        name: String,
        /// The known flag with the most similar name, if one is similar enough.
        nearest: Option<&'static str>,
        /// The subcommand of the daemon.
        part: &'static str,
    },
    /// The flag is given twice, perhaps under an older name.
    #[error("flag '--{name}' is given twice")]
    Twice {
        /// Name of the flag in this version.
        name: &'static str,
    },
    /// `--no-name` for a flag that is not a boolean, or with a value.
    #[error("'--no-{name}' is invalid: '--{name}' takes a value")]
    Negated {
        /// Name of the flag.
        name: &'static str,
    },
    /// `--name` without `=value` for a flag that is not a boolean.
    #[error("flag '--{name}' needs a value: write '--{name}=...'")]
    NoValue {
        /// Name of the flag.
        name: &'static str,
    },
    /// The value does not have the form of the flag's type.
    #[error("flag '--{name}' cannot be read")]
    Value {
        /// Name of the flag.
        name: &'static str,
        /// What is wrong with the value.
        source: ValueError,
    },
    /// A file that a flag names cannot be read.
    #[error("flag '--{name}' names the file '{path}', which cannot be read")]
    File {
        /// Name of the flag.
        name: &'static str,
        /// Path of the file.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The `--config` file is not a TOML table of plain values.
    #[error("the configuration file '{path}' is not usable: {why}")]
    Config {
        /// Path of the file.
        path: String,
        /// The line and the rule that it breaks.
        why: String,
    },
    /// A required flag is missing.
    #[error("flag '--{name}' is required{why}")]
    Missing {
        /// Name of the flag.
        name: &'static str,
        /// When the flag is required, as the end of the sentence.
        why: &'static str,
    },
    /// The value has the right form, but breaks another rule.
    #[error("flag '--{name}': {why}")]
    Refused {
        /// Name of the flag.
        name: &'static str,
        /// The rule that the value breaks.
        why: String,
    },
}

/// The effective flags of a daemon. Every value has the form of its kind.
#[derive(Clone, Debug)]
pub struct Flags {
    part: Part,
    values: BTreeMap<&'static str, String>,
    /// Warnings for the operator: old names, ignored arguments.
    pub warnings: Vec<String>,
}

impl Flags {
    /// Reads flags from all sources. `arguments` do not include the program and the subcommand.
    ///
    /// # Errors
    /// The first flag that is unknown, given twice, or malformed.
    pub fn load(
        part: Part,
        arguments: &[String],
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Flags, FlagError> {
        let mut warnings = Vec::new();
        let given = from_command_line(part, arguments, &mut warnings)?;
        let mut values = from_environment(part, environment);
        values.extend(given);
        if let Some(path) = values.get("config") {
            for (name, value) in from_file(part, Path::new(path))? {
                values.entry(name).or_insert(value);
            }
        }
        let mut flags = Flags { part, values: BTreeMap::new(), warnings };
        for flag in part.flags() {
            let text = match values.remove(flag.name) {
                Some(text) => content(flag, text)?,
                None => match flag.default {
                    Some(text) => text.to_owned(),
                    None => continue,
                },
            };
            let text = flag.kind.normalise(&text).map_err(|source| FlagError::Value { name: flag.name, source })?;
            flags.values.insert(flag.name, text);
        }
        Ok(flags)
    }

    /// Returns the defaults, for embedded clusters and tests.
    pub fn defaults(part: Part) -> Flags {
        let values = part.flags().filter_map(|flag| {
            let text = flag.default?;
            Some((flag.name, flag.kind.normalise(text).unwrap_or_else(|_| text.to_owned())))
        });
        Flags { part, values: values.collect(), warnings: Vec::new() }
    }

    /// Sets a flag as the command line would.
    ///
    /// # Errors
    /// An unknown name or a malformed value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), FlagError> {
        let flag = find(self.part, name)?;
        let text = flag.kind.normalise(value).map_err(|source| FlagError::Value { name: flag.name, source })?;
        self.values.insert(flag.name, text);
        Ok(())
    }

    /// Returns the daemon of these flags.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Returns the typed value of the flag `name`.
    ///
    /// # Errors
    /// The text does not have the form of the type.
    pub(crate) fn value<T: FlagValue>(&self, name: &'static str) -> Result<T, FlagError> {
        T::read(self.text(name)).map_err(|source| FlagError::Value { name, source })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns whether `--help` is given.
    pub fn asks_for_help(&self) -> bool {
        self.text("help") == Some("true")
    }

    /// Returns whether `--version` is given.
    pub fn asks_for_version(&self) -> bool {
        self.text("version") == Some("true")
    }

    /// Returns whether a flag has another value than its default. The empty text counts as unset.
    fn is_changed(&self, flag: &Flag) -> bool {
        let default = flag.default.and_then(|text| flag.kind.normalise(text).ok());
        self.text(flag.name).is_some_and(|text| !text.is_empty() && Some(text) != default.as_deref())
    }

    /// Checks the flags that no code reads: an unsupported flag must have its default, and a flag without effect is
    /// named in the log.
    ///
    /// # Errors
    /// The first unsupported flag with another value.
    pub(crate) fn check_unread(&self) -> Result<(), FlagError> {
        for flag in self.part.flags().filter(|flag| self.is_changed(flag)) {
            match flag.effect {
                Effect::Read | Effect::Loader => {}
                Effect::Unsupported => {
                    let why = "is not supported by this version of tepui".to_owned();
                    return Err(FlagError::Refused { name: flag.name, why });
                }
                Effect::None(why) => tracing::warn!("'--{}' has no effect: {why}", flag.name),
            }
        }
        Ok(())
    }

    /// Returns all set flags by name, as `/flags` shows them: without passwords and other secrets.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        self.values.iter().map(|(name, value)| (*name, shown::shown(name, value)))
    }
}

fn find(part: Part, name: &str) -> Result<&'static Flag, FlagError> {
    part.find(name).ok_or_else(|| FlagError::Unknown {
        name: name.to_owned(),
        nearest: part.nearest(name),
        part: part.command(),
    })
}

fn from_command_line(
    part: Part,
    arguments: &[String],
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<&'static str, String>, FlagError> {
    let mut values = BTreeMap::new();
    for argument in arguments {
        if argument == "--" {
            break;
        }
        let argument = if argument == "-h" { "--help" } else { argument };
        let Some(rest) = argument.strip_prefix("--") else {
            warnings.push(format!("the argument '{argument}' is not a flag and is ignored"));
            continue;
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        let name = name.to_ascii_lowercase();
        let (flag, value) = understand(part, &name, value)?;
        if flag.name != name && flag.aliases.contains(&name.as_str()) {
            warnings.push(format!("'--{name}' is an old name: use '--{}'", flag.name));
        }
        if values.insert(flag.name, value).is_some() {
            return Err(FlagError::Twice { name: flag.name });
        }
    }
    Ok(values)
}

/// Returns the flag and the value of an argument `--name[=value]`.
fn understand(part: Part, name: &str, value: Option<&str>) -> Result<(&'static Flag, String), FlagError> {
    if let Some(flag) = part.find(name) {
        return match (value, flag.kind) {
            (Some(value), _) => Ok((flag, value.to_owned())),
            (None, Kind::Bool) => Ok((flag, "true".to_owned())),
            (None, _) => Err(FlagError::NoValue { name: flag.name }),
        };
    }
    if let Some(flag) = name.strip_prefix("no-").and_then(|positive| part.find(positive)) {
        return match (value, flag.kind) {
            (None, Kind::Bool) => Ok((flag, "false".to_owned())),
            _ => Err(FlagError::Negated { name: flag.name }),
        };
    }
    find(part, name).map(|flag| (flag, String::new()))
}

/// Returns the values of `MESOS_*` and `TEPUI_*`. Other variables, and unknown names among these, are ignored.
fn from_environment(part: Part, environment: impl Iterator<Item = (String, String)>) -> BTreeMap<&'static str, String> {
    let (mut mesos, mut tepui) = (BTreeMap::new(), BTreeMap::new());
    for (variable, value) in environment {
        let (name, values) = match (variable.strip_prefix("MESOS_"), variable.strip_prefix("TEPUI_")) {
            (Some(name), _) => (name, &mut mesos),
            (_, Some(name)) => (name, &mut tepui),
            _ => continue,
        };
        if let Some(flag) = part.find(&name.to_ascii_lowercase()) {
            values.insert(flag.name, value);
        }
    }
    mesos.extend(tepui);
    mesos
}

fn from_file(part: Part, path: &Path) -> Result<BTreeMap<&'static str, String>, FlagError> {
    let shown = path.display().to_string();
    let text = read_limited(path).map_err(|source| FlagError::File { name: "config", path: shown.clone(), source })?;
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| FlagError::Config { path: shown.clone(), why: error.to_string() })?;
    let mut values = BTreeMap::new();
    for (name, value) in table {
        let flag = find(part, &name)?;
        let text = match value {
            toml::Value::String(text) => text,
            toml::Value::Boolean(on) => on.to_string(),
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            other => {
                let why = format!("'{name}' is a {}, not a plain value", other.type_str());
                return Err(FlagError::Config { path: shown, why });
            }
        };
        if values.insert(flag.name, text).is_some() {
            return Err(FlagError::Twice { name: flag.name });
        }
    }
    Ok(values)
}

/// Returns the value, or the content of the file that it names (FLG-03).
fn content(flag: &'static Flag, text: String) -> Result<String, FlagError> {
    // A text that is not a JSON object or list is the name of a file, as Mesos takes an absolute path.
    let is_name = flag.kind == Kind::Json && !text.is_empty() && !text.trim_start().starts_with(['{', '[']);
    let bare = Some(text.as_str()).filter(|_| is_name);
    match text.strip_prefix("file://").or(bare) {
        Some(path) if flag.kind != Kind::Path => read_limited(Path::new(path))
            .map(|content| content.trim_end_matches('\n').to_owned())
            .map_err(|source| FlagError::File { name: flag.name, path: path.to_owned(), source }),
        _ => Ok(text),
    }
}

/// Reads a file that a flag names, up to a size limit.
///
/// # Errors
/// An error of the system, or the file is larger than the limit.
pub(crate) fn read_limited(path: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > FILE_LIMIT {
        return Err(std::io::Error::other(format!("it has {size} bytes, more than {FILE_LIMIT}")));
    }
    std::fs::read_to_string(path)
}

/// Returns the text of `--help`: the flags in groups.
pub fn help(part: Part) -> String {
    let command = part.command();
    let mut text = format!(
        "Usage: tepui {command} [--name=value ...]\n\n\
         Every flag can also be set by MESOS_NAME or TEPUI_NAME, or in the file of --config, which is TOML:\n\n    \
         work_dir = \"/var/lib/tepui/{command}\"\n    {} = true\n\n\
         contrib/config/{command}.toml has all flags. The command line overrides the environment, which overrides the \
         file.\n",
        if part == Part::Master { "authenticate_agents" } else { "switch_user" },
    );
    for group in part.groups() {
        text.push_str(&format!("\n{}:\n", group.about.trim().trim_end_matches('.')));
        let mut flags: Vec<&Flag> = group.flags.iter().collect();
        flags.sort_by_key(|flag| flag.name);
        for flag in flags {
            let value = if flag.kind == Kind::Bool { "" } else { "=VALUE" };
            text.push_str(&format!("  --{}{value}\n        {}\n", flag.name, flag.described()));
        }
    }
    text
}

#[cfg(test)]
impl MasterFlags {
    /// Returns the defaults with these values.
    pub(crate) fn with(given: &[(&str, &str)]) -> MasterFlags {
        MasterFlags::read(&Flags::with(Part::Master, given)).unwrap()
    }
}

#[cfg(test)]
impl AgentFlags {
    /// Returns the defaults with these values.
    pub(crate) fn with(given: &[(&str, &str)]) -> AgentFlags {
        AgentFlags::read(&Flags::with(Part::Agent, given)).unwrap()
    }
}

#[cfg(test)]
impl Flags {
    /// Returns the defaults with these values.
    pub(crate) fn with(part: Part, given: &[(&str, &str)]) -> Flags {
        let mut flags = Flags::defaults(part);
        given.iter().for_each(|(name, value)| flags.set(name, value).unwrap());
        flags
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn load(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Flags, FlagError> {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let environment = environment.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Flags::load(Part::Master, &arguments, environment)
    }

    #[test]
    fn sources_in_order() {
        let flags = load(
            &["--port=1", "--no-root_submissions", "--QUIET"],
            &[("MESOS_PORT", "2"), ("MESOS_CLUSTER", "a"), ("TEPUI_CLUSTER", "b"), ("MESOS_NATIVE_LIBRARY", "x")],
        )
        .unwrap();
        let typed = MasterFlags::read(&flags).unwrap();
        assert_eq!(typed.identity.port, 1);
        assert_eq!(typed.identity.cluster.as_deref(), Some("b"));
        assert!(!typed.frameworks.root_submissions);
        assert!(LoggingFlags::read(&flags).unwrap().quiet);
        let shown: BTreeMap<_, _> = flags.iter().collect();
        assert_eq!(shown["agent_reregister_timeout"], "10mins");
        assert_eq!(shown["registry_fetch_timeout"], "1mins");
    }

    #[test]
    fn old_names_warn() {
        let flags = load(&["--slave_ping_timeout=2secs"], &[]).unwrap();
        assert_eq!(MasterFlags::read(&flags).unwrap().agents.agent_ping_timeout, Duration::from_secs(2));
        assert_eq!(flags.warnings.len(), 1);
    }

    #[test]
    fn refusals_name_the_flag() {
        for (arguments, words) in [
            (&["--qorum=1"][..], "unknown flag '--qorum', did you mean '--quorum'?"),
            (&["--port=1", "--port=2"], "flag '--port' is given twice"),
            (&["--agent_ping_timeout=1secs", "--slave_ping_timeout=1secs"], "'--agent_ping_timeout' is given twice"),
            (&["--no-port"], "'--no-port' is invalid"),
            (&["--cluster"], "flag '--cluster' needs a value"),
            (&["--offer_timeout=5"], "flag '--offer_timeout' cannot be read"),
            (&["--acls=file:///does/not/exist"], "names the file '/does/not/exist'"),
            (&["--acls=/does/not/exist"], "names the file '/does/not/exist'"),
            (&["--acls=not/there.json"], "names the file 'not/there.json'"),
        ] {
            let error = load(arguments, &[]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn help_has_both_forms_and_subjects() {
        for word in ["-h", "--help"] {
            assert!(load(&[word], &[]).unwrap().asks_for_help(), "{word}");
        }
        let text = help(Part::Agent);
        assert!(text.contains("\nGarbage collection of sandboxes and checkpoints:\n"), "{text}");
    }

    /// The examples contain every flag that is read, as a comment, with its default or an example value.
    #[test]
    fn config_examples_have_every_flag() {
        for part in [Part::Master, Part::Agent] {
            let name = format!("../../contrib/config/{}.toml", part.command());
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            from_file(part, &path).unwrap();
            let all = text.lines().map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.split(' ').nth(1) == Some("=") => rest,
                _ => line,
            });
            let all_path = std::env::temp_dir().join(format!("tepui-{}-{}.toml", part.command(), std::process::id()));
            std::fs::write(&all_path, all.collect::<Vec<_>>().join("\n")).unwrap();
            let values = from_file(part, &all_path).unwrap();
            std::fs::remove_file(&all_path).unwrap();
            for flag in part.flags().filter(|flag| flag.effect == Effect::Read) {
                let text = values.get(flag.name).unwrap_or_else(|| panic!("{} has no {}", path.display(), flag.name));
                assert!(flag.kind.normalise(text).is_ok(), "{}: {text}", flag.name);
            }
        }
    }

    #[test]
    fn every_default_fits_its_kind() {
        for part in [Part::Master, Part::Agent] {
            for flag in part.flags() {
                if let Some(text) = flag.default {
                    assert!(flag.kind.normalise(text).is_ok(), "{}", flag.name);
                }
            }
        }
        MasterFlags::with(&[]);
        AgentFlags::with(&[]);
    }

    #[test]
    fn unsupported_flags_are_rejected_unless_they_have_their_defaults() {
        let check = |part, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let flags = Flags::load(part, &words, std::iter::empty()).unwrap();
            flags.check_unread().map_err(|error| error.to_string())
        };
        assert_eq!(check(Part::Agent, &[]), Ok(()));
        assert_eq!(check(Part::Agent, &["--no-memory_profiling", "--launcher_dir=/usr/libexec/mesos"]), Ok(()));
        assert_eq!(check(Part::Master, &["--webui_dir=/usr/share/mesos/webui", "--hooks="]), Ok(()));
        for (part, word) in [
            (Part::Agent, "--domain_socket_location=/x"),
            (Part::Agent, "--memory_profiling"),
            (Part::Agent, "--volume_gid_range=[1-2]"),
            (Part::Master, "--registry_strict"),
            (Part::Master, "--modules={}"),
        ] {
            let error = check(part, &[word]).unwrap_err();
            assert!(error.contains("is not supported"), "{word}: {error}");
        }
    }

    /// docs/mesos/flags.md lists the flags of Mesos, not those that only tepui has.
    #[test]
    fn names_and_defaults_are_those_of_mesos() {
        let page = include_str!("../../../docs/mesos/flags.md");
        let mut part = None;
        let mut rows = 0;
        for line in page.lines() {
            part = match line {
                "## Master" => Some(Part::Master),
                "## Agent" => Some(Part::Agent),
                _ => part,
            };
            let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let (Some(part), ["", name, alias, default, ""]) = (part, &cells[..]) else { continue };
            let Some(name) = name.strip_prefix("--").filter(|name| !name.starts_with('-')) else { continue };
            let flag = part.find(name).unwrap_or_else(|| panic!("--{name} is missing"));
            assert_eq!((flag.name, flag.aliases.first().copied()), (name, alias.strip_prefix("--")), "--{name}");
            // Text such as "from hostname" describes what Mesos does without the flag; `<prefix>` is where Mesos is
            // installed.
            if !default.contains([' ', '<']) {
                let normal = |text: &str| {
                    let is_set = !text.is_empty();
                    is_set.then(|| flag.kind.normalise(text).unwrap_or_else(|_| text.to_owned()))
                };
                assert_eq!(flag.default.and_then(normal), normal(default), "--{name}");
            }
            rows += 1;
        }
        assert!(rows > 200, "{rows}");
    }
}
