//! `--firewall_rules`: paths that nobody may ask for (LEG-27).
//!
//! It knows no endpoints: paths are compared as they are sent, so that an endpoint with two paths is disabled by naming both.

use std::collections::BTreeSet;

use protos::json::{Dialect, FromJson};
use protos::mesos::internal;
use wire::http::{Request, Response, StatusCode};

use crate::flags::{FlagError, Flags};

/// Which paths are disabled.
#[derive(Debug, Default)]
pub(crate) struct Firewall {
    disabled: BTreeSet<String>,
}

impl Firewall {
    /// Reads `--firewall_rules`; without the flag nothing is disabled.
    ///
    /// # Errors
    /// The flag's JSON is none, or of another form.
    pub(crate) fn read(flags: &Flags) -> Result<Firewall, FlagError> {
        const NAME: &str = "firewall_rules";
        let Some(text) = flags.get(NAME).filter(|text| !text.is_empty()) else { return Ok(Firewall::default()) };
        let rules = internal::Firewall::from_json(text.as_bytes(), Dialect::V0)
            .map_err(|error| FlagError::Refused { name: NAME, why: error.to_string() })?;
        let disabled = rules.disabled_endpoints.map(|rule| rule.paths.into_iter().collect()).unwrap_or_default();
        Ok(Firewall { disabled })
    }

    /// Whether a path may be asked for, whoever asks.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check(&self, request: &Request) -> Result<(), Box<Response>> {
        match self.disabled.contains(&request.path) {
            true => {
                let text = format!("Endpoint '{}' is disabled", request.path);
                Err(Box::new(Response::text(StatusCode::FORBIDDEN, text)))
            }
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Part;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut flags = Flags::defaults(Part::Master);
        flags.set("firewall_rules", text).unwrap();
        let read = Firewall::read(&flags).map_err(|error| error.to_string())?;
        Ok(read.disabled.into_iter().collect())
    }

    #[test]
    fn rules() {
        let two = r#"{"disabled_endpoints":{"paths":["/state","/files/browse"]}}"#;
        assert_eq!(read(two), Ok(vec!["/files/browse".to_owned(), "/state".to_owned()]));
        for nothing in ["", "{}", r#"{"disabled_endpoints":{}}"#] {
            assert_eq!(read(nothing), Ok(vec![]), "{nothing}");
        }
        for wrong in ["{", "[]", r#"{"disabled_endpoints":["/state"]}"#, r#"{"disabled_endpoints":{"paths":[1]}}"#] {
            assert!(read(wrong).unwrap_err().starts_with("flag '--firewall_rules'"), "{wrong}");
        }
        assert!(Firewall::read(&Flags::defaults(Part::Agent)).unwrap().disabled.is_empty());
    }
}
