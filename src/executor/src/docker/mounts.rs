//! Parses the value of `docker run --mount`: fields such as `type=bind,source=/data,target=/in,readonly`, a CSV record.
//!
//! Unlike a volume, such a mount does not create its source: if that is missing, the daemon does not create the
//! container.

use serde_json::{Value, json};

/// Returns the mount in the daemon's form. Returns `None` for an invalid mount, and for options that are not supported,
/// such as `bind-propagation`.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut kind = "volume".to_owned();
    let (mut source, mut target, mut read_only) = (None, None, false);
    for field in fields(text)? {
        let (key, value) = match field.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (field.as_str(), None),
        };
        match (key, value) {
            ("type", Some(value)) => kind = value,
            ("source" | "src", Some(value)) => source = Some(value),
            ("target" | "destination" | "dst", Some(value)) => target = Some(value),
            ("readonly" | "ro", value) => read_only = read_flag(value.as_deref())?,
            _ => return None,
        }
    }
    let is_known = matches!((kind.as_str(), &source), ("bind", Some(_)) | ("volume", _) | ("tmpfs", None));
    let mut mount = json!({"Type": kind, "Target": target.filter(|_| is_known)?, "ReadOnly": read_only});
    if let Some(source) = source {
        mount["Source"] = json!(source);
    }
    Some(mount)
}

fn read_flag(value: Option<&str>) -> Option<bool> {
    match value {
        None | Some("true" | "1") => Some(true),
        Some("false" | "0") => Some(false),
        Some(_) => None,
    }
}

/// Splits a CSV record into fields. A field with commas is in quotes, and a quote within it is doubled.
fn fields(text: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(fields),
        }
    }
}

/// Reads a field whose opening quote was read. Returns the field and the text after its closing quote.
fn read_quoted(text: &str) -> Option<(String, &str)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, after) = rest.split_once('"')?;
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Some((field, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_as_docker_reads_them() {
        let bind = |source: &str, target: &str, read_only: bool| {
            Some(json!({"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}))
        };
        assert_eq!(read("type=bind,source=/a:b,target=/c,readonly"), bind("/a:b", "/c", true));
        assert_eq!(read("type=bind,src=/a,dst=/c,ro=false"), bind("/a", "/c", false));
        assert_eq!(read(r#"type=bind,"source=/a,""b""","target=/c=d",destination=/e"#), bind("/a,\"b\"", "/e", false));
        assert_eq!(read("target=/c"), Some(json!({"Type": "volume", "Target": "/c", "ReadOnly": false})));
        assert_eq!(read("type=tmpfs,target=/c"), Some(json!({"Type": "tmpfs", "Target": "/c", "ReadOnly": false})));
        for wrong in [
            "",
            "type=bind,target=/c",
            "type=bind,source=/a",
            "type=npipe,source=/a,target=/c",
            "type=bind,source=/a,target=/c,bind-propagation=shared",
            "type=bind,source=/a,target=/c,ro=maybe",
            "type=bind,\"source=/a,target=/c",
            "type=bind,\"source=/a\"b,target=/c",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
