//! Parser of `Accept` and `Accept-Encoding`. It does not rank by `q`, as Mesos does not.

/// Returns whether the `q` of an entry for `candidate` in a list header is not zero; `None` if there is no such entry.
fn verdict(header: &str, candidate: &str) -> Option<bool> {
    header.split(',').find_map(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        if !parts.next().is_some_and(|name| name.eq_ignore_ascii_case(candidate)) {
            return None;
        }
        let quality = parts.find_map(|parameter| {
            let (key, value) = parameter.split_once('=')?;
            key.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f64>().unwrap_or(0.0))
        });
        Some(quality.is_none_or(|quality| quality > 0.0))
    })
}

/// Returns whether an `Accept` header allows a media type. No header allows everything, an empty one nothing.
///
/// The most specific entry decides: `type/subtype`, else `type/*`, else `*/*`.
pub fn accepts(accept: Option<&str>, media_type: &str) -> bool {
    let Some(accept) = accept else { return true };
    let group = media_type.split('/').next().unwrap_or_default();
    let group = format!("{group}/*");
    [media_type, &group, "*/*"].into_iter().find_map(|candidate| verdict(accept, candidate)).unwrap_or(false)
}

/// Returns whether an `Accept-Encoding` header allows gzip. A missing header does not.
pub fn allows_gzip(accept_encoding: Option<&str>) -> bool {
    let Some(header) = accept_encoding else { return false };
    verdict(header, "gzip").or_else(|| verdict(header, "*")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::negotiate::Encoding::{self, Json, Protobuf};

    #[test]
    fn encodings() {
        for (accept, expected) in [
            (None, Some(Json)),
            (Some(""), None),
            (Some("*/*"), Some(Json)),
            (Some("application/*"), Some(Json)),
            (Some("APPLICATION/JSON"), Some(Json)),
            (Some("application/x-protobuf"), Some(Protobuf)),
            (Some("application/x-protobuf, application/json"), Some(Json)),
            (Some("application/json;q=0.1,application/x-protobuf;q=0.9"), Some(Json)),
            (Some("application/json;q=0"), None),
            (Some("application/json; q=0.0, */*"), Some(Protobuf)),
            (Some("application/json;q=0,application/x-protobuf;q=0,*/*"), None),
            (Some("application/*;q=0, */*"), None),
            (Some("text/html, application/json;q=0.5"), Some(Json)),
            (Some("application/json;charset=utf-8"), Some(Json)),
            (Some("application/json;q=x"), None),
            (Some("text/html"), None),
            (Some("image/*"), None),
            (Some("json"), None),
        ] {
            assert_eq!(Encoding::of_accept(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn content_types() {
        assert_eq!(Encoding::of_content_type("application/json"), Some(Json));
        assert_eq!(Encoding::of_content_type("application/x-protobuf"), Some(Protobuf));
        for other in ["application/json; charset=utf-8", "Application/json", " application/json", "", "text/plain"] {
            assert_eq!(Encoding::of_content_type(other), None, "{other}");
        }
    }

    #[test]
    fn gzip() {
        for (header, allowed) in [
            (None, false),
            (Some(""), false),
            (Some("gzip"), true),
            (Some("GZIP, deflate"), true),
            (Some("deflate, *"), true),
            (Some("gzip;q=0"), false),
            (Some("gzip;q=0.000, *"), false),
            (Some("gzip;q=0.5"), true),
            (Some("*;q=0"), false),
            (Some("identity"), false),
            (Some("xgzip"), false),
        ] {
            assert_eq!(allows_gzip(header), allowed, "{header:?}");
        }
    }

    proptest! {
        /// Any text can be parsed.
        #[test]
        fn any_text(text in ".*") {
            accepts(Some(&text), "application/json");
            allows_gzip(Some(&text));
        }
    }
}
