//! Files of TLS: certificates, keys, authorities, and the stamps by which changes are detected.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Settings, TlsError};

/// Maximum number of files of a directory of authorities that are read.
const AUTHORITY_FILES: usize = 4096;

/// Properties that change with a file's content: seconds and nanoseconds of its modification time, length and inode.
type FileStamp = (i64, i64, u64, u64);

/// Stamps of all files; `None` for a file that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp(Vec<(PathBuf, Option<FileStamp>)>);

impl Stamp {
    /// Returns the stamp of the files as they are now.
    pub(super) fn of(settings: &Settings) -> Stamp {
        let files = [&settings.cert_file, &settings.key_file, &settings.ca_file];
        let mut paths: Vec<PathBuf> = files.into_iter().flatten().cloned().collect();
        paths.extend(settings.ca_dir.as_deref().map(authority_files).and_then(Result::ok).unwrap_or_default());
        let stamp = |path: PathBuf| {
            let found = fs::metadata(&path).ok();
            (path, found.map(|file| (file.mtime(), file.mtime_nsec(), file.size(), file.ino())))
        };
        Stamp(paths.into_iter().map(stamp).collect())
    }
}

/// A chain of certificates, this process's own first, and its key.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads the certificate and the key; `None` if there are none.
    pub(super) fn read(settings: &Settings) -> Result<Option<Identity>, TlsError> {
        let (Some(cert), Some(key)) = (&settings.cert_file, &settings.key_file) else { return Ok(None) };
        let chain = certificates(cert)?;
        let bytes = read(key)?;
        let key = PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
            let source = (!matches!(error, pem::Error::NoItemsFound)).then_some(error);
            TlsError::Pem { path: key.clone(), what: "private key", source }
        })?;
        Ok(Some(Identity { chain, key }))
    }
}

/// Reads the authorities of the settings, or else those of the system.
pub(super) fn authorities(settings: &Settings) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    let mut files: Vec<PathBuf> = settings.ca_file.iter().cloned().collect();
    if let Some(directory) = &settings.ca_dir {
        let found = authority_files(directory);
        files.extend(found.map_err(|source| TlsError::Read { path: directory.clone(), source })?);
    }
    for path in &files {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|source| TlsError::Authority { path: path.clone(), source })?;
        }
    }
    if settings.ca_file.is_none() && settings.ca_dir.is_none() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if roots.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    Ok(Arc::new(roots))
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// Reads all certificates of a file; there must be at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let error = |source| TlsError::Pem { path: path.to_owned(), what: "certificate", source };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|source| error(Some(source)))?;
    if found.is_empty() { Err(error(None)) } else { Ok(found) }
}

/// Returns the files of a directory of authorities, in order. Names that begin with a dot are ignored.
fn authority_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
        // The links of a hashed directory are followed.
        if !is_hidden && fs::metadata(&path).is_ok_and(|file| file.is_file()) {
            files.push(path);
        }
        if files.len() > AUTHORITY_FILES {
            let text = format!("it has more than {AUTHORITY_FILES} files");
            return Err(std::io::Error::new(ErrorKind::InvalidInput, text));
        }
    }
    files.sort_unstable();
    Ok(files)
}
