//! Reads images from archives and directories: the output of `docker save`, and OCI layouts.
//!
//! An archive is first unpacked into the staging directory, because its parts are needed in another order.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::name::Reference;
use super::{Configuration, ImageError, Name, schema1, store};
use crate::archive_error::ArchiveError;
use crate::unpack::untar;

/// Maximum size of manifests and configurations in bytes; they usually have a few thousand.
pub(super) const TEXT_MAX: u64 = 16 << 20;

/// An entry of `manifest.json`, as `docker save` writes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ManifestEntry {
    config: String,
    layers: Vec<String>,
}

/// A reference of a manifest to a blob, by its digest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    #[serde(default)]
    pub(super) media_type: String,
    pub(super) digest: String,
    #[serde(default)]
    pub(super) platform: Option<Platform>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Platform {
    architecture: String,
    os: String,
}

/// A manifest of one image, or an index of several. It may also be one of schema 1 (`schema1.rs`), which has other
/// fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub(super) config: Option<Descriptor>,
    #[serde(default)]
    pub(super) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(super) manifests: Vec<Descriptor>,
    #[serde(default)]
    pub(super) fs_layers: Vec<schema1::Layer>,
    #[serde(default)]
    pub(super) history: Vec<schema1::History>,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// The text is not a manifest.
    pub fn read(text: &[u8]) -> Result<Manifest, ImageError> {
        serde_json::from_slice(text).map_err(|error| ImageError::at("The image's manifest cannot be read", error))
    }

    /// Returns the digests of its layers, the lowest one first.
    ///
    /// # Errors
    /// The history of a schema 1 manifest is invalid.
    pub fn digests(&self) -> Result<Vec<String>, ImageError> {
        match self.fs_layers.is_empty() {
            true => Ok(self.layers.iter().map(|layer| layer.digest.clone()).collect()),
            false => schema1::read(self).map(|(_, digests)| digests),
        }
    }

    /// Returns the entry of an index for this kind of machine.
    pub(super) fn ours(&self) -> Result<&Descriptor, ImageError> {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let fits = |descriptor: &&Descriptor| {
            let platform = descriptor.platform.as_ref();
            platform.is_none_or(|platform| platform.os == "linux" && platform.architecture == architecture)
        };
        let none = || ImageError(format!("There is no image for linux/{architecture} in the index"));
        self.manifests.iter().find(fits).ok_or_else(none)
    }
}

/// Returns the possible names of an image in a directory of images, without the extension of archives.
fn files(name: &Name) -> Result<Vec<String>, ImageError> {
    let Reference::Tag(tag) = &name.reference else {
        return Err(ImageError(format!("'{name}' has a digest, which a directory of archives does not support")));
    };
    let path = match &name.host {
        Some(host) => format!("{host}/{}", name.repository),
        None => name.repository.clone(),
    };
    let tagged = format!("{path}:{tag}");
    Ok(if tag == "latest" { vec![tagged, path] } else { vec![tagged] })
}

/// Returns the directory with the image `name` of the registry directory `registry`: `<name>:<tag>.tar`, `<name>.tar`,
/// or directories with these names. Archives are unpacked into `staging`.
pub(super) fn find(registry: &Path, name: &Name, staging: &Path) -> Result<PathBuf, ImageError> {
    let mut tried = Vec::new();
    for file in files(name)? {
        let file = &file;
        let directory = registry.join(file);
        if directory.join("manifest.json").is_file() || directory.join("index.json").is_file() {
            return Ok(directory);
        }
        let archive = registry.join(format!("{file}.tar"));
        if archive.is_file() {
            let target = staging.join("archive");
            unpack(&archive, &target).map_err(|error| ImageError::at(archive.display(), base::error_chain(&error)))?;
            return Ok(target);
        }
        tried.push(archive.display().to_string());
    }
    Err(ImageError(format!(
        "There is no image '{name}': neither {} nor a directory of that name is there",
        tried.join(" nor ")
    )))
}

/// Returns the directory with an image as [`find`] does, for a registry that the host's Hadoop client can access:
/// archives only.
pub(super) fn copy(registry: &str, name: &Name, staging: &Path) -> Result<PathBuf, ImageError> {
    let (archive, target) = (staging.join("archive.tar"), staging.join("archive"));
    let mut tried = Vec::new();
    for file in files(name)? {
        let uri = format!("{}/{file}.tar", registry.trim_end_matches('/'));
        match crate::get::ask_hadoop(&uri, &archive) {
            Ok(()) => {
                unpack(&archive, &target).map_err(|error| ImageError::at(uri, base::error_chain(&error)))?;
                return Ok(target);
            }
            Err(why) => tried.push(format!("{uri}: {why}")),
        }
    }
    Err(ImageError(format!("There is no image '{name}': {}", tried.join("; "))))
}

fn unpack(archive: &Path, target: &Path) -> Result<(), ArchiveError> {
    ::store::create_directories(target, ::store::Access::Owner)?;
    let file = File::open(archive)?;
    crate::confine::thread(target, || untar(BufReader::new(file), target, false))
}

/// Reads the configuration of the image in a directory, and returns it with the files of its layers, the lowest one
/// first.
pub(super) fn read(directory: &Path) -> Result<(Configuration, Vec<PathBuf>), ImageError> {
    let saved = directory.join("manifest.json");
    if saved.is_file() {
        let list: Vec<ManifestEntry> = serde_json::from_slice(&text(directory, Path::new("manifest.json"))?)
            .map_err(|error| ImageError::at(saved.display(), error))?;
        let [saved] = list.as_slice() else {
            return Err(ImageError(format!("The archive holds {} images; it should hold one", list.len())));
        };
        let configuration = Configuration::read(&text(directory, Path::new(&saved.config))?)?;
        let layers = saved.layers.iter().map(|layer| inside(directory, Path::new(layer)));
        return Ok((configuration, layers.collect::<Result<_, _>>()?));
    }
    let blob = |descriptor: &Descriptor| -> Result<PathBuf, ImageError> {
        let hex = store::hex_of(&descriptor.digest)
            .ok_or_else(|| ImageError(format!("'{}' is not a digest", descriptor.digest)))?;
        Ok(Path::new("blobs/sha256").join(hex))
    };
    let mut manifest = Manifest::read(&text(directory, Path::new("index.json"))?)?;
    // An index may refer to another index.
    for _ in 0..3 {
        if manifest.config.is_some() {
            break;
        }
        manifest = Manifest::read(&text(directory, &blob(manifest.ours()?)?)?)?;
    }
    let config =
        manifest.config.as_ref().ok_or_else(|| ImageError("The manifest names no configuration".to_owned()))?;
    let configuration = Configuration::read(&text(directory, &blob(config)?)?)?;
    let layers = manifest.layers.iter().map(|layer| inside(directory, &blob(layer)?));
    Ok((configuration, layers.collect::<Result<_, _>>()?))
}

/// Returns the path of a file in the directory. A link may lead to another file in the directory, and nowhere else.
fn inside(directory: &Path, file: &Path) -> Result<PathBuf, ImageError> {
    let found = directory.join(file).canonicalize().map_err(|error| ImageError::at(file.display(), error))?;
    let directory = directory.canonicalize().map_err(|error| ImageError::at(directory.display(), error))?;
    if !found.starts_with(&directory) || !found.is_file() {
        return Err(ImageError(format!("'{}' is not a file of the image", file.display())));
    }
    Ok(found)
}

fn text(directory: &Path, file: &Path) -> Result<Vec<u8>, ImageError> {
    let path = inside(directory, file)?;
    let at = |error: std::io::Error| ImageError::at(path.display(), error);
    if fs::metadata(&path).map_err(at)?.len() > TEXT_MAX {
        return Err(ImageError(format!("'{}' has more than {TEXT_MAX} bytes", file.display())));
    }
    fs::read(&path).map_err(at)
}
