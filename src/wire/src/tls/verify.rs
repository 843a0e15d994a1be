//! Checks of certificates beyond those of the library: the depth of a chain, and no check at all.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};

/// Error of a chain with more certificates than `VERIFY_DEPTH` allows.
#[derive(Debug, thiserror::Error)]
#[error("{found} certificates between the certificate and its authority, of at most {limit} (VERIFY_DEPTH)")]
struct TooDeep {
    found: usize,
    limit: usize,
}

fn check_depth(intermediates: &[CertificateDer<'_>], limit: usize) -> Result<(), Error> {
    let found = intermediates.len();
    if found <= limit {
        return Ok(());
    }
    let error = OtherError(Arc::new(TooDeep { found, limit }));
    Err(Error::InvalidCertificate(CertificateError::Other(error)))
}

/// Implements the methods of a verifier that checks signatures as its `inner` does.
macro_rules! signatures_of_inner {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls12_signature(message, certificate, signature)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.inner.verify_tls13_signature(message, certificate, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.inner.supported_verify_schemes()
        }
    };
}

/// A verifier of servers that also limits the number of certificates which a server sends besides its own.
#[derive(Debug)]
pub(super) struct ServerDepth {
    pub(super) inner: Arc<dyn ServerCertVerifier>,
    pub(super) limit: usize,
}

impl ServerCertVerifier for ServerDepth {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        check_depth(intermediates, self.limit)?;
        self.inner.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    signatures_of_inner!();
}

/// A verifier of clients that also limits the number of certificates which a client sends besides its own.
#[derive(Debug)]
pub(super) struct ClientDepth {
    pub(super) inner: Arc<dyn ClientCertVerifier>,
    pub(super) limit: usize,
}

impl ClientCertVerifier for ClientDepth {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        check_depth(intermediates, self.limit)?;
        self.inner.verify_client_cert(certificate, intermediates, now)
    }

    signatures_of_inner!();
}

/// A verifier that accepts every server which has the key of its certificate, as libprocess does without
/// `VERIFY_SERVER_CERT`.
pub(super) struct Unverified(pub(super) Arc<CryptoProvider>);

impl fmt::Debug for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unverified")
    }
}

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
