//! Fetches images from a registry with the HTTP API V2 of Docker and OCI, with tokens.
//!
//! Every blob is checked against its digest before it is used.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use ureq::Body;
use ureq::http::Response;

use super::layout::{Descriptor, Manifest, TEXT_MAX};
use super::name::Reference;
use super::{Configuration, ImageError, ImageRequest, Name, RootFs, layer, schema1, store};

const MANIFESTS: &str = "application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.v1+prettyjws;q=0.5";

/// Response of a token server.
#[derive(Debug, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Docker's configuration file with logins.
#[derive(Debug, Default, Deserialize)]
struct Logins {
    #[serde(default)]
    auths: std::collections::BTreeMap<String, Login>,
}

#[derive(Debug, Deserialize)]
struct Login {
    /// Login `user:password` in base64.
    auth: Option<String>,
    /// Identity token, which only Docker's daemon can exchange.
    identitytoken: Option<String>,
}

/// A client of a registry for one image.
pub(super) struct Registry {
    agent: ureq::Agent,
    url: String,
    repository: String,
    reference: Reference,
    /// Value of the header `Authorization`.
    authorization: Option<String>,
    login: Option<String>,
    /// Whether the login for this registry has only an identity token, which is not supported.
    only_token: bool,
}

impl Registry {
    pub(super) fn new(wanted: &ImageRequest, name: &Name, stall: Duration) -> Registry {
        let (url, repository) = name.at(&wanted.registry);
        let logins: Logins = serde_json::from_str(&wanted.logins).unwrap_or_default();
        let host = url.rsplit("://").next().unwrap_or_default().to_owned();
        // Docker stores its own registry's login under an older address.
        let is_ours = |known: &str| {
            let bare = known.rsplit("://").next().unwrap_or_default();
            bare.split('/').next() == Some(&*host)
                || host == "registry-1.docker.io" && bare.starts_with("index.docker.io")
        };
        let found = logins.auths.into_iter().find(|(known, _)| is_ours(known)).map(|(_, login)| login);
        let only_token = found.as_ref().is_some_and(|login| login.auth.is_none() && login.identitytoken.is_some());
        let login = found.and_then(|login| login.auth);
        let reference = name.reference.clone();
        Registry { agent: crate::get::agent(stall), url, repository, reference, authorization: None, login, only_token }
    }

    /// Fetches the image. Returns its configuration, and the files of its layers in `staging`, the lowest one first.
    pub(super) fn read(mut self, staging: &Path) -> Result<(Configuration, Vec<PathBuf>), ImageError> {
        let (reference, digest) = match &self.reference {
            Reference::Tag(tag) => (tag.clone(), None),
            Reference::Digest(digest) => (digest.clone(), Some(digest.clone())),
        };
        let mut manifest = self.manifest(&reference, digest.as_deref())?;
        if !manifest.fs_layers.is_empty() {
            return self.read_old(&manifest, staging);
        }
        if manifest.config.is_none() {
            let digest = manifest.ours()?.digest.clone();
            manifest = self.manifest(&digest, Some(&digest))?;
        }
        let config = manifest.config.clone();
        let config = config.ok_or_else(|| ImageError("The manifest names no configuration".to_owned()))?;
        let path = self.blob(&config, &staging.join("config"), TEXT_MAX)?;
        let text = std::fs::read(&path).map_err(|error| ImageError::at(path.display(), error))?;
        let mut layers = Vec::new();
        for (number, layer) in manifest.layers.iter().enumerate() {
            if layer.media_type.contains("foreign") {
                return Err(ImageError(format!("The layer {} may not be distributed by registries", layer.digest)));
            }
            layers.push(self.blob(layer, &staging.join(format!("blob-{number}")), layer::BYTES_MAX)?);
        }
        Ok((Configuration::read(&text)?, layers))
    }

    /// Fetches an image with a manifest of schema 1. Returns the same as [`Registry::read`].
    fn read_old(&mut self, manifest: &Manifest, staging: &Path) -> Result<(Configuration, Vec<PathBuf>), ImageError> {
        let (config, blobs) = schema1::read(manifest)?;
        let (mut files, mut diff_ids) = (Vec::new(), Vec::new());
        for (number, digest) in blobs.into_iter().enumerate() {
            let blob = Descriptor { media_type: String::new(), digest, platform: None };
            let file = self.blob(&blob, &staging.join(format!("blob-{number}")), layer::BYTES_MAX)?;
            diff_ids.push(layer::digest(&file)?);
            files.push(file);
        }
        Ok((Configuration { config, rootfs: RootFs { diff_ids } }, files))
    }

    fn manifest(&mut self, reference: &str, digest: Option<&str>) -> Result<Manifest, ImageError> {
        let mut response = self.get(&format!("manifests/{reference}"), MANIFESTS)?;
        let text = response.body_mut().with_config().limit(TEXT_MAX).read_to_vec();
        let text = text.map_err(|error| ImageError::at("The manifest cannot be read", error))?;
        if let Some(digest) = digest {
            check(digest, &base::hex(&Sha256::digest(&text)))?;
        }
        Manifest::read(&text)
    }

    fn blob(&mut self, blob: &Descriptor, target: &Path, limit: u64) -> Result<PathBuf, ImageError> {
        let digest = &blob.digest;
        store::hex_of(digest).ok_or_else(|| ImageError(format!("'{digest}' is not a digest")))?;
        stdio::err!("Fetching {digest}");
        let mut response = self.get(&format!("blobs/{digest}"), "*/*")?;
        let mut reader = response.body_mut().with_config().limit(limit).reader();
        let at = |error: io::Error| ImageError::at(format_args!("The blob {digest}"), error);
        let mut file = ::store::create_file(target, ::store::Access::Owner).map_err(at)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 18];
        loop {
            let length = reader.read(&mut buffer).map_err(at)?;
            if length == 0 {
                break;
            }
            hash.update(&buffer[..length]);
            file.write_all(&buffer[..length]).map_err(at)?;
        }
        check(digest, &base::hex(&hash.finalize()))?;
        Ok(target.to_owned())
    }

    fn get(&mut self, path: &str, accept: &str) -> Result<Response<Body>, ImageError> {
        let url = format!("{}/v2/{}/{path}", self.url, self.repository);
        let at = |error: &dyn std::fmt::Display| {
            ImageError(format!("The request to the registry {} failed: {error}", self.url))
        };
        let ask = |authorization: Option<&str>| {
            let mut request = self.agent.get(&url).header("Accept", accept);
            if let Some(authorization) = authorization {
                request = request.header("Authorization", authorization);
            }
            request.call()
        };
        let mut response = ask(self.authorization.as_deref()).map_err(|error| at(&error))?;
        if response.status() == 401 {
            let header = response.headers().get("WWW-Authenticate").and_then(|value| value.to_str().ok());
            let authorization = self.authorize(header.unwrap_or_default())?;
            response = ask(Some(&authorization)).map_err(|error| at(&error))?;
            self.authorization = Some(authorization);
        }
        match response.status().as_u16() {
            200 => Ok(response),
            404 => Err(ImageError(format!("The registry {} has no {}/{path}", self.url, self.repository))),
            status => {
                Err(ImageError(format!("The registry {} answers {status} for {}/{path}", self.url, self.repository)))
            }
        }
    }

    /// Returns the value of `Authorization` that answers a registry's challenge.
    fn authorize(&self, challenge: &str) -> Result<String, ImageError> {
        let basic = self.login.as_ref().map(|login| format!("Basic {login}"));
        let kind = if self.only_token {
            ", and the configured one is an identity token, which only Docker supports"
        } else {
            ""
        };
        let refused = || ImageError(format!("The registry {} requires a login (--docker_config){kind}", self.url));
        let Some(parameters) = challenge.strip_prefix("Bearer ") else { return basic.ok_or_else(refused) };
        let of = |name: &str| {
            let start = parameters.find(&format!("{name}=\""))? + name.len() + 2;
            parameters[start..].split('"').next()
        };
        let realm = of("realm").ok_or_else(refused)?;
        let mut request = self.agent.get(realm);
        for name in ["service", "scope"] {
            if let Some(value) = of(name) {
                request = request.query(name, value);
            }
        }
        if let Some(basic) = &basic {
            request = request.header("Authorization", basic);
        }
        let at = |error: &dyn std::fmt::Display| ImageError(format!("Failed to get a token from '{realm}': {error}"));
        let mut response = request.call().map_err(|error| at(&error))?;
        if response.status() != 200 {
            return Err(at(&format_args!("it answers {}", response.status())));
        }
        let text = response.body_mut().with_config().limit(TEXT_MAX).read_to_vec().map_err(|error| at(&error))?;
        let token: Token = serde_json::from_slice(&text).map_err(|error| at(&error))?;
        let token = token.token.or(token.access_token).ok_or_else(|| at(&"its answer contains no token"))?;
        Ok(format!("Bearer {token}"))
    }
}

fn check(digest: &str, found: &str) -> Result<(), ImageError> {
    match store::hex_of(digest) == Some(found) {
        true => Ok(()),
        false => Err(ImageError(format!("The digest is sha256:{found} instead of {digest}"))),
    }
}
