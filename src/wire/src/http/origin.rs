//! The rule for requests that a browser sends for a page of another origin: such a page can change nothing.
//!
//! It does not decide which requests change something, and it authenticates nothing: a client that is no browser may
//! send any headers.

use http::{HeaderMap, Method};

use super::request::last_value;

/// Error for a request that a page of another origin has sent
/// ([`Request::check_origin`](super::Request::check_origin)).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForeignOrigin {
    /// The request names this origin.
    #[error("A page of the origin {0:?} must not send {1} requests to this one")]
    Named(String, Method),
    /// The request names no origin.
    #[error("A page of another origin must not send this {0} request")]
    Unnamed(Method),
}

/// Checks a request by its headers. Browsers send `Origin` with every request of another origin that is neither GET nor
/// HEAD, but not with the GET of an image. A page at another port of the same host, such as that of a task, is of the
/// same site.
///
/// # Errors
/// The origin is not the server's own.
pub(super) fn check(method: &Method, headers: &HeaderMap) -> Result<(), ForeignOrigin> {
    match (last_value(headers, "origin"), last_value(headers, "sec-fetch-site")) {
        (Some(origin), _) if !is_own(origin, headers) => Err(ForeignOrigin::Named(origin.to_owned(), method.clone())),
        (None, Some("cross-site" | "same-site")) => Err(ForeignOrigin::Unnamed(method.clone())),
        _ => Ok(()),
    }
}

/// Returns whether the origin is the address to which the browser has sent the request. A proxy that replaces `Host`
/// adds `X-Forwarded-Host`, which a page can only send after a preflight request, and those are not answered.
fn is_own(origin: &str, headers: &HeaderMap) -> bool {
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    // Either text may leave out the port of the scheme.
    let bare = |text: &str| text.strip_suffix(default_port).unwrap_or(text).to_ascii_lowercase();
    ["host", "x-forwarded-host"]
        .into_iter()
        .filter_map(|name| last_value(headers, name))
        .any(|own| bare(own) == bare(host))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn checked(method: &Method, headers: &[(&'static str, &str)]) -> Result<(), ForeignOrigin> {
        let header = |&(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        check(method, &headers)
    }

    fn is_own_at(host: &str, origin: &str) -> bool {
        checked(&Method::POST, &[("host", host), ("origin", origin)]).is_ok()
    }

    #[test]
    fn only_pages_of_other_origins_are_refused() {
        let foreign = [("host", "10.0.0.1:5050"), ("origin", "http://evil.example")];
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
            let text = checked(&method, &foreign).unwrap_err().to_string();
            let expected =
                format!("A page of the origin \"http://evil.example\" must not send {method} requests to this one");
            assert_eq!(text, expected);
            assert_eq!(checked(&method, &foreign[..1]), Ok(()), "a client that is no browser");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused_without_their_origin() {
        for site in ["cross-site", "same-site"] {
            let text = checked(&Method::GET, &[("sec-fetch-site", site)]).unwrap_err().to_string();
            assert_eq!(text, "A page of another origin must not send this GET request");
        }
        // A browser sends `none` for an address that its user has entered.
        for site in ["none", "same-origin"] {
            assert_eq!(checked(&Method::GET, &[("sec-fetch-site", site)]), Ok(()));
        }
    }

    #[test]
    fn the_own_origin_is_the_address_of_the_request() {
        for (host, origin) in [
            ("10.0.0.1:5050", "http://10.0.0.1:5050"),
            ("Master.example:5050", "https://master.example:5050"),
            ("[::1]:5050", "http://[::1]:5050"),
        ] {
            assert!(is_own_at(host, origin), "{host} {origin}");
        }
        for origin in ["null", "", "http://10.0.0.1", "http://10.0.0.1:5051", "file://", "app://10.0.0.1:5050"] {
            assert!(!is_own_at("10.0.0.1:5050", origin), "{origin}");
        }
        let forwarded = [("host", "10.0.0.1:5050"), ("x-forwarded-host", "m.example"), ("origin", "https://m.example")];
        assert_eq!(checked(&Method::POST, &forwarded), Ok(()));
        assert!(!is_own_at("10.0.0.1:5050", "https://m.example"), "no proxy names the host");
    }

    #[test]
    fn each_scheme_has_its_own_default_port() {
        for (host, origin) in [
            ("m.example", "http://m.example:80"),
            ("m.example:80", "http://m.example"),
            ("m.example", "https://m.example:443"),
            ("m.example:443", "https://m.example"),
        ] {
            assert!(is_own_at(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("m.example:443", "http://m.example"),
            ("m.example", "http://m.example:443"),
            ("m.example:80", "https://m.example"),
            ("m.example", "https://m.example:80"),
            ("m.example:443", "http://m.example:80"),
        ] {
            assert!(!is_own_at(host, origin), "{host} {origin}");
        }
    }
}
