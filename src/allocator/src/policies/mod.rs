//! Policies of holding and refusal: how long an offer may be held, how long a refusal lasts, how much one framework may
//! hold as offers, and how finely agents are offered. [`Policies::default`] is Mesos 1.11's behaviour.
//!
//! Saha, Beltre, Govindaraju, "Exploring the Fairness and Resource Distribution in an Apache Mesos Environment" (IEEE
//! CLOUD 2018) found that the holding period and the refusal cycle of frameworks determine their shares.
//!
//! These are values: the allocator reads them in its run, the master when it sends an offer. Files and calls are the
//! daemon's.

mod check;
mod patience;
mod slices;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use resources::{Quantities, Role};
use serde::{Deserialize, Serialize};

use crate::Filter;

pub use check::PolicyError;
pub(crate) use patience::Patience;
pub(crate) use slices::Slicer;

/// How many roles, and how many frameworks, may have policies of their own.
pub const MAX_ENTRIES: usize = 10_000;

/// All policies. Read from TOML or JSON with durations as `5secs` or `5s`, then to be [checked](Policies::check).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policies {
    /// How long an offer may stay unanswered before it is rescinded; never if unset. Roles and frameworks may have
    /// their own.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// A timeout that is learned from how fast each framework accepts. It never exceeds one that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_timeout: Option<Adaptive>,
    /// How long refusals last; roles may have their own.
    pub refusal: Refusing,
    /// The largest dominant share of the cluster that one framework may hold as unanswered offers, above 0 and at most
    /// 1. A framework without any offer may always be made one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_offered_share: Option<f64>,
    /// An agent larger than this is offered in equal slices, none of them larger than this. Whole agents if unset.
    #[serde(with = "text::amounts", skip_serializing_if = "Option::is_none")]
    pub offer_granularity: Option<Quantities>,
    /// Which agents are offered first.
    #[serde(skip_serializing_if = "AgentOrder::is_random")]
    pub agent_order: AgentOrder,
    /// Policies of a role and those below it, unless one of these has its own.
    #[serde(with = "text::by_role", skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<Role, RolePolicies>,
    /// Policies of single frameworks, by id or by name; the id comes first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub frameworks: BTreeMap<String, FrameworkPolicies>,
}

/// In which order a run of the allocator visits agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentOrder {
    /// In another order each time, as Mesos does.
    #[default]
    Random,
    /// The fullest agents first, so that free resources gather on few agents: packing at the first level, whatever
    /// frameworks do at the second. Works best with a small [`Policies::max_offered_share`]: a framework that may hold
    /// few offers accepts what it is offered.
    Fullest,
    /// The emptiest first: spreading at the first level.
    Emptiest,
}

impl AgentOrder {
    fn is_random(&self) -> bool {
        *self == AgentOrder::Random
    }
}

/// What a role may have of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolePolicies {
    /// See [`Policies::offer_timeout`].
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// See [`Policies::refusal`]; what is unset here comes from the role above, and at last from there.
    pub refusal: Refusing,
}

/// What a framework may have of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FrameworkPolicies {
    /// See [`Policies::offer_timeout`]; comes before a role's.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// See [`Policies::max_offered_share`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_offered_share: Option<f64>,
}

/// How long refusals last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refusing {
    /// When the call names no time (or none that makes sense); 5 seconds if unset.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub default: Option<Duration>,
    /// The shortest; 0 if unset.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// The longest; 365 days if unset.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// How long an offer that was not answered in time counts as refused; not at all if unset, as in Mesos. Then
    /// the framework whose share is smallest is offered the same again at once.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Duration>,
    /// Makes refusals of the same agent by the same framework longer each time; off if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// Repeated refusal of the same agent: the n-th in a row lasts `factor^(n-1)` times as long, until the framework uses
/// something there or revives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// Above 1, at most 100.
    pub factor: f64,
    /// The longest refusal that it leads to.
    #[serde(with = "text::plain_span")]
    pub max: Duration,
}

/// A limit that follows how long a framework takes from an offer to its acceptance: smoothed mean and deviation as in
/// RFC 6298, halved for each offer that was held and not used, doubled back by each that was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// The shortest limit. A framework that declines sooner than this has not held the offer.
    #[serde(with = "text::plain_span")]
    pub min: Duration,
    /// The longest, and that of a framework which has not answered yet.
    #[serde(with = "text::plain_span")]
    pub max: Duration,
}

impl Policies {
    /// How long a framework may leave an offer in `role` unanswered, as far as it is set: the framework's own, the
    /// nearest role's, the cluster's.
    #[must_use]
    pub fn offer_timeout(&self, id: &str, name: &str, role: &Role) -> Option<Duration> {
        let own = self.framework(id, name).and_then(|own| own.offer_timeout);
        own.or_else(|| self.nearest(role, |policies| policies.offer_timeout)).or(self.offer_timeout)
    }

    /// How much of the cluster a framework may hold as offers.
    #[must_use]
    pub fn max_offered_share(&self, id: &str, name: &str) -> Option<f64> {
        self.framework(id, name).and_then(|own| own.max_offered_share).or(self.max_offered_share)
    }

    /// How long refusals in `role` last, every field set but `timed_out` and `backoff`. A default that was set further
    /// up than the bounds is moved into them.
    #[must_use]
    pub fn refusing(&self, role: &Role) -> Refusing {
        let refusal = |of: fn(&Refusing) -> Option<Duration>, unset| {
            self.nearest(role, |policies| of(&policies.refusal)).or(of(&self.refusal)).unwrap_or(unset)
        };
        let (min, max) = (refusal(|r| r.min, Duration::ZERO), refusal(|r| r.max, Filter::MAX_REFUSE));
        let default = refusal(|r| r.default, Filter::DEFAULT_REFUSE).min(max).max(min);
        let backoff = self.nearest(role, |policies| policies.refusal.backoff).or(self.refusal.backoff);
        let timed_out = self.nearest(role, |policies| policies.refusal.timed_out).or(self.refusal.timed_out);
        Refusing { default: Some(default), min: Some(min), max: Some(max), timed_out, backoff }
    }

    /// The refusal that an offer which was not answered in time stands for, if it does.
    #[must_use]
    pub fn timed_out(&self, role: &Role) -> Option<Filter> {
        self.refusing(role).timed_out.map(|refuse| Filter { refuse })
    }

    /// The refusal that a call with `refuse_seconds` asks for. Mesos's own rules come first
    /// ([`Filter::from_refuse_seconds`]); repeated refusals are the allocator's.
    #[must_use]
    pub fn filter(&self, role: &Role, refuse_seconds: Option<f64>) -> Filter {
        let limits = self.refusing(role);
        let asked = refuse_seconds.filter(|seconds| *seconds >= 0.0);
        let refuse = match asked {
            None => limits.default.unwrap_or(Filter::DEFAULT_REFUSE),
            asked => Filter::from_refuse_seconds(asked).refuse,
        };
        let (min, max) = (limits.min.unwrap_or_default(), limits.max.unwrap_or(Filter::MAX_REFUSE));
        Filter { refuse: refuse.min(max).max(min) }
    }

    fn framework(&self, id: &str, name: &str) -> Option<&FrameworkPolicies> {
        if self.frameworks.is_empty() {
            return None;
        }
        self.frameworks.get(id).or_else(|| self.frameworks.get(name))
    }

    /// The setting of the role, or of the nearest role above it.
    fn nearest<T>(&self, role: &Role, of: impl Fn(&RolePolicies) -> Option<T>) -> Option<T> {
        if self.roles.is_empty() {
            return None;
        }
        let own = self.roles.get(role).and_then(&of);
        own.or_else(|| role.ancestors().find_map(|above| self.roles.get(&above).and_then(&of)))
    }
}

#[cfg(test)]
mod tests;
