//! The TLS settings of libprocess, from its variables or from flags. It reads no files.

use std::path::PathBuf;
use std::time::Duration;

/// A setting that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The value is invalid.
    #[error("invalid value '{value}' for '{name}': expected {expected}")]
    Value {
        /// Name of the variable or the flag.
        name: String,
        /// Value of the setting.
        value: String,
        /// Description of valid values.
        expected: &'static str,
    },
    /// TLS is enabled without a certificate or a key.
    #[error("'{enabled}' turns TLS on, which needs '{missing}'")]
    Missing {
        /// Setting that enables TLS.
        enabled: String,
        /// Setting that is missing.
        missing: &'static str,
    },
    /// A certificate is set without its key, or the reverse.
    #[error("'{name}' needs '{missing}'")]
    Half {
        /// Setting that is present.
        name: String,
        /// Setting that is missing.
        missing: &'static str,
    },
    /// All versions of TLS are disabled.
    #[error("TLS 1.2 and TLS 1.3 are both disabled: no version is left (ENABLE_TLS_V1_2, ENABLE_TLS_V1_3)")]
    NoVersion,
}

/// Check of a peer that is known only by its address (`LIBPROCESS_SSL_HOSTNAME_VALIDATION_SCHEME`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostnameValidation {
    /// The certificate must have the address, or the name that the address has in DNS.
    #[default]
    Legacy,
    /// The certificate must have the address.
    OpenSsl,
}

/// TLS settings, named as the variables of libprocess without their prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Whether servers accept TLS, and connections to peers use it.
    pub enabled: bool,
    /// File with the certificate chain of this process, PEM.
    pub cert_file: Option<PathBuf>,
    /// File with the private key of the certificate, PEM.
    pub key_file: Option<PathBuf>,
    /// File with certificates of authorities, PEM.
    pub ca_file: Option<PathBuf>,
    /// Directory of files with certificates of authorities.
    pub ca_dir: Option<PathBuf>,
    /// Whether the certificates of servers are verified; `None`: only those of `https://` addresses.
    pub verify_server_cert: Option<bool>,
    /// Whether servers require a valid certificate of each client.
    pub require_client_cert: bool,
    /// Maximum number of certificates between a certificate and its authority.
    pub verify_depth: usize,
    /// Whether servers accept plain connections too, and peers without TLS get a plain connection.
    pub support_downgrade: bool,
    /// Check of a peer that is known only by its address; see [`HostnameValidation`].
    pub hostname_validation: HostnameValidation,
    /// Whether TLS 1.2 is allowed.
    pub tls_v1_2: bool,
    /// Whether TLS 1.3 is allowed. It is by default, unlike in libprocess.
    pub tls_v1_3: bool,
    /// Shortest interval between two checks of the files for changes.
    pub reload_interval: Duration,
    /// Settings that have no effect, each with the reason, for the log.
    pub without_effect: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            enabled: false,
            cert_file: None,
            key_file: None,
            ca_file: None,
            ca_dir: None,
            verify_server_cert: None,
            require_client_cert: false,
            verify_depth: 4,
            support_downgrade: false,
            hostname_validation: HostnameValidation::Legacy,
            tls_v1_2: true,
            tls_v1_3: true,
            reload_interval: Duration::from_secs(2),
            without_effect: Vec::new(),
        }
    }
}

/// A value, and the name of its variable or flag.
type Found = (String, String);

impl Settings {
    /// Reads the settings from the environment of this process.
    ///
    /// # Errors
    /// An invalid value, or values that contradict each other.
    pub fn from_environment() -> Result<Settings, SettingsError> {
        Settings::read(|_| None, |name| std::env::var(name).ok())
    }

    /// Reads the settings from `flag`, which returns the flag for a variable's name without its prefix, such as
    /// `CERT_FILE`, and from `variable`, which reads the environment.
    ///
    /// A flag takes precedence. The old prefix `SSL_` counts only where `SSL_ENABLED` is set: OpenSSL has variables
    /// with such names, too.
    ///
    /// # Errors
    /// An invalid value, or values that contradict each other.
    pub fn read(
        flag: impl Fn(&str) -> Option<(String, String)>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, SettingsError> {
        let is_old = variable("SSL_ENABLED").is_some();
        let prefixes: &[&str] = if is_old { &["LIBPROCESS_SSL_", "SSL_"] } else { &["LIBPROCESS_SSL_"] };
        let find = |key: &str| -> Option<Found> {
            let from_environment = |prefix: &&str| {
                let name = format!("{prefix}{key}");
                variable(&name).map(|value| (name, value))
            };
            flag(key).or_else(|| prefixes.iter().find_map(from_environment))
        };
        let enabled = find("ENABLED");
        let path = |key| find(key).filter(|(_, value)| !value.is_empty());
        let (cert, key) = (path("CERT_FILE"), path("KEY_FILE"));
        let is_enabled = boolean(enabled.clone())?.unwrap_or(false);
        if let (true, Some((enabled, _))) = (is_enabled, enabled) {
            for (found, missing) in [(&cert, "LIBPROCESS_SSL_CERT_FILE"), (&key, "LIBPROCESS_SSL_KEY_FILE")] {
                if found.is_none() {
                    return Err(SettingsError::Missing { enabled, missing });
                }
            }
        }
        match (&cert, &key) {
            (Some((name, _)), None) => half(name, "LIBPROCESS_SSL_KEY_FILE")?,
            (None, Some((name, _))) => half(name, "LIBPROCESS_SSL_CERT_FILE")?,
            _ => {}
        }
        let either = |key, alias| boolean(find(key).or_else(|| find(alias)));
        let is = |key, default| Ok(boolean(find(key))?.unwrap_or(default));
        let require_client_cert = either("REQUIRE_CLIENT_CERT", "REQUIRE_CERT")?.unwrap_or(false);
        let verify = either("VERIFY_SERVER_CERT", "VERIFY_CERT")?;
        let settings = Settings {
            enabled: is_enabled,
            cert_file: cert.map(|(_, path)| path.into()),
            key_file: key.map(|(_, path)| path.into()),
            ca_file: path("CA_FILE").map(|(_, path)| path.into()),
            ca_dir: path("CA_DIR").map(|(_, path)| path.into()),
            verify_server_cert: if require_client_cert { Some(true) } else { verify },
            require_client_cert,
            verify_depth: find("VERIFY_DEPTH").map_or(Ok(4), depth)?,
            support_downgrade: is("SUPPORT_DOWNGRADE", false)?,
            hostname_validation: find("HOSTNAME_VALIDATION_SCHEME").map_or(Ok(HostnameValidation::Legacy), scheme)?,
            tls_v1_2: is("ENABLE_TLS_V1_2", true)?,
            tls_v1_3: is("ENABLE_TLS_V1_3", true)?,
            reload_interval: Settings::default().reload_interval,
            without_effect: without_effect(&find)?,
        };
        // The setting has no effect, because addresses are always checked; an invalid value is still an error.
        boolean(find("VERIFY_IPADD"))?;
        if !settings.tls_v1_2 && !settings.tls_v1_3 {
            return Err(SettingsError::NoVersion);
        }
        Ok(settings)
    }
}

fn half(name: &str, missing: &'static str) -> Result<(), SettingsError> {
    Err(SettingsError::Half { name: name.to_owned(), missing })
}

fn boolean(found: Option<Found>) -> Result<Option<bool>, SettingsError> {
    let Some((name, value)) = found else { return Ok(None) };
    match &*value {
        "true" | "1" => Ok(Some(true)),
        "false" | "0" => Ok(Some(false)),
        _ => Err(SettingsError::Value { name, value, expected: "true or false" }),
    }
}

fn depth((name, value): Found) -> Result<usize, SettingsError> {
    let expected = "a number of certificates from 0 to 6";
    let depth = value.parse().ok().filter(|depth| *depth <= 6);
    depth.ok_or(SettingsError::Value { name, value, expected })
}

fn scheme((name, value): Found) -> Result<HostnameValidation, SettingsError> {
    match &*value {
        "legacy" => Ok(HostnameValidation::Legacy),
        "openssl" => Ok(HostnameValidation::OpenSsl),
        _ => Err(SettingsError::Value { name, value, expected: "'legacy' or 'openssl'" }),
    }
}

/// Returns the settings that have no effect: the library has no such choice, or no such version.
fn without_effect(find: &impl Fn(&str) -> Option<Found>) -> Result<Vec<String>, SettingsError> {
    let mut lines = Vec::new();
    for key in ["ENABLE_SSL_V3", "ENABLE_TLS_V1_0", "ENABLE_TLS_V1_1"] {
        let found = find(key);
        if let (Some((name, _)), Some(true)) = (found.clone(), boolean(found)?) {
            lines.push(format!("'{name}' has no effect: the versions are TLS 1.2 and 1.3"));
        }
    }
    if let Some((name, _)) = find("CIPHERS") {
        lines.push(format!(
            "'{name}' has no effect: the ciphers are those of TLS 1.3, and of TLS 1.2 with ECDHE and AEAD"
        ));
    }
    if let Some((name, _)) = find("ECDH_CURVE").filter(|(_, value)| value != "auto") {
        lines.push(format!("'{name}' has no effect: the curves are X25519, P-256 and P-384"));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Settings::read(|_| None, find)
    }

    const ON: [(&str, &str); 3] =
        [("LIBPROCESS_SSL_ENABLED", "1"), ("LIBPROCESS_SSL_CERT_FILE", "/c"), ("LIBPROCESS_SSL_KEY_FILE", "/k")];

    fn on(more: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        read(&[&ON[..], more].concat())
    }

    #[test]
    fn variables_have_the_meaning_of_libprocess() {
        assert_eq!(read(&[]).unwrap(), Settings::default());
        let all = on(&[
            ("LIBPROCESS_SSL_VERIFY_CERT", "false"),
            ("LIBPROCESS_SSL_REQUIRE_CERT", "true"),
            ("LIBPROCESS_SSL_SUPPORT_DOWNGRADE", "true"),
            ("LIBPROCESS_SSL_VERIFY_DEPTH", "2"),
            ("LIBPROCESS_SSL_HOSTNAME_VALIDATION_SCHEME", "openssl"),
        ])
        .unwrap();
        assert!(all.enabled && all.require_client_cert && all.support_downgrade);
        // A server that requires certificates verifies them.
        assert_eq!((all.verify_server_cert, all.verify_depth), (Some(true), 2));
        assert_eq!(all.hostname_validation, HostnameValidation::OpenSsl);
        let ciphers = on(&[("LIBPROCESS_SSL_CIPHERS", "AES128-SHA"), ("LIBPROCESS_SSL_ENABLE_TLS_V1_0", "true")]);
        assert_eq!(ciphers.unwrap().without_effect.len(), 2);
    }

    #[test]
    fn the_old_names_count_with_their_own_switch_only() {
        let files = [("SSL_CERT_FILE", "/etc/ssl/ca.pem")];
        assert_eq!(read(&files).unwrap(), Settings::default());
        let old = read(&[("SSL_ENABLED", "true"), ("SSL_CERT_FILE", "/c"), ("SSL_KEY_FILE", "/k")]).unwrap();
        assert!(old.enabled && old.cert_file == Some("/c".into()));
        let both = on(&[("SSL_ENABLED", "false"), ("SSL_CERT_FILE", "/old")]).unwrap();
        assert!(both.enabled && both.cert_file == Some("/c".into()));
    }

    #[test]
    fn errors_name_the_setting_and_the_rule() {
        let error = |variables: &[(&str, &str)]| read(variables).unwrap_err().to_string();
        assert_eq!(
            error(&[("LIBPROCESS_SSL_ENABLED", "true"), ("LIBPROCESS_SSL_CERT_FILE", "/c")]),
            "'LIBPROCESS_SSL_ENABLED' turns TLS on, which needs 'LIBPROCESS_SSL_KEY_FILE'"
        );
        assert_eq!(
            error(&[("LIBPROCESS_SSL_ENABLED", "yes")]),
            "invalid value 'yes' for 'LIBPROCESS_SSL_ENABLED': expected true or false"
        );
        assert!(on(&[("LIBPROCESS_SSL_VERIFY_DEPTH", "-1")]).is_err());
        assert!(on(&[("LIBPROCESS_SSL_VERIFY_IPADD", "maybe")]).is_err());
        let none = [("LIBPROCESS_SSL_ENABLE_TLS_V1_2", "false"), ("LIBPROCESS_SSL_ENABLE_TLS_V1_3", "false")];
        assert_eq!(on(&none).unwrap_err(), SettingsError::NoVersion);
        assert!(matches!(read(&ON[1..2]).unwrap_err(), SettingsError::Half { .. }));
    }

    #[test]
    fn flags_win() {
        let flag = |key: &str| (key == "CERT_FILE").then(|| ("--tls_cert_file".to_owned(), "/flag".to_owned()));
        let variable = |name: &str| ON.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(Settings::read(flag, variable).unwrap().cert_file, Some("/flag".into()));
    }
}
