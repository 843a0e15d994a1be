//! The agent's side of the fetcher: runs the process that fetches a container's URIs before the container starts.
//!
//! The process is the agent's own program, run as the task's user in the sandbox. The crate `fetcher` has its code.

mod cache;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::{ContainerName, ContainerSpec};
use anyhow::Context;
use base::lock;
use containers::{Launcher, Output, Program, ProgramFile, Spec, User};
use protos::json::{Dialect, ToJson};
use protos::mesos::fetcher::FetcherInfo;
use protos::mesos::fetcher::fetcher_info::Item;
use protos::mesos::fetcher::fetcher_info::item::Action;

use crate::config;
use cache::{FetchCache, Found, Key};

/// Variables of the agent's environment that the fetcher inherits: those about network access.
const INHERITED: [&str; 9] = [
    "PATH",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// Maximum number of bytes of a fetcher's output that are read.
const WORDS_MAX: u64 = 256 * 1024;
/// Time for a cancelled fetcher to end.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
/// Maximum length of the instructions: one string of an environment must fit in 128 KiB.
const INSTRUCTIONS_MAX: usize = 120 * 1024;

/// A fetch of one container that is in progress.
#[derive(Debug, Default)]
struct Running {
    pid: Option<i32>,
    cancelled: bool,
}

/// A handle that runs fetchers. Cheap to clone.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    /// The agent's own program, and its open file, because not every user can access its path.
    program: String,
    open: Option<ProgramFile>,
    frameworks_home: String,
    hadoop_home: String,
    /// TLS variables of fetchers of URIs.
    tls: Vec<(&'static str, OsString)>,
    stall: Duration,
    cache: FetchCache,
    running: Mutex<BTreeMap<ContainerName, Running>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl Fetcher {
    /// Creates a fetcher with an empty cache. The cache's directory is named after `work_dir`, to distinguish it from
    /// those of other agents.
    pub(crate) fn new(config: &config::Fetcher, work_dir: &Path, program: String) -> Fetcher {
        let own = work_dir.to_string_lossy().trim_matches('/').replace('/', "_");
        // A file name has at most 255 bytes. The end of the path distinguishes agents better than the beginning.
        let start = own.char_indices().map(|(at, _)| at).find(|at| own.len() - at <= 200).unwrap_or(0);
        let directory = config.cache_dir.join(&own[start..]);
        Fetcher(Arc::new(Inner {
            program,
            open: ProgramFile::open(Path::new("/proc/self/exe")).ok(),
            frameworks_home: config.frameworks_home.clone(),
            hadoop_home: config.hadoop_home.clone(),
            tls: tls_variables(&config.tls),
            stall: config.stall,
            cache: FetchCache::new(directory, config.cache_size),
            running: Mutex::default(),
            succeeded: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// Returns the maximum and the current size of the cache in bytes.
    pub fn cache_sizes(&self) -> (u64, u64) {
        self.0.cache.sizes()
    }

    /// Returns the numbers of successful and of failed fetches.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.succeeded.load(Ordering::Relaxed), self.0.failed.load(Ordering::Relaxed))
    }

    /// Counts a container without URIs as a successful fetch.
    pub(crate) fn count_without_uris(&self) {
        self.0.succeeded.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a container is about to fetch. From then on the fetch may be cancelled.
    pub(crate) fn begin(&self, container: &ContainerName) {
        lock(&self.0.running).insert(container.clone(), Running::default());
    }

    /// Records the end of a container's fetch. Returns whether it was cancelled.
    pub(crate) fn end(&self, container: &ContainerName) -> bool {
        lock(&self.0.running).remove(container).is_some_and(|running| running.cancelled)
    }

    /// Cancels the fetches of a container and of those inside it, if there are any.
    pub(crate) fn cancel(&self, container: &ContainerName) {
        for (name, running) in lock(&self.0.running).iter_mut() {
            if name == container || name.is_inside(container) {
                running.cancelled = true;
                // A fetch without a pid has not started, and will not.
                if let Some(pid) = running.pid {
                    std::thread::spawn(move || containers::destroy(pid, None, CANCEL_LIMIT));
                }
            }
        }
    }

    /// Fetches a container's URIs into its sandbox. Blocks.
    ///
    /// # Errors
    /// The URI that could not be fetched, and why.
    pub(crate) fn fetch(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        user: Option<&User>,
    ) -> anyhow::Result<()> {
        let fetched = self.fetch_cached(container, spec, user);
        let count = if fetched.is_ok() { &self.0.succeeded } else { &self.0.failed };
        count.fetch_add(1, Ordering::Relaxed);
        fetched
    }

    fn fetch_cached(&self, container: &ContainerName, spec: &ContainerSpec, user: Option<&User>) -> anyhow::Result<()> {
        for uri in &spec.uris {
            fetcher::check(uri).with_context(|| format!("Failed to fetch '{}'", uri.value))?;
        }
        let wanted = spec.uris.iter().any(|uri| uri.cache());
        let directory = if wanted { self.cache_directory(user) } else { None };
        let mut items = Vec::new();
        // The order is the same for all fetches, so that no two of them wait for each other.
        let mut cached: Vec<&String> = spec.uris.iter().filter(|uri| uri.cache()).map(|uri| &uri.value).collect();
        cached.sort();
        cached.dedup();
        let mut found = BTreeMap::new();
        for uri in cached.into_iter().filter(|_| directory.is_some()) {
            let key = (user.map(|user| user.name.clone()).unwrap_or_default(), uri.clone());
            found.insert(uri.clone(), (self.0.cache.acquire(&key), key));
        }
        self.make_room(container, spec, user, &mut found);
        let used: Vec<Key> = found.values().map(|(_, key)| key.clone()).collect();
        let mut found: BTreeMap<String, Found> = found.into_iter().map(|(uri, (file, _))| (uri, file)).collect();
        for uri in &spec.uris {
            let file = found.get(&uri.value).filter(|_| uri.cache()).cloned();
            let (action, cache_filename) = match file {
                None => (Action::BypassCache, None),
                Some(Found::Missing(name)) => {
                    // A URI that is listed twice is downloaded once.
                    found.insert(uri.value.clone(), Found::Present(name.clone()));
                    (Action::DownloadAndCache, Some(name))
                }
                Some(Found::Present(name)) => (Action::RetrieveFromCache, Some(name)),
            };
            items.push(Item { uri: uri.clone(), action: action as i32, cache_filename });
        }
        let info = self.instructions(spec, user, directory.as_deref(), items);
        let fetched = self.run(container, spec, user, (fetcher::INSTRUCTIONS, info)).map(drop);
        if let Some(directory) = &directory {
            used.iter().for_each(|key| self.0.cache.release(key, directory, fetched.is_ok()));
        }
        fetched
    }

    /// Reserves space in the cache for missing files; a file that does not fit is not cached.
    fn make_room(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        user: Option<&User>,
        found: &mut BTreeMap<String, (Found, Key)>,
    ) {
        let missing = found.iter().filter(|(_, (file, _))| matches!(file, Found::Missing(_)));
        let missing: Vec<String> = missing.map(|(uri, _)| uri.clone()).collect();
        if missing.is_empty() {
            return;
        }
        let item = |value: &String| {
            let uri = spec.uris.iter().find(|uri| uri.value == *value)?.clone();
            Some(Item { uri, action: Action::BypassCache as i32, cache_filename: None })
        };
        let info = self.instructions(spec, user, None, missing.iter().filter_map(item).collect());
        let output = self.run(container, spec, user, (fetcher::SIZES, info)).unwrap_or_else(|error| {
            tracing::warn!(%container, "cannot determine the sizes of URIs: {error:#}");
            String::new()
        });
        let mut sizes = output.lines().map(|line| line.trim().parse().ok());
        for uri in missing {
            let size = sizes.next().flatten();
            if found.get(&uri).is_some_and(|(_, key)| !self.0.cache.reserve(key, size)) {
                found.remove(&uri);
            }
        }
    }

    /// Returns the directory of a user's cached files. A cache that cannot be used is skipped.
    fn cache_directory(&self, user: Option<&User>) -> Option<PathBuf> {
        self.0.cache.directory_of(user).unwrap_or_else(|error| {
            tracing::warn!("fetching without the cache: {error:#}");
            None
        })
    }

    fn instructions(
        &self,
        spec: &ContainerSpec,
        user: Option<&User>,
        cache: Option<&Path>,
        items: Vec<Item>,
    ) -> FetcherInfo {
        let home = &self.0.frameworks_home;
        let stall = i64::try_from(self.0.stall.as_nanos()).unwrap_or(i64::MAX);
        FetcherInfo {
            sandbox_directory: spec.sandbox.clone(),
            cache_directory: cache.map(|directory| directory.to_string_lossy().into_owned()),
            items,
            user: user.map(|user| user.name.clone()),
            frameworks_home: Some(home.clone()).filter(|home| !home.is_empty()),
            stall_timeout: Some(protos::mesos::DurationInfo { nanoseconds: stall }),
        }
    }

    fn run(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        user: Option<&User>,
        (variable, info): (&str, FetcherInfo),
    ) -> anyhow::Result<String> {
        let instructions = String::from_utf8_lossy(&info.json(Dialect::V0)).into_owned();
        anyhow::ensure!(instructions.len() <= INSTRUCTIONS_MAX, "Too many URIs, or too long ones");
        self.run_process(container, spec, user, (variable, instructions))
    }

    /// Fetches an image into the store, as root. Returns the fetcher's description of the image. Blocks.
    ///
    /// # Errors
    /// Why the image is not available.
    pub(crate) fn fetch_image(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        wanted: &str,
    ) -> anyhow::Result<String> {
        anyhow::ensure!(wanted.len() <= INSTRUCTIONS_MAX, "The image's name or its credentials are too long");
        self.run_process(container, spec, None, (fetcher::image::IMAGE_REQUEST, wanted.to_owned()))
    }

    /// Runs a fetcher with instructions in a variable. Returns its output.
    fn run_process(
        &self,
        container: &ContainerName,
        spec: &ContainerSpec,
        user: Option<&User>,
        instructions: (&str, String),
    ) -> anyhow::Result<String> {
        let (mut words, said) = std::io::pipe().context("no pipe")?;
        let program = self.process(spec, user, instructions, Arc::new(said.into()));
        let child = {
            let mut running = lock(&self.0.running);
            let cancelled = running.get(container).is_none_or(|running| running.cancelled);
            anyhow::ensure!(!cancelled, "The fetch was cancelled");
            let child = Launcher::posix().spawn(&program)?;
            if let Some(running) = running.get_mut(container) {
                running.pid = Some(child.pid());
            }
            child
        };
        // This closes the agent's copy of the pipe's other end, so that reading ends with the fetcher.
        drop(program);
        let mut text = String::new();
        // Output that cannot be read is ignored.
        let _ = words.by_ref().take(WORDS_MAX).read_to_string(&mut text);
        let status = child.wait(None)?;
        if let Some(running) = lock(&self.0.running).get_mut(container) {
            running.pid = None;
        }
        if status.is_some_and(|status| status.success()) {
            return Ok(text);
        }
        let why = match (text.trim(), status) {
            ("", Some(status)) => format!("The fetcher {status}"),
            (words, _) => words.to_owned(),
        };
        anyhow::bail!(why)
    }

    fn process(
        &self,
        spec: &ContainerSpec,
        user: Option<&User>,
        (variable, instructions): (&str, String),
        said: Arc<OwnedFd>,
    ) -> Spec {
        let sandbox = Path::new(&spec.sandbox);
        let argv = vec![OsString::from(&self.0.program), "fetch".into()];
        let program = match &self.0.open {
            Some(file) => Program::Open { file: file.clone(), argv },
            None => Program::Argv { file: OsString::from(&self.0.program), argv },
        };
        let inherited = INHERITED.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let mut environment: Vec<(OsString, OsString)> = inherited.collect();
        if variable != fetcher::image::IMAGE_REQUEST {
            environment.extend(self.0.tls.iter().map(|(name, value)| (OsString::from(name), value.clone())));
        }
        environment.push((variable.into(), instructions.into()));
        if !self.0.hadoop_home.is_empty() {
            environment.push((fetcher::HADOOP_HOME.into(), OsString::from(&self.0.hadoop_home)));
        }
        Spec {
            environment,
            working_dir: Some(sandbox.to_owned()),
            stdout: Output::Fd(said),
            stderr: Output::File(sandbox.join("stderr")),
            user: user.cloned(),
            die_with_parent: true,
            ..Spec::new(program)
        }
    }
}
/// Returns the TLS variables for hosts of the cluster; empty if there are no such hosts.
fn tls_variables(tls: &config::FetcherTls) -> Vec<(&'static str, OsString)> {
    if tls.hosts.is_empty() {
        return Vec::new();
    }
    let files =
        [(fetcher::AUTHORITY, &tls.ca_file), (fetcher::CERTIFICATE, &tls.cert_file), (fetcher::KEY, &tls.key_file)];
    // A fetcher runs in the sandbox, so relative paths would not work.
    let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).into_os_string();
    let files = files.into_iter().filter_map(|(name, path)| Some((name, whole(path.as_ref()?))));
    std::iter::once((fetcher::HOSTS, OsString::from(&tls.hosts))).chain(files).collect()
}
