//! Hosts of the cluster among those of `https://` URIs: the authority that verifies them, and the client certificate
//! that is presented to them.
//!
//! The certificate is presented to no other host, also not after a redirect; and a host that another one has redirected
//! to is treated as any other. It makes no connection.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use ureq::http::Uri;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Name of the variable with the hosts, separated by commas.
pub const HOSTS: &str = "TEPUI_FETCHER_TLS_HOSTS";
/// Name of the variable with the file of authorities. It is the same as libprocess's, like those of the other files.
pub const AUTHORITY: &str = "LIBPROCESS_SSL_CA_FILE";
/// Name of the variable with the file of the client certificate.
pub const CERTIFICATE: &str = "LIBPROCESS_SSL_CERT_FILE";
/// Name of the variable with the file of the certificate's key.
pub const KEY: &str = "LIBPROCESS_SSL_KEY_FILE";

/// Reason why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Certificates cannot be read.
    #[error("cannot read the certificates of '{file}'")]
    Certificates {
        /// Path of the file.
        file: String,
        /// Cause of the error.
        source: pem::Error,
    },
    /// A certificate and a key cannot be used together.
    #[error("cannot use '{certificate}' with '{key}'")]
    Identity {
        /// File of the certificate.
        certificate: String,
        /// File of the key.
        key: String,
        /// Cause of the error.
        source: IdentityError,
    },
}

/// Reason why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The key cannot be read.
    #[error(transparent)]
    Key(#[from] pem::Error),
    /// The certificate and the key do not belong together.
    #[error(transparent)]
    Pair(#[from] rustls::Error),
    /// The client cannot use the key.
    #[error(transparent)]
    Client(#[from] ureq::Error),
}

/// Hosts of the cluster, with the TLS files for connections to them.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    hosts: Vec<String>,
    /// Authorities that verify the hosts; `None`: those of the system.
    authorities: Option<RootCerts>,
    identity: Option<ClientCert>,
}

impl Trust {
    /// Reads the hosts and files that variables name. A certificate whose key cannot be read is ignored, with a line on
    /// standard error, because the fetcher runs as the task's user.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Trust, TrustError> {
        let hosts: Vec<String> = variable(HOSTS).unwrap_or_default().split(',').map(normal).collect();
        let hosts: Vec<String> = hosts.into_iter().filter(|host| !host.is_empty()).collect();
        if hosts.is_empty() {
            return Ok(Trust::default());
        }
        let authorities = match variable(AUTHORITY) {
            Some(file) => {
                let certificates: Vec<_> =
                    chain(&file)?.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
                Some(RootCerts::new_with_certs(&certificates))
            }
            None => None,
        };
        let identity = match (variable(CERTIFICATE), variable(KEY)) {
            (Some(certificate), Some(key)) => match std::fs::read(&key) {
                Ok(bytes) => {
                    let unusable = |source| TrustError::Identity { certificate: certificate.clone(), key, source };
                    Some(identity(chain(&certificate)?, &bytes).map_err(unusable)?)
                }
                Err(error) => {
                    stdio::err!("Fetching without a client certificate: cannot read '{key}': {error}");
                    None
                }
            },
            _ => None,
        };
        Ok(Trust { hosts, authorities, identity })
    }

    /// Returns whether this is an `https://` URL of one of the hosts.
    pub(crate) fn has(&self, url: &str) -> bool {
        let Ok(url) = url.parse::<Uri>() else { return false };
        let is_https = url.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        is_https && url.host().is_some_and(|host| self.hosts.contains(&normal(host)))
    }

    /// Returns the TLS configuration of connections to the hosts.
    pub(crate) fn tls(&self) -> TlsConfig {
        TlsConfig::builder()
            .root_certs(self.authorities.clone().unwrap_or(RootCerts::PlatformVerifier))
            .client_cert(self.identity.clone())
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build()
    }
}

/// Normalizes a host name for comparison: in lower case, and an IPv6 address without brackets.
fn normal(host: &str) -> String {
    host.trim().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

fn chain(file: &str) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let read = CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    read.map_err(|source| TrustError::Certificates { file: file.to_owned(), source })
}

fn identity(chain: Vec<CertificateDer<'static>>, key: &[u8]) -> Result<ClientCert, IdentityError> {
    let checked = PrivateKeyDer::from_pem_slice(key)?;
    // The client does not check that key and certificate belong together.
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder.with_root_certificates(RootCertStore::empty()).with_client_auth_cert(chain.clone(), checked)
        })?;
    let key = PrivateKey::from_pem(key)?;
    let chain: Vec<_> = chain.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    Ok(ClientCert::new_with_certs(&chain, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_at_the_named_hosts_is_of_the_cluster() {
        let hosts = |name: &str| (name == HOSTS).then(|| "Files.example, [::1],10.0.0.1".to_owned());
        let trust = Trust::read(hosts).unwrap();
        for url in ["https://files.example/a", "HTTPS://FILES.EXAMPLE:8443/", "https://[::1]:1/", "https://10.0.0.1"] {
            assert!(trust.has(url), "{url}");
        }
        let others = [
            "http://files.example/a",
            "https://files.example.org/",
            "https://x.files.example/",
            "https://files.example@other.example/",
            "https://10.0.0.10/",
            "nonsense",
        ];
        for url in others {
            assert!(!trust.has(url), "{url}");
        }
        assert!(!Trust::default().has("https:///"));
        assert!(!Trust::read(|_| None).unwrap().has("https://files.example/"));
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let variable = |name: &str| Some(if name == HOSTS { "h" } else { "/nowhere/file" }.to_owned());
        assert!(Trust::read(variable).unwrap_err().to_string().contains("'/nowhere/file'"));
        // A key that cannot be read is not an error.
        let variable = |name: &str| (name != AUTHORITY).then(|| variable(name)).flatten();
        assert!(Trust::read(variable).unwrap().identity.is_none());
    }
}
