//! Reasons why TLS cannot be set up.

use std::path::PathBuf;

use super::SettingsError;

/// Reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A variable or a flag is invalid.
    #[error("invalid TLS settings")]
    Settings(#[from] SettingsError),
    /// A file cannot be read.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// Path of the file or the directory.
        path: PathBuf,
        /// Cause of the error.
        source: std::io::Error,
    },
    /// A file has no PEM of the expected kind.
    #[error("'{}' has no {what} in PEM", path.display())]
    Pem {
        /// Path of the file.
        path: PathBuf,
        /// Expected content.
        what: &'static str,
        /// Error of the parser; `None` if the file is well-formed but has no such PEM.
        source: Option<rustls::pki_types::pem::Error>,
    },
    /// A certificate of an authority is invalid.
    #[error("'{}' has an invalid certificate", path.display())]
    Authority {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        source: rustls::Error,
    },
    /// The system has no certificates of authorities.
    #[error("the system has no certificates of authorities: set LIBPROCESS_SSL_CA_FILE or --tls_ca_file")]
    NoAuthorities,
    /// The certificate and the key do not match, or cannot be used.
    #[error("cannot use the certificate and the key")]
    Certificate(#[from] rustls::Error),
    /// The certificates of the authorities cannot be used for verification.
    #[error("cannot verify with the certificates of authorities")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}
