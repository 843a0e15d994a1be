//! Changes allocations and reservations of resources.

use crate::{Amount, Reservation, Resource, Resources, Role, Value};

impl Resource {
    /// Returns the resource without reservations.
    #[must_use]
    pub fn to_unreserved(&self) -> Self {
        self.clone().with_reservations(&[])
    }

    /// Returns the resource with one more reservation. The new reservation must refine the old; [`fn@crate::validate`]
    /// checks that.
    #[must_use]
    pub fn push_reservation(&self, reservation: Reservation) -> Self {
        let mut stack = self.reservations().to_vec();
        stack.push(reservation);
        self.clone().with_reservations(&stack)
    }

    /// Returns the resource without its innermost reservation; unchanged if unreserved.
    #[must_use]
    pub fn pop_reservation(&self) -> Self {
        let stack = self.reservations();
        self.clone().with_reservations(&stack[..stack.len().saturating_sub(1)])
    }

    /// Reduces the amount to `most`. Returns `false` without a change if the amount is larger and the resource is
    /// indivisible. Ranges and sets are not changed.
    pub fn shrink(&mut self, most: Amount) -> bool {
        match self.value {
            Value::Scalar(amount) if amount > most => {
                if !self.is_indivisible() {
                    self.value = Value::Scalar(most.max(Amount::ZERO));
                }
                !self.is_indivisible()
            }
            _ => true,
        }
    }

    /// Converts a persistent volume to plain disk: without persistence, volume and copies.
    #[must_use]
    pub fn without_volume(&self) -> Self {
        let disk = self.disk.as_ref().and_then(crate::Disk::without_volume);
        self.clone().with_disk(disk).with_copies(0)
    }
}

impl Resources {
    /// Allocates everything to a role.
    pub fn allocate(&mut self, role: &Role) {
        if self.iter().any(|r| r.allocation().is_some_and(|old| old != role)) {
            *self = self.map(|r| r.clone().with_allocation(Some(role.clone())));
            return;
        }
        let unallocated = self.iter().filter(|r| r.allocation().is_none()).count();
        if unallocated == self.len() {
            // No entry had an allocation, so no two entries become equal.
            for entry in self.entries_mut() {
                entry.allocation = Some(role.clone());
            }
        } else if unallocated > 0 {
            *self = self.map(|r| r.clone().with_allocation(Some(role.clone())));
        }
    }

    /// Removes every allocation. Entries that differed only in it are merged.
    pub fn unallocate(&mut self) {
        let Some(first) = self.iter().next().map(|r| r.allocation.clone()) else { return };
        if self.iter().all(|r| r.allocation == first) {
            for entry in self.entries_mut() {
                entry.allocation = None;
            }
        } else {
            *self = self.map(|r| r.clone().with_allocation(None));
        }
    }

    /// Returns a copy that is allocated to a role.
    #[must_use]
    pub fn allocated(&self, role: &Role) -> Self {
        let mut copy = self.clone();
        copy.allocate(role);
        copy
    }

    /// Returns a copy without allocations.
    #[must_use]
    pub fn unallocated(&self) -> Self {
        let mut copy = self.clone();
        copy.unallocate();
        copy
    }

    /// Returns a copy without reservations.
    #[must_use]
    pub fn to_unreserved(&self) -> Self {
        self.map(Resource::to_unreserved)
    }

    /// Returns a copy in which every entry has one more reservation.
    #[must_use]
    pub fn push_reservation(&self, reservation: &Reservation) -> Self {
        self.map(|r| r.push_reservation(reservation.clone()))
    }

    /// Returns a copy in which every entry has lost its innermost reservation; unreserved entries are unchanged.
    #[must_use]
    pub fn pop_reservation(&self) -> Self {
        self.map(Resource::pop_reservation)
    }

    /// Returns a copy without allocations and reservations.
    #[must_use]
    pub fn flatten(&self) -> Self {
        self.map(|r| r.to_unreserved().with_allocation(None))
    }

    /// Returns a copy in which every shared entry has one copy.
    #[must_use]
    pub fn single_copies(&self) -> Self {
        self.map(|r| r.clone().with_copies(r.copies().min(1)))
    }
}
