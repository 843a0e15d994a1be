//! The roles with metrics of their own. A framework may create any number of roles: with all of them, metrics would be
//! documents of hundreds of megabytes.

use std::collections::BTreeSet;

use allocator::RoleView;
use allocator::fairness::{ClientFairness, Report};

/// Maximum number of listed roles.
const ROLES_MAX: usize = 1_000;
/// Maximum number of listed pairs of a framework and one of its roles.
const PAIRS_MAX: usize = 5_000;

/// The listed roles, and the number of all roles.
pub(super) struct ReportedRoles<'a> {
    roles: BTreeSet<&'a str>,
    all: usize,
}

impl<'a> ReportedRoles<'a> {
    /// Selects the roles to list. If there are too many, those with a quota come first, then those with allocations,
    /// then the others; each in the order of their names.
    pub(super) fn of(views: &'a [RoleView]) -> ReportedRoles<'a> {
        let mut chosen: Vec<&RoleView> = views.iter().collect();
        if chosen.len() > ROLES_MAX {
            chosen.sort_by_key(|view| (is_without_quota(view), view.held.is_empty(), view.role.as_str()));
            chosen.truncate(ROLES_MAX);
        }
        ReportedRoles { roles: chosen.into_iter().map(|view| view.role.as_str()).collect(), all: views.len() }
    }

    /// Returns whether a role is listed.
    pub(super) fn has(&self, role: &str) -> bool {
        self.roles.contains(role)
    }

    /// Returns the number of roles that are not listed.
    pub(super) fn left_out(&self) -> usize {
        self.all - self.roles.len()
    }

    /// Reduces a report to the listed roles.
    pub(super) fn limit(&self, report: &mut Report) {
        report.roles.retain(|role| self.has(role.role.as_str()));
        self.limit_pairs(&mut report.clients);
    }

    fn limit_pairs(&self, clients: &mut Vec<ClientFairness>) {
        clients.retain(|client| self.has(client.role.as_str()));
        clients.truncate(PAIRS_MAX);
    }

    /// Reduces pairs of a framework and a role to those with a listed role, at most [`PAIRS_MAX`].
    pub(super) fn pairs<'p, F>(
        &self,
        pairs: impl Iterator<Item = (F, &'p String)>,
    ) -> impl Iterator<Item = (F, &'p String)> {
        pairs.filter(|(_, role)| self.has(role)).take(PAIRS_MAX)
    }
}

fn is_without_quota(view: &RoleView) -> bool {
    view.quota.guarantees.is_empty() && view.quota.limits.is_empty()
}

#[cfg(test)]
mod tests {
    use resources::{Amount, Name, Role};

    use super::*;

    fn view(name: &str) -> RoleView {
        RoleView {
            role: Role::parse(name).unwrap(),
            weight: allocator::Weight::ONE,
            frameworks: Vec::new(),
            dominant_share: 0.0,
            held: Default::default(),
            offered: Default::default(),
            used: Default::default(),
            reserved: Default::default(),
            held_reserved: Default::default(),
            held_unreserved: Default::default(),
            quota: Default::default(),
            consumed: Default::default(),
            charged: Default::default(),
            refusals: 0,
        }
    }

    #[test]
    fn of_too_many_those_with_a_quota_and_those_that_hold_something_come_first() {
        let mut views: Vec<RoleView> = (0..ROLES_MAX + 10).map(|n| view(&format!("r{n:05}"))).collect();
        assert_eq!(ReportedRoles::of(&views[..ROLES_MAX]).left_out(), 0);
        let last = views.len() - 1;
        views[last].quota.limits.set(&Name::Cpus, Amount::ZERO);
        views[last - 1].held.set(&Name::Cpus, Amount::MILLI);
        let reported = ReportedRoles::of(&views);
        assert_eq!(reported.left_out(), 10);
        assert!(reported.has(views[last].role.as_str()) && reported.has(views[last - 1].role.as_str()));
        assert!(reported.has("r00997") && !reported.has("r00998"));
        let roles: Vec<String> = views.iter().map(|view| view.role.to_string()).collect();
        let pairs = || (0..10).flat_map(|framework| roles.iter().map(move |role| (framework, role)));
        assert_eq!(reported.pairs(pairs()).count(), PAIRS_MAX);
    }
}
