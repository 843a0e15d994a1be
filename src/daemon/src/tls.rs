//! Reads the TLS settings of a daemon: its flags, and the variables of libprocess.

use anyhow::Context;
use wire::tls::{HostnameValidation, Role, Settings, Tls};

use crate::flags::{Flags, TlsFlags};

/// Loads the TLS of a daemon; `None` unless its flags or the environment turn it on. The clients of this process use it
/// too.
///
/// # Errors
/// Settings that contradict each other, or files that cannot be used.
pub(crate) fn read(given: &Flags) -> anyhow::Result<Option<Tls>> {
    let settings = settings(given)?;
    if !settings.enabled {
        return Ok(None);
    }
    let tls = Tls::load(settings, Role::Server).context("cannot turn TLS on")?;
    wire::client::configure(tls.clone());
    let beside = if tls.settings().support_downgrade { ", beside plain connections (downgrade)" } else { "" };
    tracing::info!("TLS is on{beside}");
    Ok(Some(tls))
}

/// Reads the settings of the flags and of the environment.
fn settings(given: &Flags) -> anyhow::Result<Settings> {
    let flags = TlsFlags::read(given)?;
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let boolean = |value: Option<bool>| value.map(|value| value.to_string());
    let flag = |key: &str| {
        let (name, value) = match key {
            "ENABLED" if flags.tls_enabled.is_some() => ("--tls_enabled", boolean(flags.tls_enabled)),
            "ENABLED" => {
                let is_on = flags.tls_cert_file.is_some() && flags.tls_key_file.is_some();
                ("--tls_cert_file", is_on.then(|| "true".to_owned()))
            }
            "CERT_FILE" => ("--tls_cert_file", path(&flags.tls_cert_file)),
            "KEY_FILE" => ("--tls_key_file", path(&flags.tls_key_file)),
            "CA_FILE" => ("--tls_ca_file", path(&flags.tls_ca_file)),
            "CA_DIR" => ("--tls_ca_dir", path(&flags.tls_ca_dir)),
            "VERIFY_SERVER_CERT" => ("--tls_verify_server_cert", boolean(flags.tls_verify_server_cert)),
            "REQUIRE_CLIENT_CERT" => ("--tls_require_client_cert", boolean(flags.tls_require_client_cert)),
            "SUPPORT_DOWNGRADE" => ("--tls_support_downgrade", boolean(flags.tls_support_downgrade)),
            "VERIFY_DEPTH" => ("--tls_verify_depth", flags.tls_verify_depth.map(|depth| depth.to_string())),
            "HOSTNAME_VALIDATION_SCHEME" => {
                ("--tls_hostname_validation_scheme", flags.tls_hostname_validation_scheme.clone())
            }
            "ENABLE_TLS_V1_2" => ("--tls_enable_v1_2", boolean(flags.tls_enable_v1_2)),
            "ENABLE_TLS_V1_3" => ("--tls_enable_v1_3", boolean(flags.tls_enable_v1_3)),
            _ => return None,
        };
        value.map(|value| (name.to_owned(), value))
    };
    Settings::read(flag, |name| std::env::var(name).ok()).context("invalid TLS settings")
}

/// Returns the files with which fetchers connect to the hosts of `--fetcher_tls_hosts`: those of the flags or of the
/// environment, whether or not TLS is on for this daemon.
///
/// # Errors
/// Settings that contradict each other.
pub(crate) fn fetcher(given: &Flags, hosts: String) -> anyhow::Result<containerizer::config::FetcherTls> {
    let Settings { ca_file, cert_file, key_file, .. } = settings(given)?;
    Ok(containerizer::config::FetcherTls { hosts, ca_file, cert_file, key_file })
}

/// Returns the variables by which executors connect as their agent does. Executors that cannot read the key connect
/// without a certificate.
pub(crate) fn executor_environment(settings: &Settings) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut set = |name: &str, value: String| variables.push((format!("LIBPROCESS_SSL_{name}"), value));
    set("ENABLED", settings.enabled.to_string());
    let files = [
        ("CERT_FILE", &settings.cert_file),
        ("KEY_FILE", &settings.key_file),
        ("CA_FILE", &settings.ca_file),
        ("CA_DIR", &settings.ca_dir),
    ];
    for (name, path) in files {
        if let Some(path) = path {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            set(name, path.display().to_string());
        }
    }
    if let Some(verify) = settings.verify_server_cert {
        set("VERIFY_SERVER_CERT", verify.to_string());
    }
    set("REQUIRE_CLIENT_CERT", settings.require_client_cert.to_string());
    set("SUPPORT_DOWNGRADE", settings.support_downgrade.to_string());
    set("VERIFY_DEPTH", settings.verify_depth.to_string());
    let scheme = match settings.hostname_validation {
        HostnameValidation::Legacy => "legacy",
        HostnameValidation::OpenSsl => "openssl",
    };
    set("HOSTNAME_VALIDATION_SCHEME", scheme.to_owned());
    set("ENABLE_TLS_V1_2", settings.tls_v1_2.to_string());
    set("ENABLE_TLS_V1_3", settings.tls_v1_3.to_string());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    const FILES: [(&str, &str); 2] = [("tls_cert_file", "/c"), ("tls_key_file", "/k")];

    fn read(more: &[(&str, &str)]) -> Result<Settings, String> {
        let given = Flags::with(Part::Master, &[&FILES[..], more].concat());
        settings(&given).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn every_setting_has_a_flag() {
        let (depth, scheme) = (("tls_verify_depth", "2"), ("tls_hostname_validation_scheme", "openssl"));
        let given = read(&[depth, scheme, ("tls_enable_v1_2", "false")]).unwrap();
        assert!(given.enabled && given.tls_v1_3 && !given.tls_v1_2);
        assert_eq!((given.verify_depth, given.hostname_validation), (2, HostnameValidation::OpenSsl));
        assert!(!read(&[("tls_enabled", "false")]).unwrap().enabled);
        assert!(read(&[("tls_enable_v1_2", "false"), ("tls_enable_v1_3", "false")]).is_err());
    }

    #[test]
    fn errors_name_the_flag() {
        let error = read(&[("tls_verify_depth", "9")]).unwrap_err();
        assert!(error.contains("invalid value '9' for '--tls_verify_depth'"), "{error}");
        let error = read(&[("tls_cert_file", ""), ("tls_enabled", "true")]).unwrap_err();
        assert!(error.contains("'--tls_enabled' turns TLS on, which needs 'LIBPROCESS_SSL_CERT_FILE'"), "{error}");
    }
}
