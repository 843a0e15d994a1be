//! Reads the flags for etcd: its addresses, also from a file, credentials and certificates, and the duration of the
//! lease.

use std::time::Duration;

use detector::etcd::{EtcdUrl, EtcdUrlError, Service};
use wire::tls::{Role, Settings, Tls, TlsError};

use crate::flags::FlagError;
use crate::flags::master::StateFlags;
use crate::{secrets, zookeeper};

const NAME: &str = "etcd";
const CREDENTIAL: &str = "etcd_credential";
/// Shortest and longest lease. etcd makes shorter ones longer.
const LEASES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60 * 60));
/// Name of the flag with the certificates of authorities.
const CA_FILE: &str = "etcd_ca_file";

/// Reads `--etcd` and the flags that depend on it; `None` without it.
///
/// # Errors
/// One of the flags is invalid. The message contains no password.
pub(crate) fn service(flags: &StateFlags) -> Result<Option<(Service, Duration)>, FlagError> {
    let refused = |name, why: String| FlagError::Refused { name, why };
    let files = [
        (CA_FILE, &flags.etcd_ca_file),
        ("etcd_cert_file", &flags.etcd_cert_file),
        ("etcd_key_file", &flags.etcd_key_file),
    ];
    let Some(given) = flags.etcd.as_deref().map(str::trim).filter(|text| !text.is_empty()) else {
        let credential = (CREDENTIAL, &flags.etcd_credential);
        return match files.into_iter().chain([credential]).find(|(_, given)| given.is_some()) {
            Some((name, _)) => Err(refused(name, "needs --etcd".to_owned())),
            None => Ok(None),
        };
    };
    if let Some(other) = [("--zk", flags.zk.is_some()), ("--peers", flags.peers.is_some())].iter().find(|other| other.1)
    {
        let why = format!("excludes {}: masters elect their leader through one service", other.0);
        return Err(refused(NAME, why));
    }
    let text = zookeeper::text(NAME, given)?;
    let url: EtcdUrl = text.parse().map_err(|error: EtcdUrlError| refused(NAME, error.to_string()))?;
    let (shortest, longest) = LEASES;
    let lease = flags.etcd_lease_timeout;
    if !(shortest..=longest).contains(&lease) || lease.subsec_nanos() != 0 {
        let why = format!(
            "'{}' is not a number of seconds from {} to {}",
            base::format_duration(lease),
            shortest.as_secs(),
            longest.as_secs()
        );
        return Err(refused("etcd_lease_timeout", why));
    }
    if let Some((name, _)) = files.iter().find(|(_, given)| given.is_some() && !url.is_tls()) {
        return Err(refused(name, "is for https:// addresses in --etcd".to_owned()));
    }
    let half = match (&flags.etcd_cert_file, &flags.etcd_key_file) {
        (Some(_), None) => Some(("etcd_cert_file", "needs --etcd_key_file")),
        (None, Some(_)) => Some(("etcd_key_file", "needs --etcd_cert_file")),
        _ => None,
    };
    if let Some((name, why)) = half {
        return Err(refused(name, why.to_owned()));
    }
    let credential = flags.etcd_credential.as_deref().map(credential).transpose()?;
    let tls = if url.is_tls() { Some(tls(flags)?) } else { None };
    Ok(Some((Service { url, credential, tls }, lease)))
}

/// Reads `user:password` from a file.
fn credential(path: &std::path::Path) -> Result<(String, String), FlagError> {
    let bytes = secrets::read(CREDENTIAL, path)?;
    let text = std::str::from_utf8(&bytes).ok().map(str::trim_end);
    let (user, password) =
        text.and_then(|text| text.split_once(':')).filter(|(user, _)| !user.is_empty()).ok_or_else(|| {
            FlagError::Refused {
                name: CREDENTIAL,
                why: format!("'{}' is not of the form user:password", path.display()),
            }
        })?;
    Ok((user.to_owned(), password.to_owned()))
}

/// Loads etcd's authority and this master's certificate for it. Without an authority, the host's authorities are
/// trusted.
fn tls(flags: &StateFlags) -> Result<Tls, FlagError> {
    let settings = Settings {
        cert_file: flags.etcd_cert_file.clone(),
        key_file: flags.etcd_key_file.clone(),
        ca_file: flags.etcd_ca_file.clone(),
        verify_server_cert: Some(true),
        ..Settings::default()
    };
    // A client whose certificate cannot be read would connect without it, and etcd would only report that it has none.
    for (name, path) in [("etcd_cert_file", &flags.etcd_cert_file), ("etcd_key_file", &flags.etcd_key_file)] {
        if let Some(path) = path {
            let opened = std::fs::File::open(path);
            opened.map_err(|source| FlagError::File { name, path: path.display().to_string(), source })?;
        }
    }
    let refused =
        |error: &TlsError| FlagError::Refused { name: NAME, why: format!("no TLS: {}", base::error_chain(error)) };
    let tls = Tls::load(settings, Role::Client).map_err(|error| refused(&error))?;
    tls.check_client().map_err(|error| refused(&error))?;
    Ok(tls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn read(pairs: &[(&str, &str)]) -> Result<Option<(Service, Duration)>, String> {
        service(&MasterFlags::with(pairs).state).map_err(|error| error.to_string())
    }

    #[test]
    fn addresses_and_credentials() {
        assert!(read(&[]).unwrap().is_none());
        let (service, lease) = read(&[("etcd", "http://a:1,b:2/x")]).unwrap().unwrap();
        assert_eq!((service.url.to_string().as_str(), lease), ("http://a:1,b:2/x", Duration::from_secs(10)));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "root:a:b\n").unwrap();
        let path = file.path().to_str().unwrap();
        let (service, _) = read(&[("etcd", "http://a:1"), (CREDENTIAL, path)]).unwrap().unwrap();
        assert_eq!(service.credential, Some(("root".to_owned(), "a:b".to_owned())));
        std::fs::write(file.path(), "http://a:3\n").unwrap();
        let (service, _) = read(&[("etcd", path)]).unwrap().unwrap();
        assert_eq!(service.url.to_string(), "http://a:3/tepui");
        let refused = read(&[("etcd", "http://a:1"), ("etcd_credential", "/dev/null")]).unwrap_err();
        assert!(refused.contains("'--etcd_credential': '/dev/null' is not of the form user:password"), "{refused}");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let url = ("etcd", "http://a:1");
        for (more, said) in [
            (("zk", "zk://h:1/m"), "flag '--etcd': excludes --zk"),
            (("peers", "a:1,b:1,c:1"), "flag '--etcd': excludes --peers"),
            (("etcd", "a:1"), "flag '--etcd': it begins neither with http://"),
            (("etcd_lease_timeout", "1secs"), "flag '--etcd_lease_timeout': '1secs' is not a number of seconds from 2"),
            (("etcd_lease_timeout", "2500ms"), "is not a number of seconds"),
            (("etcd_ca_file", "/ca"), "flag '--etcd_ca_file': is for https://"),
        ] {
            let error = read(&[url, more]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        for name in ["etcd_credential", "etcd_ca_file", "etcd_cert_file", "etcd_key_file"] {
            let error = read(&[(name, "/x")]).unwrap_err();
            assert!(error.contains(&format!("'--{name}': needs --etcd")), "{error}");
        }
        let half = read(&[("etcd", "https://a:1"), ("etcd_cert_file", "/x")]).unwrap_err();
        assert!(half.contains("'--etcd_cert_file': needs --etcd_key_file"), "{half}");
        let missing = read(&[("etcd", "https://a:1"), ("etcd_ca_file", "/nowhere")]).unwrap_err();
        assert!(missing.contains("'--etcd': no TLS: ") && missing.contains("/nowhere"), "{missing}");
    }
}
