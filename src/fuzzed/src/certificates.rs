//! Checks certificates and keys in PEM.

use wire::tls::{Role, Settings, Tls};

use crate::files;

/// Uses a file as the certificates, the key and the authorities of a server: it is accepted or rejected.
pub fn certificates(data: &[u8]) {
    let directory = files::scratch();
    let file = directory.path().join("all.pem");
    files::write(&file, data);
    let own = Settings { enabled: true, cert_file: Some(file.clone()), key_file: Some(file), ..Settings::default() };
    let checks = Settings { ca_file: own.cert_file.clone(), require_client_cert: true, ..own.clone() };
    let client = Settings { cert_file: None, key_file: None, ..checks.clone() };
    let own = Tls::load(own, Role::Server).is_ok();
    let checks = Tls::load(checks, Role::Server).is_ok();
    assert!(own || !checks, "a server that asks for more of the file accepts more of it");
    let _ = Tls::load(client, Role::Client);
}
