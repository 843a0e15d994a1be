//! Converts the names of apps: `/prod/web` for Marathon is the job `prod_web` here, and the reverse.

/// Maximum length of an id, since task ids are made of it.
const LENGTH_MAX: usize = 120;

/// Returns the job's name for an app's id, with or without the first slash. Returns `None` if it is not an id: segments
/// of lower-case letters, digits, hyphens and dots between slashes.
pub(super) fn job(app: &str) -> Option<String> {
    let parts: Vec<&str> = app.trim_matches('/').split('/').collect();
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let outer = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let well = |part: &&str| outer(part.chars().next()) && outer(part.chars().last()) && part.chars().all(inner);
    (parts.iter().all(well) && app.len() <= LENGTH_MAX).then(|| parts.join("_"))
}

/// Returns the app's id for a job's name; `None` if Marathon has no such id.
pub(super) fn app(name: &str) -> Option<String> {
    let id = format!("/{}", name.replace('_', "/"));
    job(&id).filter(|back| back == name).map(|_| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (id, name) in [("/web", "web"), ("/prod/db.main", "prod_db.main"), ("/a/b/c-1", "a_b_c-1")] {
            assert_eq!(job(id).as_deref(), Some(name));
            assert_eq!(job(&id[1..]).as_deref(), Some(name));
            assert_eq!(app(name).as_deref(), Some(id));
        }
        for id in ["", "/", "/Web", "/a//b", "/a_b", "/-a", "/a b"] {
            assert_eq!(job(id), None, "{id}");
        }
        assert_eq!(app("Big"), None);
        assert_eq!(app("_x"), None);
    }
}
