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

/// Kinds of sorters: `--role_sorter`, `--framework_sorter`.
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
    /// All sorters with their names.
    pub const ALL: [(&'static str, SorterKind); 4] = [
        ("drf", SorterKind::Drf),
        ("random", SorterKind::Random),
        ("psdsf", SorterKind::PsDsf),
        ("bfdrf", SorterKind::BestFitDrf),
    ];

    /// Returns the sorter of a name.
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

    /// Returns whether the tree keeps this order.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, SorterKind::Drf | SorterKind::BestFitDrf)
    }
}

/// A competitor: a role with all roles below it, a role's own frameworks, or a framework in a role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Quantities that the competitor is offered and uses in the whole cluster.
    pub(crate) allocated: &'a Quantities,
    /// Dominant share of the cluster, not divided by the weight.
    pub(crate) share: f64,
    /// Weight of the competitor among its siblings.
    pub(crate) weight: f64,
    /// Number that no other competitor has.
    pub(crate) number: u32,
}

/// The visit to an agent for which an order is computed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visit {
    /// Total quantities of the agent.
    pub(crate) server: Quantities,
    /// Total quantities of the cluster, without names that do not count for shares.
    pub(crate) counted: Quantities,
    /// Random number, drawn anew for each visit.
    pub(crate) draw: u64,
}

/// Order of competitors.
pub(crate) trait Sorter {
    /// Returns the key of a competitor. The least comes first; it is never NaN. Equal keys are ordered by the number of
    /// allocations so far, then by name.
    fn key(&self, candidate: &Candidate<'_>, visit: &Visit) -> f64;
}

#[cfg(test)]
mod tests;
