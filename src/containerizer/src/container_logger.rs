//! The container logger: rotates the `stdout` and `stderr` of running containers (AGT-71).
//!
//! Mesos runs a process beside each container for that. Here the agent checks the files once a second; while it is
//! stopped they grow.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::lock;
use tokio::sync::Semaphore;

use crate::composing::ComposingContainerizer;
use crate::config::{Logger, Rule};

/// How often the files are examined.
const INTERVAL: Duration = Duration::from_secs(1);
/// Default size limit in bytes.
const MOST: u64 = 10 << 20;
const LEAST: u64 = 4096;
/// Default number of older parts.
const KEEP: u32 = 9;
/// Limit of the number of older parts: a rotation renames them all.
const KEEP_MAX: u32 = 1000;
/// How many containers' files are rotated at the same time.
const AT_ONCE: usize = 32;

/// How `stdout` and `stderr` of a container are rotated.
pub(crate) type Rules = [Rule; 2];

/// Variables of a container by their names.
pub(crate) type Variables = Vec<(String, String)>;

/// How containers' output is rotated, if `--container_logger` asks for it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerLogger(Option<Arc<Logger>>);

impl ContainerLogger {
    /// Rotates if it is configured.
    pub(crate) fn new(config: Option<Logger>) -> ContainerLogger {
        ContainerLogger(config.map(Arc::new))
    }

    /// What of a container's environment is about its output.
    pub(crate) fn variables(&self, environment: &[(String, String)]) -> Variables {
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
    pub(crate) fn rules(&self, variables: &[(String, String)]) -> Result<Option<Rules>, RotationError> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let given = |name: &str| {
            let name = format!("{}{}", inner.prefix, name.to_ascii_uppercase());
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        };
        changed(inner.rules, given).map(Some)
    }

    /// Rotates from now on.
    pub(crate) fn start(self, live: ComposingContainerizer, sandboxes: PathBuf) -> Option<tokio::task::JoinHandle<()>> {
        let rules = self.0?.rules;
        let rotating = Rotating::new(look);
        Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(INTERVAL).await;
                let directories =
                    live.sandboxes(&sandboxes).into_iter().map(|(directory, own)| (directory, own.unwrap_or(rules)));
                let directories: Vec<_> = directories.collect();
                let look_at_all =
                    move || directories.into_iter().filter(|(directory, rules)| is_due(directory, *rules)).collect();
                // A failure of one look is no reason not to look again.
                let due: Vec<_> = tokio::task::spawn_blocking(look_at_all).await.unwrap_or_default();
                due.into_iter().for_each(|(directory, rules)| rotating.begin(directory, rules));
            }
        }))
    }
}

/// The containers whose files are being rotated: each separately, so that none waits for another one's large files.
#[derive(Clone)]
struct Rotating {
    rotate: fn(&Path, Rules),
    directories: Arc<Mutex<BTreeSet<PathBuf>>>,
    room: Arc<Semaphore>,
}

impl Rotating {
    fn new(rotate: fn(&Path, Rules)) -> Rotating {
        Rotating { rotate, directories: Arc::default(), room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Rotates a container's files, unless that is in progress.
    fn begin(&self, directory: PathBuf, rules: Rules) {
        if !lock(&self.directories).insert(directory.clone()) {
            return;
        }
        let own = self.clone();
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _room = own.room.acquire().await;
            let (rotate, place) = (own.rotate, directory.clone());
            let _ = tokio::task::spawn_blocking(move || rotate(&place, rules)).await;
            lock(&own.directories).remove(&directory);
        });
    }
}

/// Whether one of the files is too long.
fn is_due(directory: &Path, rules: Rules) -> bool {
    rules.iter().any(|rule| directory.join(rule.name).symlink_metadata().is_ok_and(|file| file.len() > rule.most))
}

fn look(directory: &Path, rules: Rules) {
    for Rule { name, most, keep } in rules {
        match containers::rotate(directory, name, most, keep) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!("'{}' cannot be rotated: {error}", directory.join(name).display());
            }
            _ => {}
        }
    }
}

/// The parameters of each file: its size, and the options of its older parts.
const PARAMETERS: [[&str; 2]; 2] =
    [["max_stdout_size", "logrotate_stdout_options"], ["max_stderr_size", "logrotate_stderr_options"]];

/// A parameter of the logger that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationError {
    /// The size of a file.
    #[error("'{parameter}' is not a size of at least 4KB: '{value}'")]
    Size {
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        value: String,
    },
    /// An option of logrotate.
    #[error("'{parameter}' knows 'rotate NUMBER' only, not '{option}'")]
    Option {
        /// The parameter.
        parameter: &'static str,
        /// The option.
        option: String,
    },
}

/// The rules by the parameters of the logger.
///
/// # Errors
/// A parameter that breaks a rule.
pub fn rules<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<[Rule; 2], RotationError> {
    changed(["stdout", "stderr"].map(|name| Rule { name, most: MOST, keep: KEEP }), given)
}

/// The rules, changed by what is given.
fn changed<'a>([stdout, stderr]: Rules, given: impl Fn(&str) -> Option<&'a str>) -> Result<Rules, RotationError> {
    let [out, err] = PARAMETERS;
    Ok([rule(stdout, out, &given)?, rule(stderr, err, &given)?])
}

fn rule<'a>(
    rule: Rule,
    [size, options]: [&'static str; 2],
    given: impl Fn(&str) -> Option<&'a str>,
) -> Result<Rule, RotationError> {
    let Rule { name, mut most, mut keep } = rule;
    if let Some(text) = given(size) {
        let parsed = base::parse_bytes(text).filter(|most| *most >= LEAST);
        most = parsed.ok_or_else(|| RotationError::Size { parameter: size, value: text.to_owned() })?;
    }
    if let Some(text) = given(options) {
        keep = KEEP;
        for option in text.lines().map(str::trim).filter(|option| !option.is_empty()) {
            let number = option.strip_prefix("rotate ").and_then(|number| number.trim().parse::<u64>().ok());
            let number =
                number.ok_or_else(|| RotationError::Option { parameter: options, option: option.to_owned() })?;
            keep = u32::try_from(number).unwrap_or(KEEP_MAX).min(KEEP_MAX);
        }
    }
    Ok(Rule { name, most, keep })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rotation(prefix: &str) -> ContainerLogger {
        let own = [("max_stdout_size", "1MB"), ("logrotate_stdout_options", "rotate 3\n")];
        let given = |name: &str| own.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        ContainerLogger::new(Some(Logger { rules: super::rules(given).unwrap(), prefix: prefix.to_owned() }))
    }

    fn variables(all: &[(&str, &str)]) -> Variables {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn variables_of_a_container_go_before_parameters() {
        let rotating = rotation("CONTAINER_LOGGER_");
        let [stdout, stderr] = rotating.rules(&[]).unwrap().unwrap();
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, MOST, KEEP));
        let own =
            [("CONTAINER_LOGGER_MAX_STDERR_SIZE", "5KB"), ("CONTAINER_LOGGER_LOGROTATE_STDERR_OPTIONS", "rotate 1")];
        let all = variables(&[own[0], ("PATH", "/bin"), ("CONTAINER_LOGGER_UNKNOWN", "x"), own[1]]);
        assert_eq!(rotating.variables(&all), variables(&own));
        let [stdout, stderr] = rotating.rules(&all).unwrap().unwrap();
        assert_eq!((stdout.most, stdout.keep, stderr.most, stderr.keep), (1 << 20, 3, 5 << 10, 1));
        // More parts than can be renamed in good time are not kept.
        for number in ["4294967295", "18446744073709551615"] {
            let option = format!("rotate {number}");
            let many = variables(&[("CONTAINER_LOGGER_LOGROTATE_STDOUT_OPTIONS", &option)]);
            assert_eq!(rotating.rules(&many).unwrap().unwrap()[0].keep, KEEP_MAX);
        }
        let bad = variables(&[("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "1")]);
        assert!(rotating.rules(&bad).unwrap_err().to_string().contains("'max_stdout_size'"));
        // Without rotation they have no effect; another prefix may be used.
        assert_eq!(ContainerLogger::default().rules(&bad), Ok(None));
        let other = rotation("LOG_");
        assert!(other.rules(&bad).is_ok() && other.variables(&bad).is_empty());
        assert!(other.rules(&variables(&[("LOG_MAX_STDOUT_SIZE", "1")])).is_err());
    }

    #[test]
    fn no_container_waits_for_another_one() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static SLOW: Mutex<()> = Mutex::new(());
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        static DONE: AtomicUsize = AtomicUsize::new(0);
        let rotating = Rotating::new(|directory, _| {
            if directory == Path::new("slow") {
                BEGUN.fetch_add(1, Ordering::Relaxed);
                drop(lock(&SLOW));
            } else {
                DONE.fetch_add(1, Ordering::Relaxed);
            }
        });
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| Rule { name, most: MOST, keep: KEEP });
        let begin = |directory: &str| rotating.begin(directory.into(), [stdout, stderr]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let held = lock(&SLOW);
        runtime.block_on(async {
            begin("slow");
            let until = async |reached: &dyn Fn() -> bool| {
                while !reached() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let all = async {
                until(&|| BEGUN.load(Ordering::Relaxed) == 1).await;
                for number in 0..100 {
                    begin(&number.to_string());
                }
                // It is in progress, and is not started again.
                begin("slow");
                until(&|| DONE.load(Ordering::Relaxed) == 100).await;
            };
            tokio::time::timeout(Duration::from_secs(60), all).await.expect("the others wait for it");
            drop(held);
            until(&|| lock(&rotating.directories).is_empty()).await;
            assert_eq!(BEGUN.load(Ordering::Relaxed), 1);
        });
    }
}
