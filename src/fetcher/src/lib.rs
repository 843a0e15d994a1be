//! The fetcher: downloads a task's URIs into its sandbox before the task starts (docs/mesos/fetcher.md).
//!
//! It is a process of its own, which the agent starts in the sandbox as the task's user. That user must be able to read
//! the sources and owns the results. It blocks, does not depend on the agent, and does not manage its cache: the
//! instructions tell what the cache contains.
#![forbid(unsafe_code)]

mod archive_error;
mod confine;
mod entries;
mod get;
pub mod image;
mod size;
mod source;
mod trust;
pub mod unpack;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use protos::json::{Dialect, FromJson};
use protos::mesos::fetcher::FetcherInfo;
use protos::mesos::fetcher::fetcher_info::Item;
use protos::mesos::fetcher::fetcher_info::item::Action;

pub use archive_error::ArchiveError;
pub use confine::ConfineError;
pub use get::GetError;
pub use source::{Source, SourceError, check};
pub use trust::{AUTHORITY, CERTIFICATE, HOSTS, IdentityError, KEY, Trust, TrustError};

use size::SizeError;

/// Name of the variable that holds the instructions: a `mesos.fetcher.FetcherInfo` as JSON.
pub const INSTRUCTIONS: &str = "MESOS_FETCHER_INFO";
/// Name of the variable with instructions whose sizes are reported, without fetching them. Standard output has a line
/// for each item, which is empty if the size is unknown.
pub const SIZES: &str = "TEPUI_FETCHER_SIZES";
/// Name of the variable with the directory of a Hadoop client, for URIs that only it supports.
pub const HADOOP_HOME: &str = "HADOOP_HOME";

/// Time for which a server may send nothing, if the instructions do not set it.
const STALL: Duration = Duration::from_secs(60);

/// Error of an item that was not fetched.
#[derive(Debug, thiserror::Error)]
#[error("Failed to fetch '{uri}'")]
pub struct FetchError {
    /// URI of the item.
    pub uri: String,
    /// Cause of the error.
    pub source: ItemError,
}

/// Reason why an item was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum ItemError {
    /// The URI breaks a rule.
    #[error(transparent)]
    Uri(#[from] SourceError),
    /// The directory of the target cannot be created.
    #[error("'{}'", directory.display())]
    Directory {
        /// Path of the directory.
        directory: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The instructions name no file of the cache.
    #[error("the instructions name no file of the cache")]
    NoCacheFile,
    /// The cached file cannot be copied.
    #[error("cannot copy it out of the cache")]
    Copy(#[source] std::io::Error),
    /// The download failed.
    #[error(transparent)]
    Get(#[from] GetError),
    /// The archive cannot be unpacked.
    #[error(transparent)]
    Unpack(#[from] ArchiveError),
}

/// Reads the instructions and fetches all items in order. Errors are printed on standard error for people, and on
/// standard output for the agent.
pub fn main() -> ExitCode {
    if let Ok(wanted) = std::env::var(image::IMAGE_REQUEST) {
        return image::main(&wanted);
    }
    let trust = match Trust::read(|name| std::env::var(name).ok()) {
        Ok(trust) => trust,
        Err(error) => return failed(&base::error_chain(&error)),
    };
    if let Ok(text) = std::env::var(SIZES) {
        return match instructions(SIZES, &text) {
            Ok(info) => {
                sizes(&info, &trust)
                    .iter()
                    .for_each(|size| stdio::out!("{}", size.map_or(String::new(), |size| size.to_string())));
                ExitCode::SUCCESS
            }
            Err(words) => failed(&words),
        };
    }
    let info = match instructions(INSTRUCTIONS, &std::env::var(INSTRUCTIONS).unwrap_or_default()) {
        Ok(info) => info,
        Err(words) => return failed(&words),
    };
    if let Err(error) = confine(&info) {
        return failed(&error);
    }
    match fetch_all(&info, &trust) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&base::error_chain(&error)),
    }
}

fn instructions(name: &str, text: &str) -> Result<FetcherInfo, String> {
    FetcherInfo::from_json(text.as_bytes(), Dialect::V0).map_err(|error| format!("{name} cannot be read: {error}"))
}

/// Restricts this process to the files that it needs, unless a Hadoop client needs files of its own.
fn confine(info: &FetcherInfo) -> Result<(), String> {
    let none = Trust::default();
    let fetch = Fetch::of(info, &none);
    let sources = info.items.iter().filter_map(|item| Source::parse(&item.uri.value, fetch.frameworks_home).ok());
    let sources: Vec<Source> = sources.collect();
    if sources.iter().any(|source| matches!(source, Source::Hadoop(_))) {
        return Ok(());
    }
    let directories: Vec<&Path> = std::iter::once(fetch.sandbox).chain(fetch.cache).collect();
    let programs = sources.iter().any(|source| matches!(source, Source::Ftp(_)));
    confine::process(&directories, programs).map_err(|error| base::error_chain(&error))
}

fn failed(words: &str) -> ExitCode {
    stdio::err!("{words}");
    stdio::out!("{words}");
    ExitCode::FAILURE
}

/// Fetches all items of the instructions. `trust` has the hosts of the cluster.
///
/// # Errors
/// The first item that cannot be fetched; those after it are not tried.
pub fn fetch_all(info: &FetcherInfo, trust: &Trust) -> Result<(), FetchError> {
    let fetch = Fetch::of(info, trust);
    for item in &info.items {
        fetch.item(item).map_err(|source| FetchError { uri: item.uri.value.clone(), source })?;
    }
    Ok(())
}

/// Returns the size of each item of the instructions in bytes; `None` if it is unknown, for a reason that is printed on
/// standard error.
pub fn sizes(info: &FetcherInfo, trust: &Trust) -> Vec<Option<u64>> {
    let fetch = Fetch::of(info, trust);
    let one = |item: &Item| {
        let source = Source::parse(&item.uri.value, fetch.frameworks_home).map_err(SizeError::from);
        let size = source.and_then(|source| size::size(&source, fetch.stall, fetch.trust));
        let report =
            |error: &SizeError| stdio::err!("'{}' is not cached: {}", item.uri.value, base::error_chain(error));
        size.inspect_err(report).ok()
    };
    info.items.iter().map(one).collect()
}

/// Settings that apply to all items.
struct Fetch<'a> {
    sandbox: &'a Path,
    cache: Option<&'a Path>,
    frameworks_home: &'a str,
    stall: Duration,
    trust: &'a Trust,
}

impl<'a> Fetch<'a> {
    fn of(info: &'a FetcherInfo, trust: &'a Trust) -> Fetch<'a> {
        let stall = info.stall_timeout.and_then(|timeout| u64::try_from(timeout.nanoseconds).ok());
        Fetch {
            sandbox: Path::new(&info.sandbox_directory),
            cache: info.cache_directory.as_deref().map(Path::new),
            frameworks_home: info.frameworks_home.as_deref().unwrap_or_default(),
            stall: stall.map_or(STALL, Duration::from_nanos),
            trust,
        }
    }

    fn item(&self, item: &Item) -> Result<(), ItemError> {
        let uri = &item.uri;
        check(uri)?;
        let source = Source::parse(&uri.value, self.frameworks_home)?;
        let name = source::file_name(uri)?;
        let target = self.sandbox.join(&name);
        if let Some(directory) = target.parent() {
            std::fs::create_dir_all(directory)
                .map_err(|source| ItemError::Directory { directory: directory.to_owned(), source })?;
        }
        let cached = self.cached(item)?;
        match (item.action(), &cached) {
            (Action::DownloadAndCache, Some(file)) => {
                stdio::err!("Fetching '{}' into the cache", uri.value);
                get::get(&source, file, self.stall, self.trust)?;
            }
            (Action::RetrieveFromCache, Some(_)) => stdio::err!("Copying '{}' from the cache", uri.value),
            _ => {
                stdio::err!("Fetching '{}' to '{}'", uri.value, target.display());
                get::get(&source, &target, self.stall, self.trust)?;
            }
        }
        self.deliver(item, cached, &target)
    }

    fn cached(&self, item: &Item) -> Result<Option<PathBuf>, ItemError> {
        if item.action() == Action::BypassCache {
            return Ok(None);
        }
        match (self.cache, &item.cache_filename) {
            (Some(cache), Some(name)) => Ok(Some(cache.join(name))),
            _ => Err(ItemError::NoCacheFile),
        }
    }

    /// Copies an item from the cache into the sandbox, and unpacks it if requested.
    fn deliver(&self, item: &Item, cached: Option<PathBuf>, target: &Path) -> Result<(), ItemError> {
        let uri = &item.uri;
        let executable = uri.executable();
        let unpacks = uri.extract() && !executable;
        let kind = unpack::Kind::of(target).filter(|_| unpacks);
        if let Some(kind) = kind {
            // An archive that is unpacked from the cache is not copied into the sandbox.
            let archive = cached.as_deref().unwrap_or(target);
            stdio::err!("Extracting '{}' into '{}'", target.display(), self.sandbox.display());
            return Ok(unpack::unpack(kind, archive, target, self.sandbox)?);
        }
        if let Some(file) = &cached {
            std::fs::copy(file, target).map_err(ItemError::Copy)?;
        }
        if executable {
            get::make_executable(target)?;
        } else if uri.extract() {
            stdio::err!("'{}' is not an archive and is not extracted", target.display());
        }
        Ok(())
    }
}
