//! Finds resources whatever their reservations: first those of the target's role, then unreserved ones, then any.

use crate::{Resource, Resources};

impl Resources {
    /// Finds resources that equal `targets` in name, value, disk and so on, with any reservation.
    ///
    /// For each target the entries of its own reservation are taken first, then the unreserved, then all others.
    /// Returns `None` if one of the targets is not available in full. Allocations must be equal.
    #[must_use]
    pub fn find(&self, targets: &Self) -> Option<Self> {
        let mut left = self.clone();
        let mut all = Self::new();
        for target in targets {
            let found = find_one(&left, target)?;
            left -= &found;
            all += found;
        }
        Some(all)
    }
}

fn find_one(total: &Resources, target: &Resource) -> Option<Resources> {
    let mut missing = target.to_unreserved();
    let mut found = Resources::new();
    for level in 0..3 {
        for entry in total.iter().filter(|entry| preference(entry, target) == level) {
            let plain = entry.to_unreserved();
            if plain.contains(&missing) {
                found.add(missing.with_reservations(entry.reservations()));
                return Some(found);
            }
            if missing.contains(&plain) {
                let mut rest = Resources::from(missing);
                rest.subtract(&plain);
                found.add_ref(entry);
                missing = rest.into_iter().next()?;
            }
        }
    }
    None
}

/// Returns the rank of an entry for a target. 0: reserved like the target; 1: unreserved; 2: reserved for another role.
fn preference(entry: &Resource, target: &Resource) -> u8 {
    match entry.reservation_role() {
        role if role.is_some() && role == target.reservation_role() => 0,
        None => 1,
        Some(_) => 2,
    }
}
