//! Checks of policies, and the errors of invalid ones.

use std::time::Duration;

use super::{Backoff, MAX_ENTRIES, Policies, Refusing};
use crate::Filter;

/// Error of invalid policies: the entry, and the rule that it breaks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// A timeout is zero, which would rescind every offer at once.
    #[error("{entry} must be greater than zero")]
    Zero {
        /// Path of the entry in the policies.
        entry: String,
    },
    /// The lower limit exceeds the upper limit.
    #[error("{entry}: min ({min}) is greater than max ({max})")]
    Contradiction {
        /// Path of the entry in the policies.
        entry: String,
        /// Lower limit.
        min: String,
        /// Upper limit.
        max: String,
    },
    /// A default is outside of its limits.
    #[error("{entry}: default ({default}) is not between min ({min}) and max ({max})")]
    Default {
        /// Path of the entry in the policies.
        entry: String,
        /// Default of the entry.
        default: String,
        /// Lower limit that applies there.
        min: String,
        /// Upper limit that applies there.
        max: String,
    },
    /// A duration is longer than Mesos allows a refusal to be.
    #[error("{entry} ({given}) is longer than 365 days")]
    TooLong {
        /// Path of the entry in the policies.
        entry: String,
        /// Given duration.
        given: String,
    },
    /// The value is not a share of the cluster.
    #[error("{entry} must be above 0 and at most 1, not {given}")]
    Share {
        /// Path of the entry in the policies.
        entry: String,
        /// Given value.
        given: f64,
    },
    /// The factor does not make refusals longer, or is too large.
    #[error("{entry}.factor must be above 1 and at most 100, not {given}")]
    Factor {
        /// Path of the entry in the policies.
        entry: String,
        /// Given factor.
        given: f64,
    },
    /// The granularity has an amount that is not positive.
    #[error("offer_granularity: '{name}' must be positive")]
    Granularity {
        /// Name of the resource.
        name: String,
    },
    /// The granularity names no resource.
    #[error("offer_granularity must name at least one resource")]
    NoGranularity,
    /// There are too many entries.
    #[error("{entry} has {given} entries; at most {MAX_ENTRIES} are allowed")]
    TooMany {
        /// Name of the table: `roles` or `frameworks`.
        entry: &'static str,
        /// Number of given entries.
        given: usize,
    },
}

impl Policies {
    /// Checks that the policies are valid.
    ///
    /// # Errors
    /// The first entry that is invalid, or that contradicts another one.
    pub fn check(&self) -> Result<(), PolicyError> {
        timeout("offer_timeout", self.offer_timeout)?;
        share("max_offered_share", self.max_offered_share)?;
        if let Some(adaptive) = self.adaptive_timeout {
            timeout("adaptive_timeout.min", Some(adaptive.min))?;
            ordered("adaptive_timeout", adaptive.min, adaptive.max)?;
        }
        self.check_granularity()?;
        for (entry, given) in [("roles", self.roles.len()), ("frameworks", self.frameworks.len())] {
            if given > MAX_ENTRIES {
                return Err(PolicyError::TooMany { entry, given });
            }
        }
        let unset = Refusing { min: Some(Duration::ZERO), max: Some(Filter::MAX_REFUSE), ..Refusing::default() };
        refusal("refusal", &self.refusal, &unset)?;
        for (role, policies) in &self.roles {
            timeout(&format!("roles.{role}.offer_timeout"), policies.offer_timeout)?;
            refusal(&format!("roles.{role}.refusal"), &policies.refusal, &self.refusing(role))?;
        }
        for (framework, policies) in &self.frameworks {
            timeout(&format!("frameworks.{framework}.offer_timeout"), policies.offer_timeout)?;
            share(&format!("frameworks.{framework}.max_offered_share"), policies.max_offered_share)?;
        }
        Ok(())
    }

    fn check_granularity(&self) -> Result<(), PolicyError> {
        let Some(granularity) = &self.offer_granularity else { return Ok(()) };
        if granularity.is_empty() {
            return Err(PolicyError::NoGranularity);
        }
        match granularity.iter().find(|(_, amount)| !amount.is_positive()) {
            Some((name, _)) => Err(PolicyError::Granularity { name: name.to_string() }),
            None => Ok(()),
        }
    }
}

fn text(duration: Duration) -> String {
    base::format_duration(duration)
}

fn timeout(entry: &str, given: Option<Duration>) -> Result<(), PolicyError> {
    match given {
        Some(Duration::ZERO) => Err(PolicyError::Zero { entry: entry.to_owned() }),
        _ => Ok(()),
    }
}

fn share(entry: &str, given: Option<f64>) -> Result<(), PolicyError> {
    match given {
        Some(given) if !(given > 0.0 && given <= 1.0) => Err(PolicyError::Share { entry: entry.to_owned(), given }),
        _ => Ok(()),
    }
}

fn ordered(entry: &str, min: Duration, max: Duration) -> Result<(), PolicyError> {
    if min <= max {
        return Ok(());
    }
    Err(PolicyError::Contradiction { entry: entry.to_owned(), min: text(min), max: text(max) })
}

/// Checks a refusal policy. `own` has the fields of the entry, `holds` the fields that apply there with all that is
/// inherited.
fn refusal(entry: &str, own: &Refusing, holds: &Refusing) -> Result<(), PolicyError> {
    timeout(&format!("{entry}.timed_out"), own.timed_out)?;
    let spans = [("default", own.default), ("min", own.min), ("max", own.max), ("timed_out", own.timed_out)];
    for (field, given) in spans {
        if let Some(given) = given.filter(|given| *given > Filter::MAX_REFUSE) {
            return Err(PolicyError::TooLong { entry: format!("{entry}.{field}"), given: text(given) });
        }
    }
    let min = own.min.or(holds.min).unwrap_or_default();
    let max = own.max.or(holds.max).unwrap_or(Filter::MAX_REFUSE);
    ordered(entry, min, max)?;
    if let Some(default) = own.default.filter(|default| !(min..=max).contains(default)) {
        let (default, min, max) = (text(default), text(min), text(max));
        return Err(PolicyError::Default { entry: entry.to_owned(), default, min, max });
    }
    match own.backoff {
        Some(Backoff { factor, .. }) if !(factor > 1.0 && factor <= 100.0) => {
            Err(PolicyError::Factor { entry: format!("{entry}.backoff"), given: factor })
        }
        Some(Backoff { max: longest, .. }) if longest > Filter::MAX_REFUSE => {
            Err(PolicyError::TooLong { entry: format!("{entry}.backoff.max"), given: text(longest) })
        }
        Some(Backoff { max: longest, .. }) => ordered(&format!("{entry}.backoff"), min, longest),
        None => Ok(()),
    }
}
