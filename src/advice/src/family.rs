//! Decides by name which tasks belong to the same job.

/// Characters that separate the parts of a name.
const SEPARATORS: [char; 6] = ['.', '-', '_', ':', '/', '#'];
/// Number of hexadecimal digits from which a part is taken for an id.
const ID_DIGITS: usize = 8;

/// Returns a task's name without the trailing parts that distinguish instances: numbers, and hexadecimal ids of 8
/// digits or more, such as UUIDs. A name that consists of nothing else is returned as it is.
pub fn family(name: &str) -> &str {
    let mut rest = name.trim_end_matches(SEPARATORS);
    while let Some(before) = without_uuid(rest).or_else(|| without_instance(rest)) {
        let before = before.trim_end_matches(SEPARATORS);
        if before.is_empty() {
            break;
        }
        rest = before;
    }
    if rest.is_empty() { name } else { rest }
}

/// Returns the part of a name before a trailing number or id.
fn without_instance(name: &str) -> Option<&str> {
    let (before, part) = name.rsplit_once(SEPARATORS)?;
    let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_id = part.len() >= ID_DIGITS
        && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        && part.bytes().any(|byte| byte.is_ascii_digit());
    (is_number || is_id).then_some(before)
}

/// Lengths of the groups of a UUID, from its end.
const UUID: [usize; 5] = [12, 4, 4, 4, 8];

/// Returns the part of a name before a trailing UUID.
fn without_uuid(name: &str) -> Option<&str> {
    let mut rest = name;
    for length in UUID {
        let (before, group) = rest.rsplit_once(SEPARATORS)?;
        if group.len() != length || !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        rest = before;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_instances_apart_is_left_out() {
        for (name, of) in [
            ("web", "web"),
            ("web.3", "web"),
            ("web-12_7", "web"),
            ("sweep.41.0", "sweep"),
            ("ct:1700000000:0:nightly:", "ct:1700000000:0:nightly"),
            ("shop.2f1c9a10-3b7e-11ee-9aa1-0242ac110002", "shop"),
            ("shop-2f1c9a10-3b7e-11ee-9aa1-0242ac110002.1", "shop"),
            ("build_9f86d081", "build"),
            // Words and versions are not instances.
            ("model-7b", "model-7b"),
            ("web2", "web2"),
            ("deadbeef", "deadbeef"),
            ("cafe-facade", "cafe-facade"),
            ("17", "17"),
            ("1.2.3", "1"),
            ("", ""),
            ("...", "..."),
            ("ä-1", "ä"),
        ] {
            assert_eq!(family(name), of, "{name}");
        }
    }
}
