//! Rules for requests that a browser sends for a page of another origin: such a page can change nothing, and can call
//! no function but the one that `jsonp` names.
//!
//! `wire` decides which origins are others. `realms` authenticates the sender: a browser may add the credentials of its
//! user to requests of any page.

use wire::http::{Request, Response, StatusCode};

use crate::common::Shared;

/// Maximum length of a callback's name.
const CALLBACK_MAX: usize = 128;

/// Returns whether a request may change something. GET and HEAD only read, except at `/logging/toggle`, which sets a
/// level with any method (LEG-20). `endpoint` is the endpoint of the request if both daemons have it.
pub(crate) fn may_change(request: &Request, endpoint: Option<Shared>) -> bool {
    !request.is_get_or_head() || (endpoint == Some(Shared::LoggingToggle) && request.query.get("level").is_some())
}

/// Checks a request against these rules. `endpoint` is the endpoint of the request if both daemons have it, `jsonp` is
/// whether callbacks are allowed (`--jsonp`).
///
/// # Errors
/// The response: 403 to a request of another origin that may change something, and to a callback that is not allowed;
/// 400 to a callback that is not a name.
pub(crate) fn check(request: &Request, endpoint: Option<Shared>, jsonp: bool) -> Result<(), Box<Response>> {
    if !jsonp && request.query.get("jsonp").is_some() {
        let text = "This daemon does not answer 'jsonp' (--jsonp=false)";
        return Err(Box::new(Response::text(StatusCode::FORBIDDEN, text)));
    }
    if let Some(callback) = request.query.get("jsonp").filter(|callback| !is_name(callback)) {
        let shown: String = callback.chars().take(CALLBACK_MAX).collect();
        return Err(Box::new(Response::bad_request(format!(
            "Invalid 'jsonp' {shown:?}: it must be the name of a function: letters, digits, '_', '$' and '.'"
        ))));
    }
    if !may_change(request, endpoint) {
        return Ok(());
    }
    request.check_origin().map_err(|foreign| Box::new(Response::text(StatusCode::FORBIDDEN, foreign.to_string())))
}

/// Returns whether a text is the name of a function, also of one that is a field of objects: `take`,
/// `angular.callbacks._0`.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(|c: char| c.is_ascii_digit())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
    };
    text.len() <= CALLBACK_MAX && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wire::http::{Body, HeaderMap, Method, Query};
    use wire::libprocess::ConnectionId;

    use super::*;

    fn request(method: Method, query: &str, headers: &[(&'static str, &str)]) -> Request {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().unwrap());
        }
        Request {
            method,
            path: "/".to_owned(),
            raw_query: None,
            query: Query::parse(query).unwrap(),
            headers: all,
            body: Body::Full(Vec::<u8>::new().into()),
            peer: SocketAddr::from(([127, 0, 0, 1], 1)),
            connection: ConnectionId(1),
            principal: None,
        }
    }

    #[test]
    fn pages_of_other_origins_change_no_log_level() {
        let (toggle, level) = (Some(Shared::LoggingToggle), "level=1&duration=1secs");
        let may = |method: Method, query: &str, headers: &[(&'static str, &str)], endpoint| {
            check(&request(method, query, headers), endpoint, true).is_ok()
        };
        let evil = ("origin", "http://evil.example");
        for headers in [&[evil][..], &[("sec-fetch-site", "cross-site")], &[("sec-fetch-site", "same-site")]] {
            assert!(!may(Method::GET, level, headers, toggle), "{headers:?}");
            assert!(!may(Method::HEAD, level, headers, toggle), "{headers:?}");
            assert!(may(Method::GET, "", headers, toggle), "reads the level: {headers:?}");
            assert!(may(Method::GET, level, headers, Some(Shared::Version)), "another endpoint: {headers:?}");
            assert!(!may(Method::POST, "", headers, None), "{headers:?}");
        }
        let own = [("host", "a:5050"), ("origin", "http://a:5050"), ("sec-fetch-site", "same-origin")];
        // Commands send none of the headers, and a browser sends `none` for an address that its user has entered.
        for headers in [&own[..], &own[..2], &own[2..], &[], &[("sec-fetch-site", "none")]] {
            assert!(may(Method::GET, level, headers, toggle), "{headers:?}");
            assert!(may(Method::POST, level, headers, toggle), "{headers:?}");
        }
    }

    #[test]
    fn names_of_functions() {
        for name in ["take_it", "angular.callbacks._0", "$jsonp1", "JSON_CALLBACK"] {
            assert!(is_name(name), "{name}");
        }
        let long = "a".repeat(CALLBACK_MAX + 1);
        for text in ["", "a.", ".a", "1a", "alert(1);a", "a b", "<script>", "a[0]", "a\u{2028}", &long] {
            assert!(!is_name(text), "{text}");
        }
    }
}
