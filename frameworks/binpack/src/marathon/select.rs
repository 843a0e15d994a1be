//! Label selectors: `key`, `key==value`, `key!=value`, `key in (a, b)` and `key notin (a, b)`, with commas between
//! them.

use serde_json::Value;

/// Returns whether labels, an object of texts, match a selector.
pub(super) fn matches_label(selector: &str, labels: &Value) -> bool {
    parts(selector).into_iter().map(str::trim).filter(|part| !part.is_empty()).all(|part| matches_one(part, labels))
}

/// Splits a selector at the commas that are not in parentheses.
fn parts(selector: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let is_end = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    };
    selector.split(is_end).collect()
}

fn matches_one(part: &str, labels: &Value) -> bool {
    let value = |key: &str| labels[key.trim()].as_str();
    if let Some((key, wanted)) = part.split_once("!=") {
        return value(key) != Some(wanted.trim());
    }
    if let Some((key, wanted)) = part.split_once("==") {
        return value(key) == Some(wanted.trim());
    }
    // `notin` is searched first, since it ends with `in`.
    for (word, is_in) in [(" notin ", false), (" in ", true)] {
        if let Some((key, set)) = part.replace('(', " (").split_once(word) {
            let mut set = set.trim().trim_start_matches('(').trim_end_matches(')').split(',').map(str::trim);
            return value(key).is_some_and(|value| set.any(|one| one == value)) == is_in;
        }
    }
    value(part).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors() {
        let labels = json!({"team": "x", "tier": "front"});
        for (selector, expected) in [
            ("team", true),
            ("other", false),
            ("team==x", true),
            ("team != x", false),
            ("other!=x", true),
            ("team in (x, y)", true),
            ("team in(y)", false),
            ("team notin (y, z), tier==front", true),
            ("team notin (x)", false),
            ("other notin (x)", true),
            ("other in (x)", false),
            ("team,tier in (front,back)", true),
            ("team,tier in (back)", false),
        ] {
            assert_eq!(matches_label(selector, &labels), expected, "{selector}");
        }
    }
}
