//! Which policies are refused, and why.

use std::time::Duration;

use super::{Backoff, MAX_ENTRIES, Policies, Refusing};
use crate::Filter;

/// Why policies are refused: the entry, and the rule that it breaks.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// A limit of no time would rescind every offer at once.
    #[error("{entry} must be greater than zero")]
    Zero {
        /// The entry, as its path in the policies.
        entry: String,
    },
    /// Two limits that no time can keep.
    #[error("{entry}: min ({min}) is greater than max ({max})")]
    Contradiction {
        /// The entry, as its path in the policies.
        entry: String,
        /// The lower limit.
        min: String,
        /// The upper limit.
        max: String,
    },
    /// A default that its own limits forbid.
    #[error("{entry}: default ({default}) is not between min ({min}) and max ({max})")]
    Default {
        /// The entry, as its path in the policies.
        entry: String,
        /// The default.
        default: String,
        /// The lower limit that holds there.
        min: String,
        /// The largest valid value.
        max: String,
    },
    /// Longer than Mesos lets any refusal be.
    #[error("{entry} ({given}) is longer than 365 days")]
    TooLong {
        /// The entry, as its path in the policies.
        entry: String,
        /// What was given.
        given: String,
    },
    /// Not a share of the cluster.
    #[error("{entry} must be above 0 and at most 1, not {given}")]
    Share {
        /// The entry, as its path in the policies.
        entry: String,
        /// What was given.
        given: f64,
    },
    /// Not a factor that makes refusals longer.
    #[error("{entry}.factor must be above 1 and at most 100, not {given}")]
    Factor {
        /// The entry, as its path in the policies.
        entry: String,
        /// What was given.
        given: f64,
    },
    /// Amounts that no slice can have.
    #[error("offer_granularity: '{name}' must be positive")]
    Granularity {
        /// The resource's name.
        name: String,
    },
    /// Nothing is named.
    #[error("offer_granularity must name at least one resource")]
    NoGranularity,
    /// Too many entries.
    #[error("{entry} has {given} entries; at most {MAX_ENTRIES} are allowed")]
    TooMany {
        /// `roles` or `frameworks`.
        entry: &'static str,
        /// How many.
        given: usize,
    },
}

impl Policies {
    /// Whether they can be followed.
    ///
    /// # Errors
    /// The first entry that cannot, or that contradicts another one.
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

/// `own` is what is written there, `holds` what holds there with all that is inherited.
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
