//! Finds and reads a registry: from tepui's file, or from the replicated logs of Mesos masters.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use protos::mesos::internal::Registry;
use replicated_log::{LogError, Options, Recovered};
use store::{FileRegistry, StoreError};

/// Name of the directory of a Mesos master's log in its work directory.
const LOG: &str = "replicated_log";

/// Flags of commands that read a registry.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A work directory, its `registry.redb` or its `replicated_log`; of Mesos masters one each
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) log: LogArgs,
}

/// Flags about replicated logs.
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// The Mesos masters' --quorum: so many of their logs are needed [default: a majority of those given]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=51))]
    quorum: Option<u32>,
    /// Ignore an unfinished write at the end of a log, as LevelDB does
    #[arg(long)]
    accept_torn_log: bool,
}

/// A registry, and the place where it was found.
pub(super) struct LoadedRegistry {
    pub(super) registry: Registry,
    /// Description of the place.
    pub(super) place: String,
}

/// The kind of registry at a path.
enum RegistryKind {
    Tepui(PathBuf),
    Log(PathBuf),
}

impl Args {
    /// Reads the registry.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(super) fn read(&self) -> Result<LoadedRegistry> {
        let mut logs = Vec::new();
        for path in &self.paths {
            match kind_of(path)? {
                RegistryKind::Log(log) => logs.push(log),
                RegistryKind::Tepui(file) if self.paths.len() == 1 => return read_file(&file),
                RegistryKind::Tepui(file) => {
                    bail!("'{}' is the registry of a tepui master: name it alone", file.display())
                }
            }
        }
        let recovered = self.log.read(&logs)?;
        let place = describe(&recovered);
        Ok(LoadedRegistry { registry: recovered.registry, place })
    }
}

impl LogArgs {
    /// Reads replicated logs.
    ///
    /// # Errors
    /// The logs are rejected; the error says what to do about it.
    pub(super) fn read(&self, logs: &[PathBuf]) -> Result<Recovered> {
        let quorum = self.quorum.and_then(|quorum| usize::try_from(quorum).ok());
        let options = Options { quorum, accepts_torn: self.accept_torn_log };
        match replicated_log::read(logs, options) {
            Ok(recovered) => {
                for torn in recovered.replicas.iter().flat_map(|replica| &replica.torn) {
                    let (path, length, at) = (torn.path.display(), torn.length, torn.at);
                    stdio::err!("tepui: ignored the {length} bytes of '{path}' from byte {at} on: an unfinished write");
                }
                Ok(recovered)
            }
            Err(error) => match advice(&error) {
                Some(advice) => bail!("{:#}. {advice}", anyhow::Error::from(error)),
                None => Err(error.into()),
            },
        }
    }
}

/// Describes from which logs a registry was read.
pub(super) fn describe(recovered: &Recovered) -> String {
    let (count, written_at, last) = (recovered.replicas.len(), recovered.written_at, recovered.last);
    let logs = if count == 1 { "the replicated log".to_owned() } else { format!("{count} replicated logs") };
    format!("{logs} of Mesos: written at position {written_at}, the last is {last}")
}

/// Returns the log of a Mesos master that a path names: its directory, or the work directory.
///
/// # Errors
/// There is none.
pub(super) fn log_at(path: &Path) -> Result<PathBuf> {
    let below = path.join(LOG);
    match (replicated_log::is_at(path), replicated_log::is_at(&below)) {
        (true, _) => Ok(path.to_owned()),
        (false, true) => Ok(below),
        (false, false) => {
            std::fs::metadata(path).with_context(|| format!("cannot read '{}'", path.display()))?;
            bail!("there is no replicated log of Mesos in '{0}' or '{0}/{LOG}'", path.display())
        }
    }
}

fn kind_of(path: &Path) -> Result<RegistryKind> {
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read '{}'", path.display()))?;
    if !metadata.is_dir() {
        return Ok(RegistryKind::Tepui(path.to_owned()));
    }
    let file = path.join(FileRegistry::NAME);
    match (FileRegistry::is_at(&file), log_at(path)) {
        (true, Err(_)) => Ok(RegistryKind::Tepui(file)),
        (false, Ok(log)) => Ok(RegistryKind::Log(log)),
        (true, Ok(log)) => {
            bail!("'{}' has two registries: name '{}' or '{}'", path.display(), file.display(), log.display())
        }
        (false, Err(_)) => bail!(
            "there is no registry in '{}': neither '{}' of a tepui master nor '{LOG}' of a Mesos master",
            path.display(),
            FileRegistry::NAME
        ),
    }
}

fn read_file(path: &Path) -> Result<LoadedRegistry> {
    let place = format!("'{}'", path.display());
    match FileRegistry::read(path) {
        Ok(registry) => Ok(LoadedRegistry { registry, place }),
        Err(error @ StoreError::InUse { .. }) => {
            let error = anyhow::Error::from(error);
            bail!("{error:#}. Ask that master: GET /registrar(1)/registry")
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns what an operator can do about a log that is rejected.
fn advice(error: &LogError) -> Option<&'static str> {
    match error {
        LogError::Unlearned { .. } => {
            Some("Start the Mesos masters again, stop them when one leads, and repeat the command")
        }
        LogError::Torn { .. } => Some(
            "Leave this master out if the others are a quorum (--quorum), start the Mesos masters once more, or ignore what \
             is unfinished with --accept-torn-log",
        ),
        LogError::NoQuorum { .. } => Some("Name the logs of all masters"),
        LogError::Replica { .. } | LogError::Entry { .. } | LogError::Hole { .. } | LogError::State { .. } => {
            Some("If other masters have an undamaged log, name only those, with --quorum as the Mesos masters have it")
        }
        _ => None,
    }
}
