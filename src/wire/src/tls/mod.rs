//! TLS with the settings of libprocess (docs/security.md): configuration, files, handshakes.
//!
//! - [`Settings`]: the variables `LIBPROCESS_SSL_*`, or flags with the same meaning.
//! - [`Tls`]: certificates and keys, read again when their files change; accepts and makes TLS connections.
//! - [`BlockingStream`]: a client's connection for threads without a runtime.
//!
//! Handshakes of servers and networks run on a thread of their own. It does not decide which addresses use TLS.

mod blocking;
mod error;
mod files;
mod handshake;
mod reload;
mod settings;
mod thread;
mod verify;

pub use blocking::BlockingStream;
pub use error::TlsError;
pub use reload::{Role, Tls};
pub use settings::{HostnameValidation, Settings, SettingsError};

pub(crate) use handshake::{Offered, offered};
