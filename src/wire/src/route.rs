//! Routes paths to the endpoints of processes (docs/mesos/transport.md). It has no endpoints of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::http::percent_decode;

/// Table of the endpoints of processes. A path whose first segment names no process belongs to the default process.
#[derive(Clone, Debug)]
pub struct Table<T> {
    default: String,
    processes: BTreeSet<String>,
    /// Routes by `<process>/<endpoint>`, without a slash at either end.
    routes: BTreeMap<String, T>,
}

/// Result of a successful look-up of a path.
#[derive(Debug, PartialEq, Eq)]
pub struct Found<'a, T> {
    /// Route that was added for the endpoint.
    pub route: &'a T,
    /// Rest of the path behind the endpoint, without slashes at either end; mostly empty.
    pub rest: &'a str,
}

impl<T> Table<T> {
    /// Creates a table whose default process (`master`, `slave(1)`) has this id.
    pub fn new(default: &str) -> Table<T> {
        Table { default: default.to_owned(), processes: BTreeSet::from([default.to_owned()]), routes: BTreeMap::new() }
    }

    /// Adds an endpoint such as `/api/v1` of a process; `""` is the process's root. A later one replaces an earlier
    /// one.
    #[must_use]
    pub fn add(mut self, process: &str, endpoint: &str, route: T) -> Table<T> {
        self.processes.insert(process.to_owned());
        self.routes.insert(join(process, endpoint.trim_matches('/')), route);
        self
    }

    /// Returns whether there is a process with that id.
    pub fn has_process(&self, id: &str) -> bool {
        self.processes.contains(id)
    }

    /// Returns the shortest path to each endpoint, in no particular order.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.routes.keys().map(|route| {
            let own = route.strip_prefix(&self.default).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            match own {
                Some("") => "/".to_owned(),
                Some(endpoint) => endpoint.to_owned(),
                None => format!("/{route}"),
            }
        })
    }

    /// Returns the endpoint of a path (as it was sent, without query): the longest one that is a prefix of it, by whole
    /// segments. `None` is 404.
    pub fn find<'a>(&'a self, path: &'a str) -> Option<Found<'a, T>> {
        if path.contains("/..") {
            return None;
        }
        let path = path.strip_prefix('/')?.trim_matches('/');
        let (first, behind) = path.split_once('/').unwrap_or((path, ""));
        let first = percent_decode(first).ok()?;
        let (process, endpoint) =
            if self.has_process(&first) { (first.as_str(), behind) } else { (self.default.as_str(), path) };
        let mut end = endpoint.len();
        loop {
            let prefix = endpoint[..end].trim_end_matches('/');
            if let Some(route) = self.routes.get(&join(process, prefix)) {
                return Some(Found { route, rest: endpoint[prefix.len()..].trim_matches('/') });
            }
            // The root of a process has no paths below it.
            end = prefix.rfind('/').filter(|end| *end > 0)?;
        }
    }
}

fn join(process: &str, endpoint: &str) -> String {
    if endpoint.is_empty() { process.to_owned() } else { format!("{process}/{endpoint}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agent() -> Table<&'static str> {
        Table::new("slave(1)")
            .add("slave(1)", "/api/v1", "api")
            .add("slave(1)", "/api/v1/executor", "executor")
            .add("slave(1)", "/state", "state")
            .add("slave(1)", "", "root")
            .add("files", "/read", "read")
            .add("version", "", "version")
    }

    #[test]
    fn paths() {
        let table = agent();
        for (path, route) in [
            ("/api/v1", Some(("api", ""))),
            ("/api/v1/", Some(("api", ""))),
            ("/api/v1/xyz", Some(("api", "xyz"))),
            ("/api/v1/executor", Some(("executor", ""))),
            ("/api/v1/executors", Some(("api", "executors"))),
            ("/slave(1)/api/v1/executor/", Some(("executor", ""))),
            ("/slave%281%29/state", Some(("state", ""))),
            ("/state/x/y", Some(("state", "x/y"))),
            ("/files/read", Some(("read", ""))),
            ("/files/write", None),
            ("/files", None),
            ("/version", Some(("version", ""))),
            ("/slave(2)/state", None),
            ("/api", None),
            ("/nosuch", None),
            ("/", Some(("root", ""))),
            ("/slave(1)", Some(("root", ""))),
            ("/state/../flags", None),
            ("/..", None),
            ("state", None),
            ("/%zz/state", None),
        ] {
            let found = table.find(path).map(|found| (*found.route, found.rest));
            assert_eq!(found, route, "{path}");
        }
    }

    #[test]
    fn paths_of_all_endpoints() {
        let table = agent();
        let mut paths: Vec<String> = table.paths().collect();
        paths.sort();
        assert_eq!(paths, ["/", "/api/v1", "/api/v1/executor", "/files/read", "/state", "/version"]);
        assert!(paths.iter().all(|path| table.find(path).is_some_and(|found| found.rest.is_empty())));
    }

    proptest! {
        /// Any path is found or not found, without a panic.
        #[test]
        fn any_path(path in "[/a-z%().]{0,30}") {
            let table = agent();
            let _ = table.find(&path);
        }
    }
}
