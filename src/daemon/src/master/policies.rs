//! Reads `--policies`, `--offer_timeout` and `--offer_granularity`: the policies of holding and refusal at the start.

use allocator::policies::Policies;

use crate::flags::FlagError;
use crate::flags::master::AllocationFlags;

const FILE: &str = "policies";

/// Returns all policies of the flags. A value that both a flag and the file set must be the same.
///
/// # Errors
/// The flag with an invalid value, and the reason.
pub(super) fn read(flags: &AllocationFlags) -> Result<Policies, FlagError> {
    let mut policies = match &flags.policies {
        Some(path) => of_file(&path.to_string_lossy())?,
        None => Policies::default(),
    };
    if let Some(timeout) = flags.offer_timeout {
        if timeout.is_zero() {
            return Err(refused("offer_timeout", "must be greater than zero"));
        }
        if policies.offer_timeout.is_some_and(|other| other != timeout) {
            return Err(refused("offer_timeout", "conflicts with the file of --policies"));
        }
        policies.offer_timeout = Some(timeout);
    }
    if let Some(text) = &flags.offer_granularity {
        let granularity =
            resources::parse_quantities(text).map_err(|why| refused("offer_granularity", why.to_string()))?;
        if policies.offer_granularity.as_ref().is_some_and(|other| *other != granularity) {
            return Err(refused("offer_granularity", "conflicts with the file of --policies"));
        }
        policies.offer_granularity = Some(granularity);
        policies.check().map_err(|why| refused("offer_granularity", why.to_string()))?;
    }
    policies.check().map_err(|why| refused(FILE, why.to_string()))?;
    Ok(policies)
}

pub(super) fn of_file(path: &str) -> Result<Policies, FlagError> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let text = std::fs::read_to_string(path).map_err(|why| refused(FILE, format!("cannot read '{path}': {why}")))?;
    // JSON begins with a brace; TOML never does.
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).map_err(|why| refused(FILE, format!("'{path}': {why}")));
    }
    toml::from_str(&text).map_err(|why| refused(FILE, format!("'{path}': {}", why.message())))
}

fn refused(name: &'static str, why: impl Into<String>) -> FlagError {
    FlagError::Refused { name, why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flags::MasterFlags;

    fn with(given: &[(&str, &str)]) -> Result<Policies, String> {
        read(&MasterFlags::with(given).allocation).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_and_files() {
        assert_eq!(with(&[]).unwrap(), Policies::default());
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let toml = file("p.toml", "offer_timeout = \"1mins\"\n[roles.batch]\nrefusal = { max = \"5secs\" }");
        let json = file("p.json", r#"{"offer_timeout": "1mins", "roles": {"batch": {"refusal": {"max": "5secs"}}}}"#);
        let policies = with(&[("policies", &toml)]).unwrap();
        assert_eq!(policies.offer_timeout, Some(Duration::from_secs(60)));
        assert_eq!(with(&[("policies", &json)]).unwrap(), policies);
        assert_eq!(with(&[("policies", &format!("file://{json}")), ("offer_timeout", "60secs")]).unwrap(), policies);
        for (given, why) in [
            (vec![("policies", toml.as_str()), ("offer_timeout", "2mins")], "conflicts with"),
            (vec![("policies", "/does/not/exist")], "cannot read '/does/not/exist'"),
            (vec![("offer_timeout", "0secs")], "must be greater than zero"),
            (vec![("offer_granularity", "cpus:0")], "must name at least one resource"),
            (vec![("offer_granularity", "cpus")], "Failed to parse 'cpus'"),
        ] {
            let error = with(&given).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let wrong = file("w.toml", "refusal = { min = \"2mins\", max = \"1mins\" }");
        let error = with(&[("policies", &wrong)]).unwrap_err();
        assert!(error.contains("refusal: min (2mins) is greater than max (1mins)"), "{error}");
    }
}
