//! Rules for requests that a browser sends for a page of another origin: such a page can change nothing, and can call
//! no function but the one that `jsonp` names.
//!
//! `wire` decides which origins are others. `realms` authenticates the sender: a browser may add the credentials of its
//! user to requests of any page.

use wire::http::{Request, Response, StatusCode};

/// Maximum length of a callback's name.
const CALLBACK_MAX: usize = 128;

/// Checks a request against these rules. `jsonp` is whether callbacks are allowed (`--jsonp`).
///
/// # Errors
/// The response: 403 to a request of another origin that is neither GET nor HEAD, and to a callback that is not
/// allowed; 400 to a callback that is not a name.
pub(crate) fn check(request: &Request, jsonp: bool) -> Result<(), Box<Response>> {
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
    use super::*;

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
