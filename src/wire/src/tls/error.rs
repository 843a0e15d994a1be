//! Why TLS cannot be set up.

use std::path::PathBuf;

use super::SettingsError;

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A variable or a flag is invalid.
    #[error("invalid TLS settings")]
    Settings(#[from] SettingsError),
    /// A file cannot be read.
    #[error("cannot read '{}'", path.display())]
    Read {
        /// The file or the directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file holds no PEM of the expected kind.
    #[error("'{}' has no {what} in PEM", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// Why, unless it is well-formed and has none.
        source: Option<rustls::pki_types::pem::Error>,
    },
    /// A certificate of an authority is invalid.
    #[error("'{}' has an invalid certificate", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: rustls::Error,
    },
    /// The system has no certificates of authorities.
    #[error("the system has no certificates of authorities: set LIBPROCESS_SSL_CA_FILE or --tls_ca_file")]
    NoAuthorities,
    /// The certificate and the key do not fit together, or cannot be used.
    #[error("cannot use the certificate and the key")]
    Certificate(#[from] rustls::Error),
    /// The certificates of the authorities cannot be used to verify.
    #[error("cannot verify with the certificates of authorities")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}
