//! One entry of a resource set.

use std::fmt;
use std::sync::Arc;

use crate::{Amount, Disk, ItemSet, Kind, Name, Ranges, Reservation, Role, Value};

/// The id of a resource provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(Arc<str>);

impl ProviderId {
    /// Creates an id from any text; masters choose ids.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the id as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A named value with its reservation, allocation, disk and other properties.
///
/// Equality is Mesos's: everything but the disk's volume, including the number of copies if shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub(crate) name: Name,
    pub(crate) value: Value,
    pub(crate) allocation: Option<Role>,
    pub(crate) reservations: Option<Arc<[Reservation]>>,
    pub(crate) disk: Option<Disk>,
    pub(crate) provider: Option<ProviderId>,
    /// Number of copies of a shared resource; 0 if it is not shared.
    pub(crate) copies: u32,
    pub(crate) revocable: bool,
}

impl Resource {
    /// Creates an unreserved, unallocated resource.
    #[must_use]
    pub fn new(name: impl Into<Name>, value: Value) -> Self {
        Self {
            name: name.into(),
            value,
            allocation: None,
            reservations: None,
            disk: None,
            provider: None,
            copies: 0,
            revocable: false,
        }
    }

    /// Creates an unreserved, unallocated scalar.
    #[must_use]
    pub fn scalar(name: impl Into<Name>, amount: Amount) -> Self {
        Self::new(name, Value::Scalar(amount))
    }

    /// Creates unreserved, unallocated ranges.
    #[must_use]
    pub fn ranges(name: impl Into<Name>, ranges: Ranges) -> Self {
        Self::new(name, Value::Ranges(ranges))
    }

    /// Creates an unreserved, unallocated set.
    #[must_use]
    pub fn set(name: impl Into<Name>, items: ItemSet) -> Self {
        Self::new(name, Value::Set(items))
    }

    /// Sets the value.
    #[must_use]
    pub fn with_value(mut self, value: Value) -> Self {
        self.value = value;
        self
    }

    /// Sets the role to which the resource is allocated; `None` removes the allocation.
    #[must_use]
    pub fn with_allocation(mut self, role: Option<Role>) -> Self {
        self.allocation = role;
        self
    }

    /// Sets the reservations, outermost first.
    #[must_use]
    pub fn with_reservations(mut self, stack: &[Reservation]) -> Self {
        self.reservations = if stack.is_empty() { None } else { Some(stack.into()) };
        self
    }

    /// Sets the disk information.
    #[must_use]
    pub fn with_disk(mut self, disk: Option<Disk>) -> Self {
        self.disk = disk;
        self
    }

    /// Sets the resource provider.
    #[must_use]
    pub fn with_provider(mut self, provider: Option<ProviderId>) -> Self {
        self.provider = provider;
        self
    }

    /// Sets whether the resource is revocable.
    #[must_use]
    pub fn with_revocable(mut self, revocable: bool) -> Self {
        self.revocable = revocable;
        self
    }

    /// Sets the number of shared copies; 0 makes it not shared.
    #[must_use]
    pub fn with_copies(mut self, copies: u32) -> Self {
        self.copies = copies;
        self
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// Returns the value.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the amount; `None` for ranges and sets.
    #[must_use]
    pub const fn amount(&self) -> Option<Amount> {
        match self.value {
            Value::Scalar(amount) => Some(amount),
            _ => None,
        }
    }

    /// Returns the kind of the value: scalar, ranges or set.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.value.kind()
    }

    /// Returns the role to which the resource is allocated.
    #[must_use]
    pub const fn allocation(&self) -> Option<&Role> {
        self.allocation.as_ref()
    }

    /// Returns the reservations, outermost first; empty if unreserved.
    #[must_use]
    pub fn reservations(&self) -> &[Reservation] {
        self.reservations.as_deref().unwrap_or_default()
    }

    /// Returns the innermost reservation.
    #[must_use]
    pub fn reservation(&self) -> Option<&Reservation> {
        self.reservations().last()
    }

    /// Returns the role that may use the resource, which is that of the innermost reservation; `None` if unreserved.
    #[must_use]
    pub fn reservation_role(&self) -> Option<&Role> {
        self.reservation().map(|reservation| &reservation.role)
    }

    /// Returns the disk information.
    #[must_use]
    pub const fn disk(&self) -> Option<&Disk> {
        self.disk.as_ref()
    }

    /// Returns the resource provider; `None` for resources of the agent itself.
    #[must_use]
    pub const fn provider(&self) -> Option<&ProviderId> {
        self.provider.as_ref()
    }

    /// Returns the number of copies of a shared resource; 0 if it is not shared.
    #[must_use]
    pub const fn copies(&self) -> u32 {
        self.copies
    }

    /// Returns whether the resource is revocable: the agent may take it back at any time.
    #[must_use]
    pub const fn is_revocable(&self) -> bool {
        self.revocable
    }

    /// Returns whether the resource is shared: several tasks can use it at once.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.copies > 0
    }

    /// Returns whether the resource is unreserved.
    #[must_use]
    pub const fn is_unreserved(&self) -> bool {
        self.reservations.is_none()
    }

    /// Returns whether the resource is reserved.
    #[must_use]
    pub const fn is_reserved(&self) -> bool {
        self.reservations.is_some()
    }

    /// Returns whether the resource is reserved for exactly this role.
    #[must_use]
    pub fn is_reserved_to(&self, role: &Role) -> bool {
        self.reservation_role() == Some(role)
    }

    /// Returns whether the innermost reservation was made by a call.
    #[must_use]
    pub fn is_dynamically_reserved(&self) -> bool {
        self.reservation().is_some_and(Reservation::is_dynamic)
    }

    /// Returns whether the resource has more than one reservation, which the older format cannot express.
    #[must_use]
    pub fn has_refined_reservations(&self) -> bool {
        self.reservations().len() > 1
    }

    /// Returns whether the resource may be offered to this role: it is unreserved, or reserved for the role or an
    /// ancestor of it.
    #[must_use]
    pub fn is_allocatable_to(&self, role: &Role) -> bool {
        self.reservation_role().is_none_or(|owner| role.is_same_or_subrole_of(owner))
    }

    /// Returns whether the resource is a persistent volume: a disk with a persistence id.
    #[must_use]
    pub fn is_persistent_volume(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.persistence_id().is_some())
    }

    /// Returns whether the resource cannot be divided: a persistent volume, a MOUNT, a BLOCK, a RAW with an id.
    #[must_use]
    pub fn is_indivisible(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.persistence_id().is_some() || disk.is_exclusive())
    }

    /// Returns whether the resource has an amount of 0, or no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Returns whether the resources are equal except for value and copies.
    pub(crate) fn same_kind(&self, other: &Self) -> bool {
        self.name == other.name
            && self.value.kind() == other.value.kind()
            && self.is_shared() == other.is_shared()
            && self.revocable == other.revocable
            && self.allocation == other.allocation
            && self.reservations == other.reservations
            && self.disk == other.disk
            && self.provider == other.provider
    }

    /// Returns whether both become one entry when added: they are equal except for the value, and divisible.
    pub(crate) fn merges_with(&self, other: &Self) -> bool {
        self.same_kind(other) && if self.is_shared() { self.value == other.value } else { !self.is_indivisible() }
    }

    /// Returns whether `other` can be subtracted from this entry. Indivisible resources must be equal.
    pub(crate) fn yields(&self, other: &Self) -> bool {
        self.same_kind(other) && (!(self.is_shared() || self.is_indivisible()) || self.value == other.value)
    }

    /// Returns whether `other` is a part of this entry.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        self.yields(other)
            && if self.is_shared() { other.copies <= self.copies } else { self.value.contains(&other.value) }
    }
}
