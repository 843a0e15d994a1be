//! The container logger, which rotates the `stdout` and `stderr` of running containers (AGT-71).
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

/// Interval between two checks of the files.
const INTERVAL: Duration = Duration::from_secs(1);
/// Default maximum size of a file in bytes.
const MOST: u64 = 10 << 20;
const LEAST: u64 = 4096;
/// Default number of older parts that are kept.
const KEEP: u32 = 9;
/// Maximum number of older parts; each rotation renames them all.
const KEEP_MAX: u32 = 1000;
/// Maximum number of containers whose files are rotated at the same time.
const AT_ONCE: usize = 32;

/// Rules for the rotation of a container's `stdout` and `stderr`.
pub(crate) type Rules = [Rule; 2];

/// Environment variables of a container: names and values.
pub(crate) type Variables = Vec<(String, String)>;

/// The container logger, if `--container_logger` enables it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerLogger(Option<Arc<Logger>>);

impl ContainerLogger {
    /// Creates a logger with this configuration; without one it rotates nothing.
    pub(crate) fn new(config: Option<Logger>) -> ContainerLogger {
        ContainerLogger(config.map(Arc::new))
    }

    /// Returns the variables of a container's environment that concern its output.
    pub(crate) fn variables(&self, environment: &[(String, String)]) -> Variables {
        let Some(inner) = &self.0 else { return Variables::new() };
        let ours = |name: &str| {
            let rest = name.strip_prefix(&inner.prefix).unwrap_or_default();
            PARAMETERS.iter().flatten().any(|known| rest == known.to_ascii_uppercase())
        };
        environment.iter().filter(|(name, _)| ours(name)).cloned().collect()
    }

    /// Returns the rules for a container with these variables; `None` if nothing is rotated.
    ///
    /// # Errors
    /// The variable that is invalid, and why.
    pub(crate) fn rules(&self, variables: &[(String, String)]) -> Result<Option<Rules>, RotationError> {
        let Some(inner) = &self.0 else { return Ok(None) };
        let given = |name: &str| {
            let name = format!("{}{}", inner.prefix, name.to_ascii_uppercase());
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
        };
        changed(inner.rules, given).map(Some)
    }

    /// Starts the task that checks and rotates the files.
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
                // A panic in one check must not end the task.
                let due: Vec<_> = tokio::task::spawn_blocking(look_at_all).await.unwrap_or_default();
                due.into_iter().for_each(|(directory, rules)| rotating.begin(directory, rules));
            }
        }))
    }
}

/// The directories whose files are being rotated. Each one is rotated separately, so that none waits for another one's
/// large files.
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

    /// Starts the rotation of a container's files, unless it is already in progress.
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

/// Returns whether one of the files exceeds its maximum size.
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

/// Parameters for each file: its maximum size, and the logrotate options.
const PARAMETERS: [[&str; 2]; 2] =
    [["max_stdout_size", "logrotate_stdout_options"], ["max_stderr_size", "logrotate_stderr_options"]];

/// A parameter of the logger that is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RotationError {
    /// The maximum size of a file is invalid or too small.
    #[error("'{parameter}' is not a size of at least 4KB: '{value}'")]
    Size {
        /// Name of the parameter.
        parameter: &'static str,
        /// Value of the parameter.
        value: String,
    },
    /// An option of logrotate is not supported.
    #[error("'{parameter}' supports only 'rotate NUMBER', not '{option}'")]
    Option {
        /// Name of the parameter.
        parameter: &'static str,
        /// Text of the option.
        option: String,
    },
}

/// Returns the rules for `stdout` and `stderr` from the parameters of the logger.
///
/// # Errors
/// A parameter that is invalid.
pub fn rules<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Result<[Rule; 2], RotationError> {
    changed(["stdout", "stderr"].map(|name| Rule { name, most: MOST, keep: KEEP }), given)
}

/// Returns the rules with the changes that the parameters make.
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
        // More parts than can be renamed quickly are not kept.
        for number in ["4294967295", "18446744073709551615"] {
            let option = format!("rotate {number}");
            let many = variables(&[("CONTAINER_LOGGER_LOGROTATE_STDOUT_OPTIONS", &option)]);
            assert_eq!(rotating.rules(&many).unwrap().unwrap()[0].keep, KEEP_MAX);
        }
        let bad = variables(&[("CONTAINER_LOGGER_MAX_STDOUT_SIZE", "1")]);
        assert!(rotating.rules(&bad).unwrap_err().to_string().contains("'max_stdout_size'"));
        // The variables have no effect without rotation, or with another prefix.
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
                // A rotation in progress is not started again.
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
