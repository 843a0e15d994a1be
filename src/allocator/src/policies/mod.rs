//! Policies of offers and refusals: how long an offer may be held, how long a refusal lasts, how much one framework may
//! hold as offers, and how finely agents are offered. [`Policies::default`] is Mesos 1.11's behaviour.
//!
//! Saha, Beltre, Govindaraju, "Exploring the Fairness and Resource Distribution in an Apache Mesos Environment" (IEEE
//! CLOUD 2018) found that the holding period and the refusal cycle of frameworks determine their shares.
//!
//! These are values: the allocator reads them in its run, the master when it sends an offer. The daemon handles files
//! and calls.

mod check;
mod learned_timeout;
mod slices;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use resources::{Quantities, Role};
use serde::{Deserialize, Serialize};

use crate::Filter;

pub use check::PolicyError;
pub(crate) use learned_timeout::LearnedTimeout;
pub(crate) use slices::Slicer;

/// Maximum number of roles, and of frameworks, with policies of their own.
pub const MAX_ENTRIES: usize = 10_000;

/// All policies. They are read from TOML or JSON, with durations as `5secs` or `5s`, and then
/// [checked](Policies::check).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policies {
    /// Time after which an unanswered offer is rescinded; `None` for never. Roles and frameworks may have their own.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// Timeout that is learned from how fast each framework accepts. It never exceeds one that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive_timeout: Option<Adaptive>,
    /// Durations of refusals; roles may have their own.
    pub refusal: Refusing,
    /// Largest dominant share of the cluster that one framework may hold as unanswered offers, above 0 and at most 1. A
    /// framework without any offer may always receive one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_offered_share: Option<f64>,
    /// Largest offer of an agent. A larger agent is offered in equal slices, none of them larger than this. `None` for
    /// whole agents.
    #[serde(with = "text::amounts", skip_serializing_if = "Option::is_none")]
    pub offer_granularity: Option<Quantities>,
    /// Order in which agents are offered.
    #[serde(skip_serializing_if = "AgentOrder::is_random")]
    pub agent_order: AgentOrder,
    /// Policies of a role and those below it, unless one of these has its own.
    #[serde(with = "text::by_role", skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<Role, RolePolicies>,
    /// Policies of single frameworks, by id or by name; the id comes first.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub frameworks: BTreeMap<String, FrameworkPolicies>,
}

/// Orders in which a run of the allocator visits agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentOrder {
    /// A new random order for each run, as in Mesos.
    #[default]
    Random,
    /// The fullest agents first, so that free resources gather on few agents: packing at the first level, whatever
    /// frameworks do at the second. Works best with a small [`Policies::max_offered_share`]: a framework that may hold
    /// few offers accepts what it is offered.
    Fullest,
    /// The emptiest agents first: spreading at the first level.
    Emptiest,
}

impl AgentOrder {
    fn is_random(&self) -> bool {
        *self == AgentOrder::Random
    }
}

/// Policies of a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RolePolicies {
    /// Offer timeout of the role; see [`Policies::offer_timeout`].
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// Durations of refusals in the role; see [`Policies::refusal`]. A field that is `None` is inherited from the role
    /// above, and finally from there.
    pub refusal: Refusing,
}

/// Policies of a framework.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FrameworkPolicies {
    /// Offer timeout of the framework, which has precedence over a role's; see [`Policies::offer_timeout`].
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub offer_timeout: Option<Duration>,
    /// Largest share that the framework may hold as offers; see [`Policies::max_offered_share`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_offered_share: Option<f64>,
}

/// Durations of refusals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Refusing {
    /// Duration if the call has no time, or an invalid one; `None` for 5 seconds.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub default: Option<Duration>,
    /// Shortest duration; `None` for 0.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// Longest duration; `None` for 365 days.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// Time for which an offer that was not answered in time counts as refused. With `None` it does not count, as in
    /// Mesos: then the framework with the smallest share is offered the same resources again at once.
    #[serde(with = "text::span", skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Duration>,
    /// Factor by which repeated refusals of the same agent by the same framework become longer; `None` for off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
}

/// Back-off of repeated refusals of the same agent: the n-th in a row lasts `factor^(n-1)` times as long, until the
/// framework uses resources there or revives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// Factor of each further refusal, above 1 and at most 100.
    pub factor: f64,
    /// Longest refusal that the factor leads to.
    #[serde(with = "text::plain_span")]
    pub max: Duration,
}

/// Timeout that follows how long a framework takes from an offer to its acceptance: smoothed mean and deviation as in
/// RFC 6298, halved for each offer that was held and not used, doubled again for each that was used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// Shortest timeout. A framework that declines sooner than this has not held the offer.
    #[serde(with = "text::plain_span")]
    pub min: Duration,
    /// Longest timeout, also that of a framework that has not accepted an offer yet.
    #[serde(with = "text::plain_span")]
    pub max: Duration,
}

impl Policies {
    /// Returns the time that a framework has to answer an offer in `role`, if one is set: the framework's own, the
    /// nearest role's, or the cluster's.
    #[must_use]
    pub fn offer_timeout(&self, id: &str, name: &str, role: &Role) -> Option<Duration> {
        let own = self.framework(id, name).and_then(|own| own.offer_timeout);
        own.or_else(|| self.nearest(role, |policies| policies.offer_timeout)).or(self.offer_timeout)
    }

    /// Returns the largest share of the cluster that a framework may hold as offers, if one is set.
    #[must_use]
    pub fn max_offered_share(&self, id: &str, name: &str) -> Option<f64> {
        self.framework(id, name).and_then(|own| own.max_offered_share).or(self.max_offered_share)
    }

    /// Returns the durations of refusals in `role`. Every field except `timed_out` and `backoff` is set. A default that
    /// was inherited is moved into the bounds.
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

    /// Returns the refusal that applies to an offer that was not answered in time, if one is set.
    #[must_use]
    pub fn timed_out(&self, role: &Role) -> Option<Filter> {
        self.refusing(role).timed_out.map(|refuse| Filter { refuse })
    }

    /// Returns the refusal that a call with `refuse_seconds` asks for. Mesos's own rules come first
    /// ([`Filter::from_refuse_seconds`]); the allocator handles repeated refusals.
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

    /// Returns the setting of the role, or of the nearest role above it.
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
