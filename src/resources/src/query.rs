//! Queries of resource sets: filters, sums, groups. None of them changes a set.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Amount, ItemSet, Kind, Name, Quantities, Ranges, Resource, Resources, Role, Value};

impl Resources {
    /// Returns the entries that satisfy a condition.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&Resource) -> bool) -> Self {
        let mut kept = Self::new();
        // A subset of a normal form is in normal form.
        kept.entries_mut().extend(self.iter().filter(|r| keep(r)).cloned());
        kept
    }

    /// Returns the entries that satisfy a condition, and those that do not.
    #[must_use]
    pub fn partition(&self, condition: impl Fn(&Resource) -> bool) -> (Self, Self) {
        (self.filter(&condition), self.filter(|r| !condition(r)))
    }

    /// Returns the unreserved entries.
    #[must_use]
    pub fn unreserved(&self) -> Self {
        self.filter(Resource::is_unreserved)
    }

    /// Returns the reserved entries.
    #[must_use]
    pub fn reserved(&self) -> Self {
        self.filter(Resource::is_reserved)
    }

    /// Returns the entries that are reserved for exactly this role.
    #[must_use]
    pub fn reserved_to(&self, role: &Role) -> Self {
        self.filter(|r| r.is_reserved_to(role))
    }

    /// Returns the entries that are reserved for a role or one below it.
    #[must_use]
    pub fn reserved_to_subtree(&self, role: &Role) -> Self {
        self.filter(|r| r.reservation_role().is_some_and(|owner| owner.is_same_or_subrole_of(role)))
    }

    /// Returns the reserved entries by role.
    #[must_use]
    pub fn reservations(&self) -> BTreeMap<Role, Self> {
        self.group(Resource::reservation_role)
    }

    /// Returns the entries that may be offered to a role: unreserved, or reserved for it or one of its ancestors.
    #[must_use]
    pub fn allocatable_to(&self, role: &Role) -> Self {
        self.filter(|r| r.is_allocatable_to(role))
    }

    /// Returns the entries that are allocated to exactly this role.
    #[must_use]
    pub fn allocated_to(&self, role: &Role) -> Self {
        self.filter(|r| r.allocation() == Some(role))
    }

    /// Returns the entries that are allocated to a role or one below it.
    #[must_use]
    pub fn allocated_to_subtree(&self, role: &Role) -> Self {
        self.filter(|r| r.allocation().is_some_and(|user| user.is_same_or_subrole_of(role)))
    }

    /// Returns the allocated entries by role. Entries without an allocation are omitted.
    #[must_use]
    pub fn allocations(&self) -> BTreeMap<Role, Self> {
        self.group(Resource::allocation)
    }

    fn group(&self, key: impl Fn(&Resource) -> Option<&Role>) -> BTreeMap<Role, Self> {
        let mut groups: BTreeMap<Role, Self> = BTreeMap::new();
        for resource in self {
            if let Some(role) = key(resource) {
                groups.entry(role.clone()).or_default().entries_mut().push(resource.clone());
            }
        }
        groups
    }

    /// Returns the revocable entries.
    #[must_use]
    pub fn revocable(&self) -> Self {
        self.filter(Resource::is_revocable)
    }

    /// Returns the entries that are not revocable.
    #[must_use]
    pub fn non_revocable(&self) -> Self {
        self.filter(|r| !r.is_revocable())
    }

    /// Returns the shared entries, which several tasks can use at once.
    #[must_use]
    pub fn shared(&self) -> Self {
        self.filter(Resource::is_shared)
    }

    /// Returns the entries that are not shared.
    #[must_use]
    pub fn non_shared(&self) -> Self {
        self.filter(|r| !r.is_shared())
    }

    /// Returns the persistent volumes: disks with a persistence id.
    #[must_use]
    pub fn persistent_volumes(&self) -> Self {
        self.filter(Resource::is_persistent_volume)
    }

    /// Returns the scalar entries.
    #[must_use]
    pub fn scalars(&self) -> Self {
        self.filter(|r| r.kind() == Kind::Scalar)
    }

    /// Returns the entries that are ranges or sets.
    #[must_use]
    pub fn non_scalars(&self) -> Self {
        self.filter(|r| r.kind() != Kind::Scalar)
    }

    /// Returns the entries of one name.
    #[must_use]
    pub fn get(&self, name: &Name) -> Self {
        self.filter(|r| r.name() == name)
    }

    /// Returns the total amount of a name; `None` if there is no scalar of that name. A shared resource counts once.
    #[must_use]
    pub fn get_scalar(&self, name: &Name) -> Option<Amount> {
        let mut amounts = self.iter().filter(|r| r.name() == name).filter_map(Resource::amount);
        let first = amounts.next()?;
        Some(amounts.fold(first, |sum, amount| sum + amount))
    }

    /// Returns all numbers of a name; `None` if there are no ranges of that name.
    #[must_use]
    pub fn get_ranges(&self, name: &Name) -> Option<Ranges> {
        let mut found = self.iter().filter(|r| r.name() == name).filter_map(|r| match r.value() {
            Value::Ranges(ranges) => Some(ranges),
            _ => None,
        });
        let first = found.next()?.clone();
        Some(found.fold(first, |all, ranges| all.union(ranges)))
    }

    /// Returns all words of a name; `None` if there is no set of that name.
    #[must_use]
    pub fn get_set(&self, name: &Name) -> Option<ItemSet> {
        let mut found = self.iter().filter(|r| r.name() == name).filter_map(|r| match r.value() {
            Value::Set(items) => Some(items),
            _ => None,
        });
        let first = found.next()?.clone();
        Some(found.fold(first, |all, items| all.union(items)))
    }

    /// Returns the CPU cores; 0 if missing.
    #[must_use]
    pub fn cpus(&self) -> Amount {
        self.get_scalar(&Name::Cpus).unwrap_or_default()
    }

    /// Returns the megabytes of memory; 0 if missing.
    #[must_use]
    pub fn mem(&self) -> Amount {
        self.get_scalar(&Name::Mem).unwrap_or_default()
    }

    /// Returns the megabytes of disk; 0 if missing.
    #[must_use]
    pub fn disk(&self) -> Amount {
        self.get_scalar(&Name::Disk).unwrap_or_default()
    }

    /// Returns the GPUs; 0 if missing.
    #[must_use]
    pub fn gpus(&self) -> Amount {
        self.get_scalar(&Name::Gpus).unwrap_or_default()
    }

    /// Returns the ports; empty if missing.
    #[must_use]
    pub fn ports(&self) -> Ranges {
        self.get_ranges(&Name::Ports).unwrap_or_default()
    }

    /// Returns the sums of all scalars, regardless of reservations and disks. A shared resource counts once.
    #[must_use]
    pub fn quantities(&self) -> Quantities {
        let mut sums = Quantities::new();
        for resource in self {
            if let Some(amount) = resource.amount() {
                sums.add(resource.name(), amount);
            }
        }
        sums
    }

    /// Returns all names, each once.
    #[must_use]
    pub fn names(&self) -> BTreeSet<Name> {
        self.iter().map(|r| r.name().clone()).collect()
    }

    /// Returns whether an entry has more than one reservation.
    #[must_use]
    pub fn has_refined_reservations(&self) -> bool {
        self.iter().any(Resource::has_refined_reservations)
    }

    /// Returns the number of copies of a shared resource in the set; for any other resource, 1 if exactly this entry is
    /// in the set, otherwise 0.
    #[must_use]
    pub fn count(&self, resource: &Resource) -> u32 {
        let one_copy = |r: &Resource| r.clone().with_copies(r.copies().min(1));
        let wanted = one_copy(resource);
        self.iter().find(|entry| one_copy(entry) == wanted).map_or(0, |entry| entry.copies().max(1))
    }
}
