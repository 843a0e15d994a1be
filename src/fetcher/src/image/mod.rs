//! Container images: fetches them into a store, as layers for the root of a container (docs/mesos/containerizer.md).
//!
//! Images are Docker's and OCI's, from archives, directories or registries. The fetcher of images runs as a process of
//! its own, as root: the layers' files have many owners. It does not mount.

mod backend;
mod copy;
mod layer;
mod layout;
mod name;
mod registry;
mod schema1;
mod store;
mod zstd;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use backend::{Backend, BackendError, MissingFeature, WhiteoutError};
pub use copy::{copy_layers, has_whiteouts, needs_copy};
pub use layer::unpack as unpack_layer;
pub use layout::Manifest;
pub use name::Name;
pub use store::{Pruned, Store};

/// Name of the variable that holds a [`ImageRequest`] as JSON. With it the fetcher fetches an image, and nothing else.
pub const IMAGE_REQUEST: &str = "TEPUI_FETCH_IMAGE";

/// Label of images that need files of the host, and its value for the GPU driver.
const GPU_LABEL: &str = "com.nvidia.volumes.needed";
const GPU_DRIVER: &str = "nvidia_driver";

/// A request to fetch an image into the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImageRequest {
    /// Name of the image: `busybox`, `host:5000/team/app:1.2`, `app@sha256:...`.
    pub name: String,
    /// Source of images: a directory of archives, the URL of a registry, or the URI of a directory in HDFS.
    pub registry: String,
    /// Directory of the store.
    pub store: PathBuf,
    /// Whether an image that is already in the store is used.
    pub cached: bool,
    /// Time for which a server may send nothing, in seconds.
    pub stall: u64,
    /// Credentials for registries: the text of a Docker configuration file; may be empty.
    pub logins: String,
}

/// Default settings for programs of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// First arguments, including the program.
    pub entrypoint: Vec<String>,
    /// Arguments after these, unless the command has its own.
    pub cmd: Vec<String>,
    /// Environment variables in the form `NAME=value`.
    pub env: Vec<String>,
    /// Working directory; empty if there is none.
    pub working_dir: String,
    /// Absolute paths of directories that its programs write to.
    #[serde(default)]
    pub volumes: Vec<String>,
}

/// An image in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Full name of the image.
    pub name: String,
    /// Ids of the layers in the store, the lowest one first.
    pub layers: Vec<String>,
    /// Default settings for its programs.
    pub defaults: Defaults,
    /// Whether its label requires the driver of the host's GPUs.
    #[serde(default)]
    pub gpu_driver: bool,
}

/// Error of an image that could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ImageError(pub(crate) String);

impl ImageError {
    fn at(what: impl std::fmt::Display, error: impl std::fmt::Display) -> ImageError {
        ImageError(format!("{what}: {error}"))
    }
}

/// The fields of an image's configuration that are used.
#[derive(Debug, Deserialize)]
struct Configuration {
    config: Option<ConfigurationPart>,
    rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
struct RootFs {
    #[serde(default)]
    diff_ids: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ConfigurationPart {
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    /// Object whose keys are the directories.
    volumes: Option<serde_json::Map<String, serde_json::Value>>,
    labels: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Configuration {
    fn read(text: &[u8]) -> Result<Configuration, ImageError> {
        serde_json::from_slice(text).map_err(|error| ImageError::at("The image's configuration cannot be read", error))
    }

    fn wants_gpu_driver(&self) -> bool {
        let labels = self.config.as_ref().and_then(|config| config.labels.as_ref());
        labels.and_then(|labels| labels.get(GPU_LABEL)).is_some_and(|value| value == GPU_DRIVER)
    }

    fn defaults(&self) -> Defaults {
        let Some(config) = &self.config else { return Defaults::default() };
        Defaults {
            entrypoint: config.entrypoint.clone().unwrap_or_default(),
            cmd: config.cmd.clone().unwrap_or_default(),
            env: config.env.clone().unwrap_or_default(),
            working_dir: config.working_dir.clone().unwrap_or_default(),
            volumes: config.volumes.iter().flat_map(|volumes| volumes.keys().cloned()).collect(),
        }
    }
}

/// Fetches the image that the variable names. Prints the result, or the error, on standard output.
pub(crate) fn main(wanted: &str) -> ExitCode {
    let fetched = serde_json::from_str::<ImageRequest>(wanted)
        .map_err(|error| ImageError::at(IMAGE_REQUEST, error))
        .and_then(|wanted| {
            Store::open(&wanted.store)?;
            if !is_hadoop_uri(&wanted.registry) {
                crate::confine::process(&[&wanted.store], false).map_err(|error| ImageError::at("Landlock", error))?;
            }
            fetch_image(&wanted)
        });
    match fetched {
        Ok(image) => {
            stdio::out!("{}", serde_json::to_string(&image).unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(error) => crate::failed(&error.to_string()),
    }
}

/// Returns whether a registry is a directory that the host's Hadoop client can access: `hdfs://...` and similar URIs.
fn is_hadoop_uri(registry: &str) -> bool {
    registry.split_once("://").is_some_and(|(scheme, _)| !["http", "https"].contains(&scheme))
}

/// Fetches an image into the store, unless it is already there.
///
/// # Errors
/// The name, the image or the store is invalid, or the image cannot be fetched.
pub fn fetch_image(wanted: &ImageRequest) -> Result<Image, ImageError> {
    let name = Name::parse(&wanted.name)?;
    let store = Store::open(&wanted.store)?;
    // Another process that fetches the same image waits here, and then finds it in the store.
    let _lock = store.lock_image(&name)?;
    if wanted.cached
        && let Some(image) = store.find(&name)
    {
        return Ok(image);
    }
    let staging = store.staging()?;
    let (configuration, layers) = match wanted.registry.strip_prefix('/') {
        Some(_) => layout::read(&layout::find(Path::new(&wanted.registry), &name, staging.path())?)?,
        None if is_hadoop_uri(&wanted.registry) => {
            layout::read(&layout::copy(&wanted.registry, &name, staging.path())?)?
        }
        None => registry::Registry::new(wanted, &name, Duration::from_secs(wanted.stall)).read(staging.path())?,
    };
    let ids = &configuration.rootfs.diff_ids;
    if ids.len() != layers.len() {
        return Err(ImageError(format!("It has {} layers, but names {}", layers.len(), ids.len())));
    }
    let mut names = Vec::new();
    for (id, file) in ids.iter().zip(&layers) {
        let layer = store.add_layer(id, file, staging.path())?;
        // A later occurrence of a layer hides the earlier one, and a layer cannot be mounted above itself.
        names.retain(|other| *other != layer);
        names.push(layer);
    }
    let (defaults, gpu_driver) = (configuration.defaults(), configuration.wants_gpu_driver());
    let image = Image { name: name.to_string(), layers: names, defaults, gpu_driver };
    store.add(&name, &image)?;
    Ok(image)
}
