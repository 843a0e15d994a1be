//! Sorters: the order of the children of one node of the role tree, and of agents.
//!
//! | name | first child | source |
//! |---|---|---|
//! | `drf` | the least dominant share of the cluster | Ghodsi et al., NSDI 2011; Mesos's default |
//! | `random` | drawn by lot, with chances by weight | Mesos 1.11's random sorter |
//! | `psdsf` | the least share of *this* agent | Khamse-Ashari et al., "Per-Server Dominant-Share Fairness", ICC 2017 |
//! | `bfdrf` | as `drf`, but agents are offered in the order in which they fit | Wang, Li, Liang, "Dominant Resource Fairness in Cloud Computing Systems with Heterogeneous Servers", INFOCOM 2014 |
//!
//! A new one is a type with [`Sorter`], and a line in [`SorterKind`]. `drf` is kept in order by the tree itself; the
//! others are asked on each visit to an agent.

mod best_fit;
mod drf;
mod ps_dsf;
mod random;

use resources::Quantities;

pub(crate) use best_fit::distance;

/// Which sorter: `--role_sorter`, `--framework_sorter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SorterKind {
    /// Dominant resource fairness.
    #[default]
    Drf,
    /// Weighted random.
    Random,
    /// Per-server dominant-share fairness.
    PsDsf,
    /// Best-fit dominant resource fairness.
    BestFitDrf,
}

impl SorterKind {
    /// All, by their names.
    pub const ALL: [(&'static str, SorterKind); 4] = [
        ("drf", SorterKind::Drf),
        ("random", SorterKind::Random),
        ("psdsf", SorterKind::PsDsf),
        ("bfdrf", SorterKind::BestFitDrf),
    ];

    /// The sorter of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<SorterKind> {
        SorterKind::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, kind)| kind)
    }

    pub(crate) fn sorter(self) -> &'static dyn Sorter {
        match self {
            SorterKind::Drf | SorterKind::BestFitDrf => &drf::Drf,
            SorterKind::Random => &random::Random,
            SorterKind::PsDsf => &ps_dsf::PsDsf,
        }
    }

    /// Whether the tree keeps this order.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, SorterKind::Drf | SorterKind::BestFitDrf)
    }
}

/// A competitor: a role with all roles below it, a role's own frameworks, or a framework in a role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// What it is offered and uses, in the whole cluster.
    pub(crate) allocated: &'a Quantities,
    /// Its dominant share of the cluster, not divided by its weight.
    pub(crate) share: f64,
    /// Among its siblings.
    pub(crate) weight: f64,
    /// A number of its own.
    pub(crate) number: u32,
}

/// The visit to an agent for which an order is computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visit {
    /// What the agent has in all.
    pub(crate) server: Quantities,
    /// What the cluster has, without names that do not count for shares.
    pub(crate) counted: Quantities,
    /// A random number, another one for each visit.
    pub(crate) draw: u64,
}

/// The order of competitors.
pub(crate) trait Sorter {
    /// What they are ordered by: the least comes first, never NaN. Equals go by their allocations so far, then by name.
    fn key(&self, candidate: &Candidate<'_>, visit: &Visit) -> f64;
}

#[cfg(test)]
mod tests;
