//! The TLS of a process: the library's configurations, made from the current files. It does no network I/O.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::time::Instant;

use super::files::{Identity, Stamp, authorities};
use super::verify::{ClientDepth, ServerDepth, Unverified};
use super::{Settings, TlsError};
use crate::sync::lock;

static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(ring::default_provider()));

/// Use of TLS by a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The process accepts connections, and may make some. It needs its certificate.
    Server,
    /// The process only connects. A certificate that it may not read is ignored with a warning: an executor has the
    /// agent's environment, but often runs as another user.
    Client,
}

/// The TLS configuration of a process. Clones share the files, which are read again within seconds after they change:
/// new connections use the new ones. Files that cannot be used are logged once, and the former ones remain in use.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    settings: Settings,
    role: Role,
    state: Mutex<State>,
}

struct State {
    loaded: Arc<Loaded>,
    stamp: Stamp,
    looked_at: Instant,
}

/// Configurations made from the files, and their stamp when they were read.
struct Loaded {
    identity: Option<Identity>,
    server: Option<Arc<ServerConfig>>,
    /// Configuration of clients that verify servers, made when the first connection needs it: reading the system's
    /// authorities takes milliseconds.
    verified: OnceLock<Result<Arc<ClientConfig>, Arc<TlsError>>>,
    unverified: OnceLock<Result<Arc<ClientConfig>, Arc<TlsError>>>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.settings).finish()
    }
}

impl Tls {
    /// Reads the files of the settings. Settings without effect are logged.
    ///
    /// # Errors
    /// A file cannot be read, or its content cannot be used.
    pub fn load(settings: Settings, role: Role) -> Result<Tls, TlsError> {
        for line in &settings.without_effect {
            tracing::warn!("{line}");
        }
        // The stamp is taken before the files are read, so that a change in between is detected later.
        let stamp = Stamp::of(&settings);
        let loaded = Arc::new(Loaded::read(&settings, role)?);
        let state = Mutex::new(State { loaded, stamp, looked_at: Instant::now() });
        Ok(Tls(Arc::new(Inner { settings, role, state })))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    /// Checks that this process can be a client that verifies servers, with the current files.
    ///
    /// # Errors
    /// The authorities cannot be read, or the certificate does not match its key.
    pub fn check_client(&self) -> Result<(), Arc<TlsError>> {
        self.client(true).map(drop)
    }

    /// Returns the configuration of servers, from the current files.
    pub(super) fn server(&self) -> Result<Arc<ServerConfig>, Arc<TlsError>> {
        let server = self.loaded().server.clone();
        server.ok_or_else(|| Arc::new(TlsError::Certificate(rustls::Error::NoCertificatesPresented)))
    }

    /// Returns the configuration of clients, from the current files. `verify` applies where the settings do not say.
    pub(super) fn client(&self, verify: bool) -> Result<Arc<ClientConfig>, Arc<TlsError>> {
        let (loaded, settings) = (self.loaded(), &self.0.settings);
        let is_verified = settings.verify_server_cert.unwrap_or(verify);
        let place = if is_verified { &loaded.verified } else { &loaded.unverified };
        let make = || client(settings, loaded.identity.as_ref(), is_verified).map(Arc::new).map_err(Arc::new);
        place.get_or_init(make).clone()
    }

    /// Returns the configurations that were made last, after a check of the files if the last check is some time ago.
    fn loaded(&self) -> Arc<Loaded> {
        let mut state = lock(&self.0.state);
        if state.looked_at.elapsed() < self.0.settings.reload_interval {
            return state.loaded.clone();
        }
        state.looked_at = Instant::now();
        let stamp = Stamp::of(&self.0.settings);
        if stamp == state.stamp {
            return state.loaded.clone();
        }
        state.stamp = stamp;
        match Loaded::read(&self.0.settings, self.0.role) {
            Ok(loaded) => {
                tracing::info!("Read the changed TLS certificates and keys");
                state.loaded = Arc::new(loaded);
            }
            Err(error) => {
                let why = why(&error);
                tracing::warn!(
                    "Keeping the former TLS certificates and keys, since the changed ones are unusable: {why}"
                );
            }
        }
        state.loaded.clone()
    }
}

/// Returns an error with its causes, in a line.
fn why(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

impl Loaded {
    fn read(settings: &Settings, role: Role) -> Result<Loaded, TlsError> {
        let mut identity = Identity::read(settings);
        if let (Role::Client, Err(error @ TlsError::Read { .. })) = (role, &identity) {
            tracing::warn!("Connecting without a client certificate: {}", why(error));
            identity = Ok(None);
        }
        let identity = identity?;
        let server = match &identity {
            Some(identity) if role == Role::Server => Some(Arc::new(server(settings, identity)?)),
            _ => None,
        };
        // A server reports unusable authorities at its start, and not at its first connection.
        if role == Role::Server && settings.verify_server_cert == Some(true) {
            authorities(settings)?;
        }
        Ok(Loaded { identity, server, verified: OnceLock::new(), unverified: OnceLock::new() })
    }
}

fn versions(settings: &Settings) -> Vec<&'static SupportedProtocolVersion> {
    let all = [(settings.tls_v1_3, &version::TLS13), (settings.tls_v1_2, &version::TLS12)];
    all.into_iter().filter(|(is_allowed, _)| *is_allowed).map(|(_, version)| version).collect()
}

fn server(settings: &Settings, identity: &Identity) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder_with_provider(PROVIDER.clone()).with_protocol_versions(&versions(settings))?;
    let builder = if settings.require_client_cert {
        let roots = authorities(settings)?;
        let inner = WebPkiClientVerifier::builder_with_provider(roots, PROVIDER.clone()).build()?;
        builder.with_client_cert_verifier(Arc::new(ClientDepth { inner, limit: settings.verify_depth }))
    } else {
        builder.with_no_client_auth()
    };
    Ok(builder.with_single_cert(identity.chain.clone(), identity.key.clone_key())?)
}

fn client(settings: &Settings, identity: Option<&Identity>, is_verified: bool) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(PROVIDER.clone()).with_protocol_versions(&versions(settings))?;
    let builder = if is_verified {
        let roots: Arc<RootCertStore> = authorities(settings)?;
        let inner = WebPkiServerVerifier::builder_with_provider(roots, PROVIDER.clone()).build()?;
        let limit = settings.verify_depth;
        builder.dangerous().with_custom_certificate_verifier(Arc::new(ServerDepth { inner, limit }))
    } else {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Unverified(PROVIDER.clone())))
    };
    Ok(match identity {
        Some(Identity { chain, key }) => builder.with_client_auth_cert(chain.clone(), key.clone_key())?,
        None => builder.with_no_client_auth(),
    })
}
