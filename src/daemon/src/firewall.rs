//! `--firewall_rules`: endpoints that are disabled for all senders (LEG-27).
//!
//! A rule names an endpoint by any of its paths, and disables it on all of them. It knows no endpoints of its own.

use std::collections::BTreeSet;

use protos::mesos::internal;
use wire::http::{Response, StatusCode};
use wire::route::{Found, Table};

use crate::flags::{FlagError, Json, json};

/// The paths that `--firewall_rules` disables.
#[derive(Debug, Default)]
pub(crate) struct Firewall {
    disabled: BTreeSet<String>,
}

impl Firewall {
    /// Reads `--firewall_rules`. Without the flag no endpoint is disabled.
    ///
    /// # Errors
    /// The value is not valid JSON of the message.
    pub(crate) fn read(rules: Option<&Json>) -> Result<Firewall, FlagError> {
        let Some(text) = rules else { return Ok(Firewall::default()) };
        let rules: internal::Firewall = json::message("firewall_rules", text)?;
        let disabled = rules.disabled_endpoints.map(|rule| rule.paths.into_iter().collect()).unwrap_or_default();
        Ok(Firewall { disabled })
    }

    /// Returns the disabled routes: those of the rules' paths. A path without a route disables only itself. The routes
    /// `metrics` have one document in several formats: if a rule disables the first, all are disabled.
    pub(crate) fn closed<T: Copy + PartialEq>(&self, table: &Table<T>, metrics: &[T]) -> Vec<T> {
        let lead = |path: &String| table.find(path).filter(|found| found.rest.is_empty()).map(|found| *found.route);
        for path in self.disabled.iter().filter(|path| lead(path).is_none()) {
            tracing::warn!("'--firewall_rules': no endpoint has the path '{path}'");
        }
        let mut closed: Vec<T> = self.disabled.iter().filter_map(lead).collect();
        if metrics.first().is_some_and(|first| closed.contains(first)) {
            closed.extend_from_slice(metrics);
        }
        closed
    }

    /// Checks that an endpoint is enabled under this path.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check<T: PartialEq>(
        &self,
        closed: &[T],
        path: &str,
        found: Option<&Found<'_, T>>,
    ) -> Result<(), Box<Response>> {
        if !self.disabled.contains(path) && !found.is_some_and(|found| closed.contains(found.route)) {
            return Ok(());
        }
        Err(Box::new(Response::text(StatusCode::FORBIDDEN, format!("Endpoint '{path}' is disabled"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::MasterFlags;

    fn firewall(text: &str) -> Result<Firewall, FlagError> {
        Firewall::read(MasterFlags::with(&[("firewall_rules", text)]).network.firewall_rules.as_ref())
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        let read = firewall(text).map_err(|error| error.to_string())?;
        Ok(read.disabled.into_iter().collect())
    }

    #[test]
    fn rules() {
        let two = r#"{"disabled_endpoints":{"paths":["/state","/files/browse"]}}"#;
        assert_eq!(read(two), Ok(vec!["/files/browse".to_owned(), "/state".to_owned()]));
        for nothing in ["", "{}", r#"{"disabled_endpoints":{}}"#] {
            assert_eq!(read(nothing), Ok(vec![]), "{nothing}");
        }
        for wrong in [
            "{",
            "[]",
            r#"{"disabled_endpoints":["/state"]}"#,
            r#"{"disabled_endpoints":{"paths":[1]}}"#,
            r#"{"disabled_endpoint":{}}"#,
        ] {
            assert!(read(wrong).unwrap_err().starts_with("flag '--firewall_rules'"), "{wrong}");
        }
        assert!(Firewall::read(None).unwrap().disabled.is_empty());
    }

    #[test]
    fn an_endpoint_is_closed_on_all_of_its_paths() {
        let table = Table::new("master")
            .add("master", "/weights", "weights")
            .add("master", "/state", "state")
            .add("master", "/api/v1", "api")
            .add("master", "/api/v1/scheduler", "scheduler")
            .add("files", "/read", "read");
        let open = |rule: &str, path: &str| {
            let firewall = firewall(&format!(r#"{{"disabled_endpoints":{{"paths":["{rule}"]}}}}"#)).unwrap();
            firewall.check(&firewall.closed(&table, &[]), path, table.find(path).as_ref()).map_err(|refusal| {
                (refusal.status().as_u16(), String::from_utf8(refusal.body().unwrap().to_vec()).unwrap())
            })
        };
        let paths = ["/weights", "/weights/", "//weights", "/master/weights", "/m%61ster/weights", "/weights/more"];
        for rule in ["/weights", "/master/weights", "/weights/"] {
            for path in paths {
                assert_eq!(open(rule, path), Err((403, format!("Endpoint '{path}' is disabled"))), "{rule} {path}");
            }
            for path in ["/state", "/master/state", "/api/v1", "/nowhere"] {
                assert_eq!(open(rule, path), Ok(()), "{rule} {path}");
            }
        }
        // An endpoint below the path of another one is not disabled with it.
        assert_eq!(open("/api/v1", "/master/api/v1/scheduler"), Ok(()));
        assert!(open("/api/v1", "/api/v1/xyz").is_err());
        assert!(open("/files/read", "/files/read").is_err());
        // A path of no endpoint, or below one, disables only itself.
        assert!(open("/nowhere", "/nowhere").is_err());
        assert!(open("/state/more", "/state/more").is_err());
        assert_eq!(open("/state/more", "/state"), Ok(()));
    }
}
