//! Values of the attributes on which all ranks of a gang must agree (the constraint `cluster`), with the number of
//! ranks that have room where an agent has them.
//!
//! It chooses among values, not among agents: a policy places the ranks one after the other, and does not see that the
//! first rank fixes the value for the others.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::round::JobConstraints;
use crate::Need;
use crate::constraint::Place;
use jobs::offers::AgentIdentity;

/// Maximum number of values that are tried for a gang. The first one decides, unless other constraints or reservations
/// limit the ranks further.
const VALUES_MAX: usize = 16;

/// The values of `cluster` constraints on some rooms; with several constraints, the combinations of their values.
#[derive(Debug)]
pub(super) struct ClusterValues {
    /// Number of the value that each room has; `None` for rooms that the constraints exclude.
    of_room: Vec<Option<usize>>,
    /// Largest number of ranks with each value, and its number; the most ranks first.
    best: Vec<(u32, usize)>,
}

impl ClusterValues {
    /// Finds the values on rooms with these free amounts; none without a `cluster` constraint.
    pub(super) fn of(
        check: &JobConstraints,
        identities: &[Arc<AgentIdentity>],
        free: &[Need],
        need: &Need,
    ) -> ClusterValues {
        let fields = check.checker.cluster_fields();
        if fields.is_empty() {
            return ClusterValues { of_room: Vec::new(), best: Vec::new() };
        }
        let mut numbers: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        let mut best: Vec<(u32, usize)> = Vec::new();
        let most = check.checker.most_on_one();
        let number = |room: usize| -> Option<usize> {
            let identity = &identities[room];
            let values: Vec<&str> = fields.iter().map(|field| identity.value(field)).collect::<Option<_>>()?;
            if !check.allows(identity, room) {
                return None;
            }
            let next = best.len();
            let number = *numbers.entry(values).or_insert(next);
            if number == next {
                best.push((0, number));
            }
            best[number].0 = best[number].0.saturating_add(need.times_in(&free[room]).min(most));
            Some(number)
        };
        let of_room = (0..identities.len()).map(number).collect();
        best.sort_by_key(|(ranks, _)| Reverse(*ranks));
        best.truncate(VALUES_MAX);
        ClusterValues { of_room, best }
    }

    /// Returns the values, each with the largest number of ranks that can have room there, and the best first.
    pub(super) fn best(&self) -> impl Iterator<Item = (u32, usize)> {
        self.best.iter().copied()
    }

    /// Returns the constraints with the rooms limited to those that have this value.
    pub(super) fn only(&self, value: usize, check: &JobConstraints) -> JobConstraints {
        let allowed = self.of_room.iter().map(|of_room| *of_room == Some(value)).collect();
        JobConstraints { checker: check.checker.clone(), allowed, end: check.end }
    }
}
